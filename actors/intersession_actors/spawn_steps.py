"""The steps of a spawn as commands to a session's actor: the message, its run, and the spawn's own events. Pure."""

from typing import NamedTuple

from intersession_actors.commands import Enqueue
from intersession_actors.spawn_rules import Spawn
from intersession_actors.system_context import (
    SPAWN_ANNOUNCE_PROMPT,
    child_context,
    result_context,
    spawn_announce_context,
)
from intersession_events import ids
from intersession_events.exchange import AnnounceRequested
from intersession_events.message import Message, Provenance
from intersession_events.recorded import StreamAppend
from intersession_events.run import RunQueued
from intersession_events.spawn import ResultHanded, SpawnAccepted

Appends = tuple[StreamAppend, ...]


class Causes(NamedTuple):
    """Why and when a step is taken: the event that led to it, the chain it is of, the time in milliseconds."""

    cause: str | None
    correlation: str | None
    time: int


def task_message(accepted: SpawnAccepted, now_ms: int) -> Message:
    """Return the task as the child's first message (PROV-2)."""
    return Message(
        id=accepted.message_id,
        role="user",
        content=accepted.task,
        timestamp=now_ms,
        provenance=Provenance(
            kind="inter_session",
            source_session_key=accepted.requester,
            source_channel=accepted.requester_channel,
            source_tool="sessions_spawn",
        ),
    )


def task_run(accepted: SpawnAccepted, *, chain: tuple[str, ...], hops: int) -> RunQueued:
    """Return the child's run on its task (SPAWN-6, SPAWN-8)."""
    return RunQueued(
        run_id=accepted.run_id,
        session_id=accepted.child_session_id,
        step="message",
        message_id=accepted.message_id,
        system_context=child_context(
            child=accepted.child,
            requester=accepted.requester,
            requester_channel=accepted.requester_channel,
            label=accepted.label,
        ),
        timeout_ms=accepted.run_timeout_ms,
        caller=accepted.caller,
        idempotency_key=accepted.idempotency_key,
        request_digest=accepted.request_digest,
        spawn_id=accepted.spawn_id,
        chain=chain,
        hops=hops,
        model=accepted.model,
        thinking=accepted.thinking,
    )


def announce_step(
    state: Spawn, asked: AnnounceRequested, causes: Causes, appends: Appends
) -> tuple[str, Enqueue]:
    """Return the child's announce turn (SPAWN-9)."""
    accepted = state.accepted
    message = Message(
        id=asked.message_id,
        role="user",
        content=SPAWN_ANNOUNCE_PROMPT,
        timestamp=causes.time,
        provenance=Provenance(
            kind="internal_system", source_session_key=accepted.requester, source_tool="sessions_spawn"
        ),
    )
    queued = RunQueued(
        run_id=asked.run_id,
        session_id="",
        step="announce",
        message_id=asked.message_id,
        system_context=spawn_announce_context(
            run_id=asked.run_id,
            child=accepted.child,
            requester=accepted.requester,
            requester_channel=accepted.requester_channel,
            task=accepted.task,
            result=state.ended.text if state.ended is not None else None,
        ),
        timeout_ms=accepted.announce_timeout_ms,
        spawn_id=accepted.spawn_id,
    )
    return accepted.child, _step(accepted, message, queued, causes, appends)


def result_step(
    state: Spawn, handed: ResultHanded, words: str, causes: Causes, appends: Appends
) -> tuple[str, Enqueue]:
    """Return the child's result as a message to its requester, whose agent runs on it (SPAWN-9)."""
    accepted = state.accepted
    message = Message(
        id=handed.message_id,
        role="user",
        content=words,
        timestamp=causes.time,
        provenance=Provenance(
            kind="inter_session", source_session_key=accepted.child, source_tool="sessions_spawn"
        ),
    )
    queued = RunQueued(
        run_id=handed.run_id,
        session_id="",
        step="message",
        message_id=handed.message_id,
        system_context=result_context(child=accepted.child, requester=handed.requester),
        timeout_ms=accepted.announce_timeout_ms,
        spawn_id=accepted.spawn_id,
    )
    return handed.requester, _step(accepted, message, queued, causes, appends)


def _step(
    accepted: SpawnAccepted, message: Message, queued: RunQueued, causes: Causes, appends: Appends
) -> Enqueue:
    return Enqueue(
        message=message,
        queue=queued,
        flow=ids.spawn_stream(accepted.spawn_id),
        carried=appends,
        causation=causes.cause,
        correlation=causes.correlation,
    )
