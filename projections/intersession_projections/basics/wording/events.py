"""Every event in words: the one table that timelines, stories, diagrams and places read from. Pure.

A step shows an event in brief, by the names that are stored; a story tells it in a sentence; a place says what it is
and how all stands then. They stand side by side, so that a new event is put into words in one place.
"""

from collections.abc import Sequence
from functools import partial
from typing import cast, get_args

from intersession_events import facts
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.wording.of_flows import of_exchange, of_spawn
from intersession_projections.basics.wording.of_sessions import of_run, of_session
from intersession_projections.basics.wording.of_system import of_delivery, of_system
from intersession_projections.basics.wording.short_names import short_name
from intersession_projections.basics.wording.words import UNNAMED, Naming, Sides, Words

_OF_SESSIONS, _OF_RUNS, _OF_EXCHANGES, _OF_SPAWNS, _OF_DELIVERIES = (
    frozenset(get_args(family))
    for family in (
        facts.SessionEvent,
        facts.RunEvent,
        facts.ExchangeEvent,
        facts.SpawnEvent,
        facts.DeliveryEvent,
    )
)
"""Asked whether it is of such a family, Python tries one class after the other: a microsecond or two for each event."""


def words_of(
    event: facts.Event,
    key: str | None,
    *,
    max_turns: int = 0,
    place: str | None = None,
    sides: Sides = UNNAMED,
    task: str = "",
    named: Naming = short_name,
) -> Words:
    """Return an event in words.

    `key` is the session whose stream the event is in, None for other streams. `max_turns` says how many turns its
    exchange may have, `place` where its delivery goes, `sides` who asked whom, or whose text goes where, `task` what its run was
    asked for: events before it have told that. `named` says how sessions are called. What follows in an event is told in brief.
    """
    if isinstance(event, facts.Deciding) and event.then is not None:
        told = partial(words_of, max_turns=max_turns, place=place, sides=sides, task=task, named=named)
        return _together([(part, told(part, key)) for part in facts.parts_of(event)])
    kind = type(event)
    if kind in _OF_SESSIONS:
        return of_session(cast("facts.SessionEvent", event), key, task, named)
    if kind in _OF_RUNS:
        return of_run(cast("facts.RunEvent", event), key, task, named)
    if kind in _OF_EXCHANGES:
        return of_exchange(cast("facts.ExchangeEvent", event), max_turns, sides, named)
    if kind in _OF_SPAWNS:
        return of_spawn(cast("facts.SpawnEvent", event), sides, named)
    if kind in _OF_DELIVERIES:
        return of_delivery(cast("facts.DeliveryEvent", event), place or "its channel", sides)
    return of_system(cast("facts.SystemEvent", event))


def _together(parts: Sequence[tuple[facts.Event, Words]]) -> Words:
    """Return what an event begins with, and what follows in it, in words. How all stands is told without what it asks for."""
    found = [words for _, words in parts]
    after = [words.after for part, words in parts if words.after and not isinstance(part, facts.RunAsked)]
    return found[0]._replace(
        to=next((words.to for words in found if words.to), None),
        brief="; ".join(words.brief for words in found),
        step=", and ".join(words.step for words in found if words.step),
        after=after[-1] if after else "",
    )


def words_in(recorded: Recorded) -> Words:
    """Return an event of a log in words."""
    kind, _, name = recorded.stream.partition(":")
    return words_of(recorded.event, name if kind == "session" else None)
