"""The steps of a spawn as commands to a session's actor: the message, its run, and the spawn's own events. Pure."""

from functools import partial

from msgspec.structs import replace

from intersession_actors.outside.attachments.checks import relative_directory
from intersession_actors.owners.flows.steps import Appends, step_of
from intersession_actors.owners.session.commands import Archive
from intersession_actors.owners.spawn.rules import Spawn, announced_text, replied_for_child
from intersession_actors.owners.streams.commands import RunEnded, Step
from intersession_actors.owners.streams.effects import Through
from intersession_actors.owners.streams.texts import Replies
from intersession_actors.rules.prompt import instructions as prompt_instructions
from intersession_events import facts


def start_step(
    state: Spawn, thread: facts.Route | None, task: str, cause: str | None, appends: Appends
) -> tuple[str, Step]:
    """Return the beginning of a child: its session with its thread, and the run on its task (SPAWN-6)."""
    accepted = state.accepted
    bound, asked = None, accepted.thread
    if thread is not None and asked is not None:
        bound = facts.ThreadBound(route=thread, idle_ms=asked.idle_ms, max_age_ms=asked.max_age_ms)
    step = step_of(
        task_run(accepted),
        task,
        appends,
        state.budget,
        said_by=accepted.requester,
        channel=accepted.requester_channel,
        causation=cause,
    )
    return accepted.child, replace(
        step, opening=child_opening(accepted), bound=bound, given=accepted.transcript, session_id=None
    )


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
        answers=accepted.message_id,
        instructions=_task(accepted),
        timeout_ms=accepted.run_timeout_ms,
        caller=accepted.caller,
        idempotency_key=accepted.idempotency_key,
        request_digest=accepted.request_digest,
        request_digests=accepted.request_digests,
        spawn_id=accepted.spawn_id,
        model=accepted.model,
        thinking=accepted.thinking,
    )


def _task(accepted: facts.SpawnAccepted) -> facts.Instructions:
    """Return what a child is told of its place."""
    files = accepted.attachments
    return facts.Instructions(
        form="task.1",
        session=accepted.child,
        other=accepted.requester,
        other_channel=accepted.requester_channel,
        label=accepted.label,
        files=0 if files is None else len(files.files),
        total_bytes=0 if files is None else sum(file.bytes for file in files.files),
        place="" if files is None else relative_directory(files.directory),
        mount_path=accepted.mount_path,
    )


def announce_run(state: Spawn, asked: facts.AnnounceRequested, texts: Replies) -> facts.RunQueued:
    """Return the child's run on its announce turn (SPAWN-9)."""
    accepted = state.accepted
    return facts.RunQueued(
        run_id=asked.run_id,
        session_id=accepted.child_session_id,
        step="announce",
        answers=asked.message_id,
        instructions=facts.Instructions(
            form="taskAnnounce.1",
            session=accepted.child,
            other=accepted.requester,
            other_channel=accepted.requester_channel,
            asked=facts.Quote(message_id=accepted.message_id) if accepted.task is None else accepted.task,
            replied=replied_for_child(state, texts),
        ),
        timeout_ms=accepted.announce_timeout_ms,
        spawn_id=accepted.spawn_id,
    )


def announce_step(
    state: Spawn, queued: facts.RunQueued, cause: str | None, appends: Appends
) -> tuple[str, Step]:
    """Return the child's announce turn (SPAWN-9)."""
    accepted = state.accepted
    return accepted.child, step_of(
        queued,
        prompt_instructions.SPAWN_ANNOUNCE_PROMPT,
        appends,
        state.budget,
        said_by=accepted.requester,
        kind="internal_system",
        causation=cause,
    )


def result_step(
    state: Spawn, handed: facts.ResultHanded, text: str, cause: str | None, appends: Appends
) -> tuple[str, Step]:
    """Return the child's result as a message to its requester, whose agent runs on it (SPAWN-9), unless a limit forbids it."""
    accepted = state.accepted
    queued = facts.RunQueued(
        run_id=handed.run_id,
        # A requester that had no session when it spawned has none that a result could go to.
        session_id=accepted.requester_session_id or "",
        step="message",
        answers=handed.message_id,
        instructions=facts.Instructions(form="result.1", session=handed.requester, other=accepted.child),
        timeout_ms=accepted.result_timeout_ms,
        route=accepted.route if state.claimed else None,
        spawn_id=accepted.spawn_id,
    )
    step = step_of(queued, text, appends, state.budget, said_by=accepted.child, causation=cause)
    return handed.requester, step if handed.limit is None else replace(step, queue=None)


def archive_step(state: Spawn, archived: facts.ChildArchived, appends: Appends) -> tuple[str, Step]:
    """Return the archiving of an idle child whose time is over (SPAWN-11)."""
    return archived.child, Archive(
        reason=archived.reason,
        session_id=state.accepted.child_session_id,
        flow=appends[0].stream,
        carried=appends,
        only_idle=True,
    )


def task_of(accepted: facts.SpawnAccepted, texts: Replies) -> str:
    """Return the task of a child."""
    return texts.asked(accepted.run_id) if accepted.task is None else accepted.task


def step_asked(
    after: Spawn, event: facts.Event, texts: Replies, cause: str | None, transcript_path: str | None
) -> Through | None:
    """Return the step that an event asks of a session: the task, the announce turn, taking the result, archiving."""
    announced: facts.AnnounceDecided | None = None
    for part in facts.parts_of(event):
        if isinstance(part, facts.AnnounceDecided):
            announced = part
        elif isinstance(part, facts.ResultHanded) and announced is not None:
            text = announced_text(after, announced, texts, transcript_path)
            return partial(result_step, after, part, text, cause)
        elif (step := _asked_by(after, part, texts, cause)) is not None:
            return step
    return None


def _asked_by(after: Spawn, event: facts.Event, texts: Replies, cause: str | None) -> Through | None:
    match event:
        case facts.SpawnAccepted() if (
            after.phase == "task"
        ):  # else there is no child before it has what it needs
            return partial(start_step, after, None, task_of(after.accepted, texts), cause)
        case facts.ThreadOpened(route=route):
            return partial(start_step, after, route, task_of(after.accepted, texts), cause)
        case facts.AttachmentsReady():
            return partial(start_step, after, None, task_of(after.accepted, texts), cause)
        case facts.AnnounceRequested():
            return partial(announce_step, after, announce_run(after, event, texts), cause)
        case facts.ChildArchived() if event.reason != "deleted":
            return partial(archive_step, after, event)
        case _:
            return None


def way_out(accepted: facts.SpawnAccepted, command: object) -> tuple[facts.Route | None, str]:
    """Return the announce's route and speaker: the child's thread while it is bound (SPAWN-12)."""
    thread = command.thread if isinstance(command, RunEnded) else None
    if thread is not None:
        return thread, accepted.child
    return accepted.route, accepted.requester or accepted.child
