"""Resolves a typed place to a position in a log (PLACE-1)."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from intersession_events import facts
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_projections.questions.places.grammar import (
    AtEvent,
    AtHead,
    AtPosition,
    AtTime,
    InRun,
    Place,
    UnknownPlace,
    no_place,
    shown,
)
from intersession_projections.questions.places.runs_named import (
    FEWEST,
    Flow,
    RunNames,
    Sees,
    flow_id,
    flow_sessions,
    flow_stream,
)
from intersession_projections.questions.timeline.steps import Step, steps_of
from intersession_projections.questions.timeline.timeline import Timeline
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.flows.rows import ExchangeSummary, SpawnSummary, Summary
from intersession_projections.views.positions import Positions
from intersession_projections.views.run_outcomes.outcome import RunOutcome

_FLOWS: Final = frozenset({"exchange", "spawn", "delivery"})
_MOST: Final = 32
"""The most events with a common beginning of their ids that are looked up."""


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a log: after the event at `position` (0: before all).

    `time_ms` is the time that it stands for: the one that was asked for, else the one that the log had reached. `flow` is set
    where the place was named by a run, `is_named` where an event or a run was named that the caller sees.
    """

    position: int
    time_ms: int
    flow: Flow | None = None
    is_named: bool = False


class ReadFlow(NamedTuple):
    """An exchange, a spawn or a run and its own events over all sessions, in log order. Streams other than sessions' are whole."""

    flow: Flow
    events: Sequence[Recorded]


class Places:
    """Resolves places in a log, among what the caller sees (`sees`; None: everything). `now_ms` is the caller's clock."""

    def __init__(self, log: Log, *, now_ms: int, sees: Sees | None = None) -> None:
        self._log = log
        self._now_ms = now_ms
        self._sees = sees
        self._positions = Positions(log)
        self._names = RunNames(log, sees)

    def find(self, place: Place, *, field: str = "at", is_end: bool = False) -> Located:
        """Return the resolved place. `field` is the argument that an error names.

        `is_end`: up to there a part of the log is asked for, so that a time that has not come yet is the head.

        Raises:
            UnknownPlace: it is not in the log, or not for the caller: beyond its end, in the future, of an unknown event or run,
                or of one that has not come so far. It names the forms that there are.
        """
        try:
            return self._found(place, field, is_end=is_end)
        except UnknownPlace as error:
            raise no_place(str(error), error.candidates) from None

    def _found(self, place: Place, field: str, *, is_end: bool) -> Located:
        match place.base:
            case AtPosition(position):
                return self._stepped(position, place.steps, field)
            case AtHead():
                head = self._log.head()
                return self._stepped(head, place.steps, field, head=head)
            case AtEvent(event_id):
                found = self._stepped(self._event(event_id, field), place.steps, field)
                return msgspec.structs.replace(found, is_named=place.steps == 0)
            case AtTime(time_ms):
                # The log's own time may be ahead of the clock: what it has recorded is no future.
                if time_ms > max(self._now_ms, self._positions.latest_time() or 0):
                    if is_end:
                        return self._stepped(self._log.head(), place.steps, field)
                    raise UnknownPlace(f"{field}: that time is in the future, give one that has passed")
                found = self._stepped(self._positions.position_at(time_ms), place.steps, field)
                return msgspec.structs.replace(found, time_ms=time_ms) if place.steps == 0 else found
            case InRun():
                return self._in_run(place.base, place.steps, field)

    def _stepped(
        self, position: int, steps: int, field: str, flow: Flow | None = None, *, head: int | None = None
    ) -> Located:
        head = self._log.head() if head is None else head
        if position > head:
            raise UnknownPlace(f"{field}: {position} is beyond the log's end, the last position is {head}")
        at = position + steps if self._log.forked is None else self._nth(position, steps)
        if at < 0:
            raise UnknownPlace(f"{field}: {steps:+d} from position {position} is before the log")
        if at > head:
            raise UnknownPlace(
                f"{field}: {steps:+d} from position {position} is beyond the log's end, the last position is {head}"
            )
        return Located(
            position=at, time_ms=self._positions.time_at(at) or 0, flow=flow, is_named=flow is not None
        )

    def _nth(self, position: int, steps: int) -> int:
        """Return where one comes to by steps on or back in a fork, which has not all positions."""
        if steps == 0:
            return position
        behind = "rowid>? ORDER BY rowid" if steps > 0 else "rowid<=? ORDER BY rowid DESC"
        wanted = steps if steps > 0 else 1 - steps
        found = self._log.query(f"SELECT rowid FROM stored_events WHERE {behind} LIMIT ?", (position, wanted))  # noqa: S608 - our own words
        if len(found) == wanted:
            return int(found[-1][0])
        # Before the first event is a place, too.
        return self._log.head() + 1 if steps > 0 else len(found) + steps

    def _event(self, event_id: str, field: str) -> int:
        found = [event for event in self._log.with_id(event_id, limit=_MOST) if self._is_seen(event)]
        whole = [event for event in found if event.id == event_id or len(event_id) >= FEWEST]
        whole = [event for event in whole if event.id == event_id] or whole
        if len(whole) > 1:
            ids = ", ".join(event.id for event in whole)
            raise UnknownPlace(
                f"{field}: several events have ids that begin with {shown(event_id)}, give more of the one you mean: {ids}"
            )
        if not whole:
            raise UnknownPlace(
                f"{field}: no event has the id {shown(event_id)}; `intersession events` shows what there is"
            )
        return whole[0].position

    def _is_seen(self, recorded: Recorded) -> bool:
        return self._sees is None or any(map(self._sees, sessions_of(self._log, recorded)))

    def _in_run(self, base: InRun, steps: int, field: str) -> Located:
        flow = self._names.flow(base.run, field=field)
        position = self._mark(flow, base, field)
        if steps == 0:
            return self._stepped(position, 0, field, flow)
        own = [step.position for step in steps_of_flow(self._log, flow)]
        at = own.index(position) + steps if position in own else -1
        if not 0 <= at < len(own):
            edge = "before the first" if steps < 0 else "behind the last"
            raise UnknownPlace(f"{field}: {steps:+d} from there is {edge} of the run's {len(own)} events")
        return self._stepped(own[at], 0, field, flow)

    def _mark(self, flow: Flow, base: InRun, field: str) -> int:
        match base.mark:
            case "start":
                return flow.accepted
            case "end":
                if flow.is_open:
                    raise UnknownPlace(
                        f"{field}: {flow.kind} {flow_id(flow)} has not ended yet, its last event is {flow.position}"
                    )
                return flow.position
            case _:
                pass
        found = next((event for event in reversed(self._marked(flow)) if _is_at(event, base)), None)
        if found is None:
            name = f"turn:{base.turn}" if base.mark == "turn" else base.mark
            raise UnknownPlace(f"{field}: {flow.kind} {flow_id(flow)} has no @{name}: {_what_it_has(flow)}")
        return found.position

    def _marked(self, flow: Flow) -> list[Recorded]:
        """Return the events among which marks are looked for."""
        stream = flow_stream(flow)
        if stream is not None:
            return list(self._log.stream(stream))
        return list(self._log.all(after=flow.position - 1, to=flow.position))


