"""What becomes of a person's message to a session that is at work, whose conversation is over, or whose budget is used up. Pure.

The rules of the session use it (RESET, QUEUE, LIMIT).
"""

import msgspec

from intersession_actors.owners.session import commands
from intersession_actors.owners.session.state import Session
from intersession_actors.rules.config.messages import INBOUND
from intersession_actors.rules.policy.budgets import Counted, words_of
from intersession_actors.rules.policy.resetting import due
from intersession_events import facts
from intersession_events.basics import ids


def mode_of(state: Session, command: commands.Enqueue) -> str | None:
    """Return how a person's message waits: as its session says, else its channel (QUEUE-1); None for any other."""
    if command.queueing is None or command.queue is None:
        return None
    return state.settings.get("queueMode", command.queueing.mode)


def stopped_for(state: Session, command: commands.Enqueue, mode: str | None) -> list[facts.RunAborted]:
    """Return the aborts for a message's sake: of the run under way, and by QUEUE-3 of persons' waiting messages."""
    if mode != "interrupt":
        return [] if command.interrupts is None else stop_running(state, command.interrupts)
    said_by = command.message.provenance or facts.Provenance(kind="external_user")
    by = f"{said_by.source_channel}:{said_by.sender}"
    waiting = [one.queued.run_id for one in state.queue if one.queued.caller == INBOUND]
    return stop_running(state, by) + [facts.RunAborted(run_id=one, attempt=0, by=by) for one in waiting]


def stop_running(state: Session, by: str) -> list[facts.RunAborted]:
    """Return the abort of the run under way, if one is."""
    running = state.running
    if running is None:
        return []
    run_id = running.waiting.queued.run_id
    return [facts.RunAborted(run_id=run_id, attempt=running.attempt, by=by, partial=running.said)]


def collected(state: Session) -> list[facts.Event]:
    """Return the ends of runs on persons' messages that wait together: the last of them answers all (QUEUE-2)."""
    first = next(iter(state.queue), None)
    if first is None or not first.queued.collects or first.collected:
        return []
    if state.running is not None or state.interrupted:
        return []
    head = first.queued
    together: list[str] = []
    for waiting in state.queue[: head.collects]:
        if not waiting.queued.collects or waiting.queued.route != head.route:
            break
        if waiting.budget.sender != first.budget.sender:
            break  # who has other tools must not have words in the run of one who has these (TOOLS-2)
        together.append(waiting.queued.run_id)
    return [
        facts.RunAborted(run_id=run_id, attempt=0, by="collect", into=together[-1])
        for run_id in together[:-1]
    ]


def renewed_by(state: Session, command: commands.Enqueue, log_id: str) -> list[facts.Event]:
    """Return the reset that a person's message asks for, or finds due (RESET-2, RESET-3); none if the conversation goes on.

    Work under way belongs to the conversation: while there is some, time alone ends nothing.
    """
    renewal = command.renewal
    if renewal is None or not state.exists:
        return []
    if renewal.command is not None:
        reason, due_ms = renewal.command, None
    else:
        now_ms = command.message.timestamp
        over = due(renewal, began_ms=state.began_ms, said_ms=state.said_ms, now_ms=now_ms)
        if over is None or not state.idle:
            return []
        reason, due_ms = over
    reset = commands.Reset(session_id=next_generation(command, log_id), reason=reason, by=renewal.by)
    return reset_events(state, reset, due_ms=due_ms)


def next_generation(command: commands.Enqueue, log_id: str) -> str:
    """Return the id of the conversation that a message begins."""
    return ids.derive(log_id, "generation", command.message.id)


def reset_events(state: Session, command: commands.Reset, *, due_ms: int | None = None) -> list[facts.Event]:
    """Return a reset, and the ends of all running and waiting runs of the conversation before it."""
    return [
        *all_ended(state, command.by or command.reason, "the session was reset", reset=True),
        facts.SessionReset(
            session_id=command.session_id,
            previous_session_id=state.session_id,
            reason=command.reason,
            by=command.by,
            due_ms=due_ms,
        ),
    ]


def all_ended(state: Session, by: str, why: str, *, reset: bool = False) -> list[facts.Event]:
    """Return the ends of all runs of a conversation that is over: those that wait, and the one under way."""
    events: list[facts.Event] = [
        facts.RunFailed(
            run_id=waiting.queued.run_id, attempt=0, code="target_gone", error=f"target_gone: {why}"
        )
        for waiting in state.queue
    ]
    stopped = stop_running(state, by)
    return events + [msgspec.structs.replace(aborted, gone=True, reset=reset) for aborted in stopped]


def unaffordable(run_id: str, full: Counted) -> facts.RunFailed:
    """Return the end of a run that does not begin, since a budget is used up (LIMIT-2)."""
    error = f"limit: {words_of(full)}"
    return facts.RunFailed(
        run_id=run_id, attempt=0, code="limit", error=error, limit=full.setting, used=full.used
    )
