"""What lists say of a fork: its source, where it was cut, its edits, and how it ended (FORK-9).

It is read from the flow's own stream: a fork that nobody has carried on has no views yet.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from intersession_events import facts
from intersession_events.basics.ids import exchange_stream, session_stream, spawn_stream
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.log.row_state import payload_in
from intersession_events.log.sql import Row
from intersession_projections.basics.row_prefilter import prefiltered
from intersession_projections.basics.spans import Span, backwards
from intersession_projections.questions.places.described import Described
from intersession_projections.views.flows.rows import (
    ExchangeSummary,
    SpawnSummary,
    Summary,
    accept_flow,
    evolve_flow,
)


class ForkPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part that differs, with an excerpt of it then and now; None where the part is missing."""

    part: str
    then: str | None
    now: str | None


class ForkLeft(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where a fork left its recording, what differs there, and whether it goes on all the same (FORK-7)."""

    position: int
    session_key: str
    run_id: str
    step: facts.Step
    turn: int | None
    kind: facts.DivergenceKind
    recorded: str | None
    now: str | None
    differs: tuple[ForkPart, ...]
    goes_on: bool
    text: str


class ForkOutcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The state of a fork's flow. `end` is why its loop ended, `close` why all of it is over; `turns` were answered.

    The state is `open`, `closed`, `ok`, `failed`; or `diverged`: it stands still where it left its recording. `left` is that place;
    of a fork that went on all the same, the first such place.

    `events` counts what happened behind the cut. `run` is the flow's own id: another one, if the fork has it begun anew.
    """

    state: str
    run: str
    events: int
    turns: int | None = None
    end: str | None = None
    close: str | None = None
    left: ForkLeft | None = None


class ForkSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A fork. `id` is its log id, `parent` that of its source log, `place` is the cut there, `run` the flow it was made for."""

    id: str
    parent: str
    run: str
    place: Described
    edits: tuple[facts.ForkEdit, ...]
    by: str
    time_ms: int
    outcome: ForkOutcome


def fork_summary(log: Log) -> ForkSummary | None:
    """Return the summary of a fork; None for a log that is not a fork.

    Raises:
        CorruptEvent: an event that is needed was changed; `verify` says more.
        StoreUnavailable: the log can't be read.
    """
    fork = log.forked
    if fork is None:
        return None
    born = next(log.all(after=fork.position, limit=1))
    return ForkSummary(
        id=log.log_id,
        parent=fork.log_id,
        run=fork.flow,
        place=_place(log, fork.position),
        edits=fork.edits,
        by=fork.by,
        time_ms=born.time,
        outcome=_with_left(log, fork, _outcome(log, fork, born)),
    )


def _place(log: Log, position: int) -> Described:
    last = next(backwards(log, Span(to=position)), None)
    if last is None:
        return Described(position=position, event_id=None, time_ms=None, text="before the first event")
    kind, _, name = last.stream.partition(":")
    event = last.kind.replace("_", " ")
    return Described(
        position=position,
        event_id=last.id,
        time_ms=last.time,
        text=f"after #{last.position}, {kind} {name}: {event}",
    )


def _outcome(log: Log, fork: facts.ForkedFrom, born: Recorded) -> ForkOutcome:
    events = log.query("SELECT COUNT(*) FROM stored_events WHERE rowid > ?", (born.position,))[0][0]
    flow = _flow(log, fork.flow)
    run_state = None if flow is not None else _state_of_run(log, fork.flow)
    if flow is None and run_state is None:
        # A flow whose message was replaced has another id, and is not here.
        flow = _first_behind(log, born.position)
    match flow:
        case ExchangeSummary():
            return ForkOutcome(
                state="open" if flow.is_open else "closed",
                run=flow.exchange_id,
                events=events,
                turns=flow.turns,
                end=flow.end_reason,
                close=flow.close_reason,
            )
        case SpawnSummary():
            return ForkOutcome(
                state="open" if flow.is_open else "closed",
                run=flow.spawn_id,
                events=events,
                close=flow.close_reason,
            )
        case _:
            return ForkOutcome(state=run_state or "open", run=fork.flow, events=events)


def _with_left(log: Log, fork: facts.ForkedFrom, outcome: ForkOutcome) -> ForkOutcome:
    """Return how a fork stands, with where it left its recording."""
    # What the fork of a fork begins with has none of it: of stream `log` only what others rest on goes along.
    rows = log.query(_LEFT, (fork.position,))
    lefts = [one for (version,) in rows for one in log.stream("log", after=version - 1, to=version)]
    last = next((one for one in reversed(lefts) if _stands_still(log, one)), None)
    if last is not None and outcome.state == "open":
        return msgspec.structs.replace(outcome, state="diverged", left=_left(last))
    return msgspec.structs.replace(outcome, left=_left(lefts[0])) if lefts else outcome


_LEFT: Final = (
    "SELECT originator_version FROM stored_events WHERE originator_id='log' AND topic LIKE 'recording_left.%' AND rowid > ? "
    "ORDER BY originator_version"
)


def _stands_still(log: Log, left: Recorded) -> bool:
    """Whether a fork stands still where it left its recording: its run has neither ended since, nor been retried."""
    event = left.event
    if not isinstance(event, facts.RecordingLeft) or event.goes_on:
        return False
    for recorded in log.stream(session_stream(event.session_key), backwards=True):
        if recorded.position < left.position:
            return True
        if isinstance(recorded.event, facts.RunEvent) and recorded.event.run_id == event.run_id:
            return False
    return True


def _left(recorded: Recorded) -> ForkLeft | None:
    event = recorded.event
    if not isinstance(event, facts.RecordingLeft):
        return None  # erased, or of a version that is not known
    return ForkLeft(
        position=recorded.position,
        session_key=event.session_key,
        run_id=event.run_id,
        step=event.step,
        turn=event.turn,
        kind=event.kind,
        recorded=event.recorded,
        now=event.now,
        differs=parts_of(event),
        goes_on=event.goes_on,
        text=left_in_words(event),
    )


def parts_of(left: facts.RecordingLeft) -> tuple[ForkPart, ...]:
    """Return the parts that differ where a recording was left."""
    parts = zip(left.differs, left.differs_then, left.differs_now, strict=False)
    return tuple(ForkPart(part=part, then=then or None, now=now or None) for part, then, now in parts)


def left_in_words(left: facts.RecordingLeft) -> str:
    """Return where a fork left its recording and what differs there, without texts of messages."""
    where = f"turn {left.turn}" if left.turn is not None else _STEPS[left.step]
    how = "went on past a difference" if left.goes_on else "left the recording"
    differs = f": {', '.join(left.differs)}" if left.differs else f" ({_KINDS[left.kind]})"
    return f"{how} at {where} of {left.session_key}{differs}"


_STEPS: Final[dict[facts.Step, str]] = {
    "message": "the answer",
    "reply": "a turn",
    "announce": "the announce",
    "compaction": "the summary",
}
_KINDS: Final[dict[facts.DivergenceKind, str]] = {
    "context": "it is asked something else",
    "tool": "a tool gave something else",
    "missing": "nothing was recorded there",
    "open": "its end was not recorded",
}


def _state_of_run(log: Log, run_id: str) -> str | None:
    """Return the state of a session's run; None for an unknown one."""
    named = run_id.encode()

    def may(row: Row) -> bool:
        payload = payload_in(row[4]) if row[3].startswith("run_") else b""
        return payload is None or named in payload

    for recorded in prefiltered(log, Span(), may):
        match recorded.event:
            case facts.RunCompleted(run_id=found) if found == run_id:
                return "ok"
            case facts.RunFailed(run_id=found) | facts.RunAborted(run_id=found) if found == run_id:
                return "failed"
            case facts.RunQueued(run_id=found) if found == run_id:
                return "open"
            case _:
                pass
    return None


def _flow(log: Log, name: str) -> Summary | None:
    for stream in (exchange_stream(name), spawn_stream(name)):
        if (found := _folded(log.stream(stream))) is not None:
            return found
    return None


def _first_behind(log: Log, position: int) -> Summary | None:
    """Return the first flow that was begun behind the cut: the one that an edit has begun anew."""
    for recorded in log.all(after=position):
        if isinstance(recorded.event, facts.FlowAccepted):
            return _folded(log.stream(recorded.stream))
    return None


def _folded(events: Iterable[Recorded]) -> Summary | None:
    flow: Summary | None = None
    for recorded in events:
        flow = accept_flow(recorded) if flow is None else evolve_flow(flow, recorded)
    return flow
