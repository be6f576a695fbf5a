"""The effects of a session's events, and those that it repeats when it wakes. Pure."""

from collections.abc import Sequence

from intersession_actors.outside.agents.runners import runner_of
from intersession_actors.owners.chains.cause import CausedBy
from intersession_actors.owners.session.answers import ended_of
from intersession_actors.owners.session.commands import (
    DeadlinePassed,
    Enqueue,
    RunReturned,
    SessionCommand,
    ShowAnswer,
    Unbind,
)
from intersession_actors.owners.session.held_calls import call_held, call_released
from intersession_actors.owners.session.showing import ShowDraft, goes_on
from intersession_actors.owners.session.state import Running, Session, Waiting
from intersession_actors.owners.streams.commands import ChildGone
from intersession_actors.owners.streams.effects import (
    AttemptDue,
    DropStopwatch,
    Effect,
    Pass,
    Report,
    Sleep,
    StartStopwatch,
    StopTimer,
    TellFlow,
    TellSession,
    Until,
)
from intersession_actors.owners.streams.world import ForkOf
from intersession_actors.rules.prompt.silence import is_withheld
from intersession_actors.running.failures.failure import FailureKind
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.log.recorded import Recorded


class Remember(Effect, frozen=True):
    """Take new events into the transcript, and now and then store a snapshot."""

    fresh: Sequence[Recorded]


class CallAgent(Effect, frozen=True):
    """Call the agent of the running attempt: its start is durable."""

    running: Running
    opened: facts.SessionOpened | None


class CancelAgent(Effect, frozen=True):
    """Stop the agent of an ended run: it may still be working."""

    run_id: str


class WatchThread(Effect, frozen=True):
    """Unbind the session's thread when its time is over (SPAWN-12)."""

    state: Session


def effects(
    key: str,
    command: SessionCommand | None,
    before: Session,
    state: Session,
    fresh: Sequence[Recorded],
    *,
    fork: ForkOf,
    told_ahead: str | None = None,
) -> Sequence[Effect]:
    """Return the effects of durable events; `state` is the session after all of them.

    `told_ahead` is the event of the end of a run that its flow was told of before it was durable.
    """
    asked = list[Effect]()
    for item in fresh:
        if isinstance(item.event, facts.RunStarted):
            asked.append(AttemptDue(item.event.run_id, item.event.attempt))
    starts = bool(asked)
    asked.append(Remember(fresh))
    if isinstance(command, Enqueue) and command.queue is not None and not starts:
        asked.append(Pass("S3"))
    if before.bound is not None or state.bound is not None:
        asked += _of_thread(key, state, fresh)
    for item in fresh:
        asked += _asked_by(item, key, before, state, fork)
        if isinstance(item.event, facts.RunEnd) and item.id != told_ahead:
            ended = ended_of(before, item)
            if ended is not None:
                asked.append(TellFlow(ended))
    return asked


def _asked_by(
    recorded: Recorded, key: str, before: Session, state: Session, fork: ForkOf
) -> Sequence[Effect]:
    event = recorded.event
    if isinstance(event, facts.RunStarted):
        return () if state.running is None else begun(key, state.running, state, fork)
    if isinstance(event, facts.AnswerShown):
        is_first = state.running is not None and event.receipt is None and event.error is None
        return (ShowDraft(state.running),) if is_first and state.running is not None else ()
    if isinstance(event, facts.RunCompleted):
        return *_told(key, before, recorded), *_over(event.run_id, before)
    if isinstance(event, facts.RunEnd):
        # Nobody works on a run that is over: where it timed out or was aborted, somebody still does.
        at_work = (StopTimer(deadline_of(event.run_id)), CancelAgent(event.run_id))
        return *_told(key, before, recorded), *_over(event.run_id, before), *at_work
    if isinstance(event, facts.RunInterrupted):
        # Where a fork was cut in the middle of it, nothing went wrong.
        told = () if event.run_id in fork.cut_runs else _told(key, before, recorded)
        if event.steered_by is not None:  # its agent is at work, and nothing went wrong
            told = (StopTimer(deadline_of(event.run_id)), CancelAgent(event.run_id))
        return *told, *_over(event.run_id, before)
    if isinstance(event, facts.ToolCallHeld):
        return call_held(key, event, recorded.time, fork)
    if isinstance(event, facts.ToolCallReleased):
        running = state.running
        goes_on = running is not None and not running.held_from
        return *call_released(event), *(deadline(key, running, fork) if running and goes_on else ())
    if isinstance(event, facts.SessionArchived) and before.opened is not None and before.opened.spawn_id:
        return (TellFlow(ChildGone(stream=ids.spawn_stream(before.opened.spawn_id))),)
    return _told(key, before, recorded) if isinstance(event, facts.LateReplyDropped) else ()


