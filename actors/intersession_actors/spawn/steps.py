"""The steps of a spawn as commands to a session's actor: the message, its run, and the spawn's own events. Pure."""

from typing import NamedTuple

from msgspec.structs import replace

from intersession_actors import prompt
from intersession_actors.attachments import relative_directory
from intersession_actors.session import Enqueue, message_for
from intersession_actors.spawn.rules import Spawn
from intersession_events import facts
from intersession_events.log import StreamAppend

Appends = tuple[StreamAppend, ...]


class Causes(NamedTuple):
    """Why and when a step is taken: the event that led to it, the budget of its causal chain, the time in milliseconds."""

    cause: str | None
    budget: facts.Budget
    time: int


def start_step(
    accepted: facts.SpawnAccepted, thread: facts.Route | None, causes: Causes, appends: Appends
) -> tuple[str, Enqueue]:
    """Return the beginning of a child: its session, bound to its thread, and the run on its task (SPAWN-6)."""
    asked = accepted.thread
    bound = None
    if thread is not None and asked is not None:
        bound = facts.ThreadBound(route=thread, idle_ms=asked.idle_ms, max_age_ms=asked.max_age_ms)
    run = task_run(accepted)
    provenance = facts.Provenance(
        kind="inter_session",
        source_session_key=accepted.requester,
        source_channel=accepted.requester_channel,
        source_tool="sessions_spawn",
        hops=causes.budget.hops,
    )
    step = _step(message_for(run, accepted.task, provenance, causes.time), run, causes, appends)
    return accepted.child, replace(step, opening=child_opening(accepted), bound=bound, session_id=None)


def child_opening(accepted: facts.SpawnAccepted) -> facts.SessionOpened:
    """Return the beginning of a child's session; its lineage is the spawn's (SPAWN-6)."""
    return facts.SessionOpened(
        key=accepted.child,
        session_id=accepted.child_session_id,
        agent_id=accepted.agent_id,
        opened_by="spawn",
        spawned_by=accepted.requester,
        spawn_depth=accepted.depth,
        spawn_id=accepted.spawn_id,
        sandboxed=accepted.sandboxed,
        label=accepted.label,
        model=accepted.model,
        thinking_level=accepted.thinking,
    )


def task_run(accepted: facts.SpawnAccepted) -> facts.RunQueued:
    """Return the child's run on its task (SPAWN-6, SPAWN-8)."""
    return facts.RunQueued(
        run_id=accepted.run_id,
        session_id=accepted.child_session_id,
        step="message",
        message_id=accepted.message_id,
        system_context=prompt.child_context(
            child=accepted.child,
            requester=accepted.requester,
            requester_channel=accepted.requester_channel,
            label=accepted.label,
            files=_files(accepted),
            mount_path=accepted.mount_path,
        ),
        timeout_ms=accepted.run_timeout_ms,
        caller=accepted.caller,
        idempotency_key=accepted.idempotency_key,
        request_digest=accepted.request_digest,
        spawn_id=accepted.spawn_id,
        model=accepted.model,
        thinking=accepted.thinking,
    )


def _files(accepted: facts.SpawnAccepted) -> prompt.FilesTold | None:
    files = accepted.attachments
    if files is None:
        return None
    total = sum(file.bytes for file in files.files)
    return prompt.FilesTold(
        count=len(files.files), total_bytes=total, place=relative_directory(files.directory)
    )


def announce_run(state: Spawn, asked: facts.AnnounceRequested) -> facts.RunQueued:
    """Return the child's run on its announce turn (SPAWN-9)."""
    accepted = state.accepted
    return facts.RunQueued(
        run_id=asked.run_id,
        session_id=accepted.child_session_id,
        step="announce",
        message_id=asked.message_id,
        system_context=prompt.spawn_announce_context(
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


def announce_step(
    state: Spawn, asked: facts.AnnounceRequested, causes: Causes, appends: Appends
) -> tuple[str, Enqueue]:
    """Return the child's announce turn (SPAWN-9)."""
    accepted, queued = state.accepted, announce_run(state, asked)
    provenance = facts.Provenance(
        kind="internal_system",
        source_session_key=accepted.requester,
        source_tool="sessions_spawn",
        hops=causes.budget.hops,
    )
    message = message_for(queued, prompt.SPAWN_ANNOUNCE_PROMPT, provenance, causes.time)
    return accepted.child, _step(message, queued, causes, appends)


def result_step(
    state: Spawn, handed: facts.ResultHanded, words: str, causes: Causes, appends: Appends
) -> tuple[str, Enqueue]:
    """Return the child's result as a message to its requester, whose agent runs on it (SPAWN-9), unless a limit forbids."""
    accepted = state.accepted
    queued = facts.RunQueued(
        run_id=handed.run_id,
        # A requester that had no session when it spawned has none that a result could go to.
        session_id=accepted.requester_session_id or "",
        step="message",
        message_id=handed.message_id,
        system_context=prompt.result_context(child=accepted.child, requester=handed.requester),
        timeout_ms=accepted.result_timeout_ms,
        spawn_id=accepted.spawn_id,
    )
    provenance = facts.Provenance(
        kind="inter_session",
        source_session_key=accepted.child,
        source_tool="sessions_spawn",
        hops=causes.budget.hops,
    )
    message = message_for(queued, words, provenance, causes.time)
    step = _step(message, queued, causes, appends)
    return handed.requester, step if handed.limit is None else replace(step, queue=None)


def _step(message: facts.Message, queued: facts.RunQueued, causes: Causes, appends: Appends) -> Enqueue:
    return Enqueue(
        budget=causes.budget,
        message=message,
        queue=queued,
        session_id=queued.session_id,
        flow=appends[0].stream,
        carried=appends,
        causation=causes.cause,
    )
