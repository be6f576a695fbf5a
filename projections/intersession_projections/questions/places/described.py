"""Describes a place: the event before it, the state of its run, and the next event (PLACE-5).

No word of what anybody said is in it, so that a place can be shown to whoever may know of its event.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from intersession_events.facts import run_named
from intersession_events.facts.parts import words_of
from intersession_events.facts.reasons import counted
from intersession_events.facts.words import Frame, Words
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.spans import Span, backwards
from intersession_projections.questions.places.located import (
    Located,
    ReadFlow,
    flows_of,
    read_flow,
    sessions_in,
    sessions_of,
)
from intersession_projections.questions.places.runs_named import Sees
from intersession_projections.views.flows.rows import DeliverySummary, ExchangeSummary, SpawnSummary, Summary
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.run_outcomes.runs import Runs
from intersession_projections.views.sessions.names import SessionNames


class Described(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A place in words. `event_id` and `time_ms` are those of the event before it.

    They are None before the first event, and where the caller may not know of that one.
    """

    position: int
    event_id: str | None
    time_ms: int | None
    text: str


class PlaceWords:
    """Describes places of a log to a caller that sees certain sessions (`sees`; None: everything)."""

    def __init__(self, log: Log, sees: Sees | None = None) -> None:
        self._log = log
        self._runs = Runs(log)
        self._names = SessionNames(log, sees)
        self._sees = sees

    def say(self, place: Located, of: ReadFlow | None = None) -> Described:
        """Return a description of a place; with `of`, as that run stood there."""
        if of is None:
            return self._said(place)
        own = self.last_of(of, place.position)
        if own is None:
            said = self._said(place)
            return msgspec.structs.replace(said, text=f"before the start; {said.text}")
        if own.position == place.position:
            return self.behind([own])[0]
        words = self._words([own])[0]
        stood = f"{words.after}, at #{own.position}" if words.after else words.after_it(own)
        later = counted(place.position - own.position, "event")
        return msgspec.structs.replace(self._said(place), text=f"{stood}, and {later} of the log later")

    def step_at(self, position: int) -> str:
        """Return which step an event is, as a place names it: `turn 2 is asked of research`. Empty for an event that is no step."""
        recorded = self._at(position)
        return "" if recorded is None else self._words([recorded])[0].step

    def last_of(self, run: ReadFlow, position: int) -> Recorded | None:
        """Return the last event of a run, up to a position, that the caller may see."""
        own = (recorded for recorded in reversed(run.events) if recorded.position <= position)
        return next(filter(self._is_seen, own), None)

    def _said(self, place: Located) -> Described:
        # What happened last in the whole log is nothing for those who see a part of it.
        hidden = self._sees is not None and not place.is_named
        recorded = None if hidden else self._last(place.position)
        if recorded is None:
            text = "before the first event" if place.position == 0 else "as it stood there"
            return Described(position=place.position, event_id=None, time_ms=None, text=text)
        return self.behind([recorded])[0]

    def behind(self, events: Sequence[Recorded]) -> list[Described]:
        """Return the places after some events that the caller may see."""
        return [
            _described(recorded, words.after_it(recorded))
            for recorded, words in zip(events, self._words(events), strict=True)
        ]

    def next(self, place: Located, of: ReadFlow | None = None) -> Described | None:
        """Return the next event: among a run's own events for a place in a run, else in the whole log.

        None where nothing has come yet, or nothing that the caller may know of.
        """
        if place.flow is not None and (of is None or place.flow != of.flow):
            of = read_flow(self._log, place.flow)
        if of is not None:
            recorded = next((own for own in of.events if own.position > place.position), None)
        else:
            recorded = self._behind(place.position) if self._sees is None else None
        if recorded is None or not self._is_seen(recorded):
            return None
        return _described(recorded, self._words([recorded])[0].of(recorded))

    def _at(self, position: int) -> Recorded | None:
        return next(filter(self._is_seen, self._log.at([position])), None) if position > 0 else None

    def _is_seen(self, recorded: Recorded) -> bool:
        return self._sees is None or any(map(self._sees, sessions_of(self._log, recorded)))

    def _last(self, position: int) -> Recorded | None:
        """Return the event at a position; in a fork, which has not all of them, the last one before."""
        if position > 0 and self._log.forked is not None:
            found = next(backwards(self._log, Span(to=position)), None)
            position = 0 if found is None else found.position
        return self._at(position)

    def _behind(self, position: int) -> Recorded | None:
        """Return the next event of the log; None where there is none."""
        return next(iter(self._log.all(after=position, limit=1)), None)

    def _words(self, events: Sequence[Recorded]) -> list["_Description"]:
        """Return events in words, with the names of participants; and the state then, for events of its own run."""
        flows = flows_of(self._log, events)
        named = {run_id for one in events if (run_id := _run_of(one)) is not None}
        runs = self._runs.many_without_words(named) if named else {}
        called = self._names.of(
            chain.from_iterable(sessions_in(one.stream, flows.get(one.stream)) for one in events)
        )
        return [
            _told(one, flows.get(one.stream), runs.get(_run_of(one) or ""), lambda key: called.get(key, key))
            for one in events
        ]


class _Description(NamedTuple):
    """An event in words: its `step`, the state `after` it, and its other name."""

    step: str
    after: str
    name: str

    def of(self, recorded: Recorded) -> str:
        """Return the event in a few words: whose it is, and its name."""
        return self.step or f"{self.name}{recorded.kind.replace('_', ' ')}"

    def after_it(self, recorded: Recorded) -> str:
        """Return the place after it."""
        return self.after or f"after #{recorded.position}, {self.of(recorded)}"


def _told(
    recorded: Recorded, flow: Summary | None, run: RunOutcome | None, called: Callable[[str], str]
) -> _Description:
    event = recorded.event
    kind, _, name = recorded.stream.partition(":")
    match None if flow is None or flow.accepted > recorded.position else flow:
        case ExchangeSummary() as exchange:
            asker = "the operator" if exchange.requester is None else called(exchange.requester)
            words = words_of(event, Frame(asker=asker, asked=called(exchange.target), named=called))
        case SpawnSummary() as spawn:
            frame = Frame(asker=called(spawn.asker), asked=called(spawn.child), named=called)
            words = words_of(event, frame)
        case DeliverySummary() as text:
            words = words_of(event, Frame(asker=called(text.session_key), asked=text.channel))
        case None if kind == "session" and run is not None and run.accepted <= recorded.position:
            words = words_of(event, Frame(key=name, task=_task_of(run), named=called))
            words = words if run.is_alone else words._replace(after="")
        case None if kind == "session":
            words = words_of(event, Frame(key=name, named=called))._replace(after="")
        case None:
            words = Words(None, None, "")
    match kind:
        case "session":
            return _Description(words.step, words.after, f"{called(name)}: ")
        case "exchange" | "spawn" | "delivery":
            return _Description(words.step, words.after, f"{kind} {name[:8]}: ")
        case _:
            return _Description(words.step, words.after, "")


def _run_of(recorded: Recorded) -> str | None:
    return run_named(recorded.event) if recorded.stream.startswith("session:") else None


def _described(recorded: Recorded, text: str) -> Described:
    return Described(position=recorded.position, event_id=recorded.id, time_ms=recorded.time, text=text)


def _task_of(run: RunOutcome) -> str:
    """Return what a run was asked for."""
    match run.step:
        case "announce":
            return "the announce"
        case "reply":
            return f"turn {run.turn}"
        case "compaction":
            return "the summary of its older turns"
        case "message" if run.is_alone:
            return "its answer"
        case "message":
            return "the primary reply" if run.spawn_id is None else "its task"