def beside(command: SessionCommand, state: Session, *, leads_to_events: bool) -> Sequence[Effect]:
    """Return a command's immediate effects, beside those of its events, if any."""
    if isinstance(command, RunReturned):
        return (StopTimer(deadline_of(command.run_id)),)
    if isinstance(command, ShowAnswer):
        return goes_on(state, command)
    # It may have been said since that it is not time yet. Where it is time, the timer would ring at once, again and again until
    # the store has taken the event, which may be away.
    return (WatchThread(state),) if isinstance(command, Unbind) and not leads_to_events else ()


def begun(key: str, running: Running, state: Session, fork: ForkOf) -> Sequence[Effect]:
    """Return the effects of an attempt that begins, or continues after a fork's cut."""
    watch = attempt_of(running)
    return StartStopwatch(watch), *deadline(key, running, fork, watch), CallAgent(running, state.opened)


def deadline(
    key: str, running: Running, fork: ForkOf, watch: tuple[str, ...] | None = None
) -> Sequence[Effect]:
    """Return the effect that ends the attempt when its time is over (LOOP-7)."""
    queued = running.waiting.queued
    if not queued.timeout_ms:
        return ()
    passed = DeadlinePassed(run_id=queued.run_id, attempt=running.attempt, held_ms=running.held_ms)
    lasts_ms = queued.timeout_ms + running.held_ms
    until = Until(watch or attempt_of(running), fork.begun(running.began_ms), lasts_ms)
    return (Sleep(deadline_of(queued.run_id), TellSession(key, passed), until=(until,)),)


def attempt_of(running: Running) -> tuple[str, ...]:
    """Return the name of an attempt's stopwatch."""
    return ("attempt", running.waiting.queued.run_id, str(running.attempt))


def deadline_of(run_id: str) -> tuple[str, ...]:
    """Return the name of the timer of a run's deadline."""
    return ("deadline", run_id)


def parked(key: str, waiting: Waiting) -> Report:
    """Return the report to the operator of a run that waits for its agent (KEY-9)."""
    error = f"agent {runner_of(key)!r}: register it, or start the process that has it"
    fields = {"session_key": key, "run_id": waiting.queued.run_id, "error": error}
    return Report("run_parked", fields, _caused(key, waiting, waiting.cause))


def answer_lost(key: str, before: Session, command: RunReturned, limit_ms: int) -> Report:
    """Return the report to the operator of an agent's answer that was given up, because the store was away."""
    error = f"the store was not available for {limit_ms // 1000} s"
    fields = {"session_key": key, "run_id": command.run_id, "attempt": command.attempt, "error": error}
    return Report("answer_lost", fields, _cause_of(key, before, command.run_id, None))


def _of_thread(key: str, state: Session, fresh: Sequence[Recorded]) -> Sequence[Effect]:
    """Return how the time of a thread goes on: from when it was bound, and from when something was said there last."""
    asked, bound, said = list[Effect](), ("bound", key), ("said", key)
    for item in fresh:
        if isinstance(item.event, facts.ThreadUnbound):
            asked += (DropStopwatch(bound), DropStopwatch(said))
    for item in () if state.bound is None else fresh:
        if isinstance(item.event, facts.ThreadBound):
            asked.append(StartStopwatch(bound))
        elif facts.message_in(item.event) is not None:
            asked.append(StartStopwatch(said))
    asked.append(WatchThread(state))
    return asked


def _over(run_id: str, before: Session) -> Sequence[Effect]:
    running = before.running
    if running is None or running.waiting.queued.run_id != run_id:
        return ()
    return (DropStopwatch(attempt_of(running)),)


def _told(key: str, before: Session, recorded: Recorded) -> Sequence[Effect]:
    """Return the report to the operator of a failed, interrupted or late run, or of an undeliverable answer."""
    event = recorded.event
    more: dict[str, str | None] = {}
    match event:
        case facts.RunFailed():
            kind: FailureKind = "run_failed"
            more = {"code": event.code, "error": event.error, "traceback": event.traceback}
        case facts.RunCompleted() if _is_for_a_person(before) and is_withheld(event.spoken):
            kind = "reply_withheld"
        case facts.RunInterrupted():
            kind = "run_interrupted"
        case facts.LateReplyDropped():
            kind = "late_reply"
        case _:
            return ()
    fields = {"session_key": key, "run_id": event.run_id, "attempt": event.attempt} | more
    return (Report(kind, fields, _cause_of(key, before, event.run_id, recorded.id)),)


def _is_for_a_person(before: Session) -> bool:
    """Whether the run under way would have answered a person on a channel."""
    running = before.running
    return running is not None and running.waiting.queued.route is not None


def _cause_of(key: str, before: Session, run_id: str, cause: str | None) -> CausedBy | None:
    """Return the cause for the host's callback: its calls continue the chain of the run (LOOP-5)."""
    running = before.running
    known = (*((running.waiting,) if running is not None else ()), *before.queue)
    waiting = next((one for one in known if one.queued.run_id == run_id), None)
    return None if waiting is None else _caused(key, waiting, cause or waiting.cause)


def _caused(key: str, waiting: Waiting, cause: str | None) -> CausedBy:
    return CausedBy(session_key=key, budget=waiting.budget, event=cause)
