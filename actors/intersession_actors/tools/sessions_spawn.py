"""`sessions_spawn`: a sub-agent for one task (SPAWN)."""

import hashlib
import math
from typing import Any, Literal

import msgspec

from intersession_actors.commands import OpenSpawn
from intersession_actors.core import CallingRun, Core
from intersession_actors.errors import ToolRefused
from intersession_actors.spawn_access import (
    SpawnAllowed,
    SpawnRefused,
    SpawnRequester,
    SpawnWish,
    judge_spawn,
)
from intersession_actors.spawn_steps import task_message, task_run
from intersession_actors.tools.arguments import invalid, read_arguments
from intersession_actors.tools.tool_call import Answer, Caller
from intersession_events import ids
from intersession_events.crash_points import crash_point
from intersession_events.keys import SessionKey
from intersession_events.spawn import SpawnAccepted

MAX_RUN_TIMEOUT_S = 31_536_000


class AttachAs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Where the child is told its files would be mounted."""

    mount_path: str | None = None


class SpawnArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What a caller gives (SPAWN-1)."""

    task: str
    label: str | None = None
    agent_id: str | None = None
    model: str | None = None
    thinking: str | None = None
    run_timeout_seconds: float | None = None
    thread: bool = False
    mode: Literal["run", "session"] | None = None
    cleanup: Literal["delete", "keep"] = "keep"
    sandbox: Literal["inherit", "require"] = "inherit"
    attachments: tuple[dict[str, Any], ...] = ()
    attach_as: AttachAs | None = None
    runtime: Literal["subagent", "acp"] = "subagent"
    idempotency_key: str | None = None


def sessions_spawn(core: Core, caller: Caller, arguments: dict[str, Any]) -> Answer:
    """Start a sub-agent on a task and answer at once; its result is announced when it has ended.

    Raises:
        ToolRefused: nothing was started and nothing is left behind.
    """
    given = read_arguments(SpawnArguments, arguments)
    if not given.task.strip():
        raise invalid("task", "blank, write what the sub-agent should do")
    seconds = given.run_timeout_seconds
    if seconds is not None and not (math.isfinite(seconds) and 0 <= seconds <= MAX_RUN_TIMEOUT_S):
        raise invalid("runTimeoutSeconds", f"{seconds:g} is out of range, give 0 to {MAX_RUN_TIMEOUT_S}")
    _refuse_what_is_off(core, given)
    digest = hashlib.sha256(msgspec.json.encode(given, order="sorted")).hexdigest()
    run_id = core.run_id(
        caller=caller.name,
        method="sessions_spawn",
        key=given.idempotency_key,
        calling=caller.run,
        ordinal=caller.ordinal,
    )
    known = (
        core.runs.by_idempotency_key(caller.name, given.idempotency_key) if given.idempotency_key else None
    )
    if known is not None and known.digest != digest:
        raise ToolRefused(
            "idempotency_conflict", "idempotencyKey: it was used for another task, use a new key"
        )
    if known is not None:
        return _answer(core, run_id)
    allowed = _judge(core, caller, given)
    crash_point("P1")
    _accept(core, caller, given, allowed, run_id=run_id, digest=digest)
    return _answer(core, run_id)


def _refuse_what_is_off(core: Core, given: SpawnArguments) -> None:
    if given.runtime == "acp":
        raise ToolRefused("not_supported", "runtime: no acp runtime is registered here, use subagent")
    if given.thread:
        raise ToolRefused("no_threads", "thread: the requester's channel has no threads, spawn without one")
    if given.attachments:
        if not core.config.tools.sessions_spawn.attachments.enabled:
            raise ToolRefused(
                "forbidden",
                "attachments: they are off, tools.sessions_spawn.attachments.enabled turns them on",
            )
        raise ToolRefused(
            "not_supported", "attachments: not available in this version, put the content in the task"
        )


def _judge(core: Core, caller: Caller, given: SpawnArguments) -> SpawnAllowed:
    row = core.sessions.get(caller.key) if caller.key is not None else None
    requester = SpawnRequester(
        key=caller.requester.key,
        depth=row.spawn_depth if row is not None else 0,
        sandboxed=caller.requester.sandboxed,
        running=core.flows.running_children(caller.key) if caller.key is not None else 0,
    )
    verdict = judge_spawn(
        core.config,
        requester,
        SpawnWish(
            agent_id=given.agent_id,
            model=given.model,
            thinking=given.thinking,
            sandbox=given.sandbox,
            run_timeout_seconds=given.run_timeout_seconds,
            mode=given.mode,
            thread=given.thread,
            cleanup=given.cleanup,
        ),
    )
    if isinstance(verdict, SpawnRefused):
        raise ToolRefused(verdict.code, verdict.error)
    return verdict


def _accept(
    core: Core, caller: Caller, given: SpawnArguments, allowed: SpawnAllowed, *, run_id: str, digest: str
) -> None:
    config, log_id = core.config, core.log.log_id
    child = SessionKey.subagent(allowed.agent_id, ids.derive(log_id, "child", run_id))
    row = core.calling_row(caller.requester)
    opening = msgspec.structs.replace(
        core.opening(
            child,
            by="spawn",
            sandboxed=allowed.sandboxed,
            label=given.label,
            model=allowed.model,
            thinking_level=allowed.thinking,
        ),
        session_id=ids.derive(log_id, "session", run_id),
        spawned_by=caller.key,
        spawn_depth=allowed.depth,
    )
    calling = caller.run or CallingRun(run_id=run_id, attempt=0)
    accepted = SpawnAccepted(
        spawn_id=ids.derive(log_id, "spawn", run_id),
        run_id=run_id,
        child=str(child),
        child_session_id=opening.session_id,
        agent_id=allowed.agent_id,
        task=given.task,
        message_id=ids.derive(log_id, "message", run_id),
        caller=caller.name,
        requester=caller.key,
        requester_session_id=row.session_id if row is not None else None,
        requester_run_id=caller.run.run_id if caller.run is not None else None,
        requester_channel=core.reader.channel_of(row) if row is not None else None,
        route=core.delivery(row, caller.requester.key) if caller.requester.key is not None else None,
        label=given.label,
        model=allowed.model,
        thinking=allowed.thinking,
        mode=allowed.mode,
        cleanup=given.cleanup,
        run_timeout_ms=allowed.run_timeout_ms,
        announce_timeout_ms=config.session.exchange.turn_timeout_ms,
        archive_after_ms=allowed.archive_after_ms,
        sandboxed=allowed.sandboxed,
        depth=allowed.depth,
        idempotency_key=given.idempotency_key,
        request_digest=digest,
    )
    command = OpenSpawn(
        accepted=accepted,
        opening=opening,
        message=task_message(accepted, core.clock.now_ms()),
        queue=task_run(accepted, chain=(*calling.chain, str(child)), hops=calling.hops),
        causation=calling.cause,
        correlation=calling.root or run_id,
    )
    core.ask(lambda told: core.supervisor.tell_flow(ids.spawn_stream(accepted.spawn_id), told), command)


def _answer(core: Core, run_id: str) -> Answer:
    summary = core.flows.spawn(ids.derive(core.log.log_id, "spawn", run_id))
    if summary is None:
        raise ToolRefused(
            "idempotency_conflict", "idempotencyKey: it was used for another tool, use a new key"
        )
    return Answer(
        {"status": "accepted", "runId": run_id, "childSessionKey": summary.child, "mode": summary.mode}
    )