def steps_of_flow(log: Log, flow: Flow) -> list[Step]:
    """Return an exchange's, a spawn's or a run's own events as steps, over all sessions."""
    return steps_of(read_flow(log, flow).events)


def read_flow(log: Log, flow: Flow) -> ReadFlow:
    """Read an exchange, a spawn or a run."""
    return read_flows(log, [flow])[0]


def read_flows(log: Log, flows: Sequence[Flow]) -> list[ReadFlow]:
    """Read several of them together."""
    each = [{one.position: one for one in found} for found in Timeline(log).events_of_each(flows)]
    return [
        ReadFlow(flow, [once[position] for position in sorted(once)])
        for flow, once in zip(flows, each, strict=True)
    ]


def sessions_of(log: Log, recorded: Recorded) -> tuple[str, ...]:
    """Return the sessions of an event: both sides of an exchange; none for what only the operator sees."""
    return sessions_of_each(log, [recorded])[0]


def sessions_of_each(log: Log, events: Sequence[Recorded]) -> list[tuple[str, ...]]:
    """Return the same for several events."""
    flows = flows_of(log, events)
    return [sessions_in(recorded.stream, flows.get(recorded.stream)) for recorded in events]


def flows_of(log: Log, events: Iterable[Recorded]) -> dict[str, Summary]:
    """Return the exchanges, spawns and deliveries of some events, by their streams."""
    ids: dict[str, list[str]] = {}
    for stream in dict.fromkeys(recorded.stream for recorded in events):
        kind, _, name = stream.partition(":")
        if kind in _FLOWS:
            ids.setdefault(kind, []).append(name)
    return Flows(log).many(ids) if ids else {}


def sessions_in(stream: str, flow: Summary | None) -> tuple[str, ...]:
    """Return the sessions of a stream's events; `flow` is its exchange, spawn or delivery."""
    if flow is not None:
        return flow_sessions(flow)
    kind, _, name = stream.partition(":")
    return (name,) if kind == "session" else ()


def _is_at(recorded: Recorded, base: InRun) -> bool:
    match recorded.event:
        case facts.TurnEnded(turn=0) | facts.ChildEnded() | facts.RunCompleted() if base.mark == "reply":
            return True
        case facts.TurnEnded(turn=turn) if base.mark == "turn" and turn:
            return turn == base.turn
        case event:
            return base.mark == "announce" and any(
                isinstance(part, facts.AnnounceDecided) for part in facts.parts_of(event)
            )


def _what_it_has(flow: Flow) -> str:
    match flow:
        case ExchangeSummary(turns=0):
            return "no turn of it was answered"
        case ExchangeSummary():
            return f"it has turn:1 to turn:{flow.turns}"
        case SpawnSummary():
            return "a spawn has start, reply, announce and end, as far as it has come"
        case RunOutcome():
            return "a run that belongs to no exchange has start, reply (if it answered) and end"
