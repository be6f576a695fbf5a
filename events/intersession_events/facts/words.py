"""What is said of an event: who did what to whom, in brief, in a sentence, and without a word of anybody's."""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from intersession_events.basics.keys.short_names import short_name

__all__ = ["NO_TEXT", "OF_RUN", "Frame", "Kind", "Naming", "Words"]

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
    event out. `text` is a raw text of an agent, a person or a channel: the printer makes it harmless.

    `step` and `after` are for places of an exchange, a spawn, a run or a delivery: the event, and the state behind it.
    They quote no text, so that every caller who may know of the event may read them; they are empty for events that are
    no step. `reason` is the reason of an end.
    """

    who: str | None
    to: str | None
    brief: str
    how: str = ""
    text: str | None = None
    kind: Kind = "note"
    step: str = ""
    after: str = ""
    reason: str = ""


Naming = Callable[[str], str]
"""Says how a session is called, by its key."""


class Frame(NamedTuple):
    """What is known around an event where it is put into words: it names others by ids, or not at all.

    `key` is the session of its stream; None for other streams. `asker` and `asked` are the short names of both sides of its
    exchange or spawn, or of a delivery's session and channel; `place` is the delivery's destination. `max_turns` is the
    limit of its exchange, `task` the task of its run, if an event before told it. `named` returns the name of a session.
    `sides` are the recorded names of requester and target: events that do not name their actor take it from there.
    """

    key: str | None = None
    sides: tuple[str, str] | None = None
    asker: str = "who asked"
    asked: str = "who was asked"
    place: str = "its channel"
    max_turns: int = 0
    task: str = ""
    named: Naming = short_name

    @property
    def acting(self) -> str | None:
        """The side that was asked, and acts unless the event says otherwise."""
        return None if self.sides is None else self.sides[1]

    def other(self, side: str | None) -> str | None:
        """Return the side that one of both speaks to."""
        if self.sides is None:
            return None
        asker, asked = self.sides
        return asked if side == asker else asker

    @property
    def agent(self) -> str:
        """How the session whose stream the event is in is called."""
        return self.named(self.key or "an agent")

    @property
    def of_run(self) -> str:
        """What its run was asked for."""
        return self.task or "its answer"
