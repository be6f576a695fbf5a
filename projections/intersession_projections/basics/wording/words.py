"""What is said of an event: who did what to whom, in brief, in a sentence, and without a word of anybody's."""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from intersession_events import facts

OF_RUN: Final = "the text of its run"
"""Stands for a text that an event only names."""
NO_TEXT: Final = "(no text)"

Kind = Literal["said", "tool", "note", "end"]
"""`said`: a text from one to another; `tool`: what an agent did meanwhile; `note`: what happened besides; `end`: how all
of it ended."""


class Words(NamedTuple):
    """One event in words.

    `who` acts and `to` is acted on, as far as the event itself names them: session keys, routes, `operator`. `brief` is
    for a list of steps. `how` is for a story: a sentence, or a verb after `who`; it is empty where stories leave the
    event out. `text` is what somebody wrote, raw: whoever prints it makes it harmless first.

    `step` and `after` are for places of an exchange, a spawn, a run or a delivery: what the event is, and how all stands
    once it has happened. No word of what anybody said is in them, so that they can be shown to whoever may know of the event. They
    are empty for events that are no step.
    """

    who: str | None
    to: str | None
    brief: str
    how: str = ""
    text: str | None = None
    kind: Kind = "note"
    step: str = ""
    after: str = ""


Naming = Callable[[str], str]
"""Says how a session is called, by its key."""


class Sides(NamedTuple):
    """Who asked in an exchange or a spawn, and who was asked, by their short names; whose text it is, and its channel."""

    asker: str
    asked: str


UNNAMED: Final = Sides("who asked", "who was asked")


def route_text(route: facts.Route) -> str:
    """Return a route as one word."""
    account = "" if route.account is None else f"{route.account}@"
    thread = "" if route.thread is None else f"#{route.thread}"
    return f"{account}{route.channel}:{route.to}{thread}"
