"""`sessions_spawn`: a sub-agent for one task (SPAWN)."""

import os
from collections.abc import Mapping
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from intersession_actors.calls.service import asking
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.callers import AccessSummary, Call
from intersession_actors.calls.service.deliveries import route_of
from intersession_actors.calls.service.pending import Pending, Result
from intersession_actors.calls.service.service import Service
from intersession_actors.calls.tools.awaited_child import AwaitedChild, check_schema, with_schema
from intersession_actors.outside.agents.runners import ACP
from intersession_actors.outside.attachments.checks import (
    AttachmentArgument,
    CheckedFile,
    Reference,
    check_attachments,
    check_mount_path,
    receipt,
    taken_out,
)
from intersession_actors.outside.attachments.files import can_be_safe, discard_staged, stage_files
from intersession_actors.outside.attachments.workspaces import workspace_of
from intersession_actors.owners.spawn.commands import AskStarted, OpenSpawn
from intersession_actors.owners.spawn.inheritance import NOTHING, inheritance_of
from intersession_actors.owners.spawn.preparation import place_of
from intersession_actors.rules.config.settings import milliseconds
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate import limits, values
from intersession_actors.rules.gate.values import is_storable
from intersession_actors.rules.policy.sending import Verdict
from intersession_actors.rules.policy.spawning import SpawnAllowed, SpawnRefused, SpawnWish, judge_spawn
from intersession_events.basics import ids
from intersession_events.basics.crash_points import crash_point
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonObject, JsonValue, present
from intersession_events.facts import Attachments, SpawnAccepted, ThreadAsked, ready, same_request

LONGER_THAN_A_CHANNEL_S: Final = 30.0
"""How much longer than for a channel a call waits for a child's files and thread."""


MOST_TITLE: Final = 80
HOUR_S: Final = 3600


class AttachAs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Where the child is told its files would be mounted."""

    mount_path: Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": limits.MOUNT.most})] | None = None


@ready
class SessionsSpawn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments (SPAWN-1)."""

    task: limits.MessageText
    label: limits.Label | None = None
    agent_id: limits.AgentId | None = None
    model: limits.Name | None = None
    thinking: limits.Name | None = None
    run_timeout_seconds: Annotated[
        float | None, msgspec.Meta(extra_json_schema={"minimum": 0, "maximum": limits.RUN_TIME.most})
    ] = None
    thread: bool = False
    mode: Literal["run", "session"] | None = None
    cleanup: Literal["delete", "keep"] = "keep"
    sandbox: Literal["inherit", "require"] = "inherit"
    attachments: tuple[AttachmentArgument, ...] = ()
    attach_as: AttachAs | None = None
    runtime: Literal["subagent", "acp"] = "subagent"
    wait: Annotated[
        float | None, msgspec.Meta(extra_json_schema={"minimum": 0, "maximum": limits.WAIT.most})
    ] = None
    output_schema: dict[str, JsonValue] | None = None
    context: Literal["isolated", "fork"] = "isolated"
    idempotency_key: limits.IdempotencyKey | None = None


class _CheckedSpawn(NamedTuple):
    """Checked arguments of a spawn, and their digest; a fork has placeholders for files."""

    given: SessionsSpawn
    mount_path: str | None
    digest: str
    references: Mapping[int, Reference]


def start_subagent(service: Service, call: Call, arguments: Result) -> Result | Pending:
    """Start a sub-agent on a task and answer at once; its result is announced later.

    Where files or a thread have to be there first, that is waited for, and holds no thread of a door.

    Raises:
        ToolRefused: nothing was started and nothing is left behind.
    """
    arguments, references = taken_out(arguments) if service.log.forked is not None else (arguments, {})
    given = read_arguments(SessionsSpawn, arguments)
    if not given.task.strip():
        raise values.invalid("task", "blank, write what the sub-agent should do")
    seconds = given.run_timeout_seconds
    if seconds is not None:
        values.seconds_of("runTimeoutSeconds", seconds, most=limits.RUN_TIME.most)
    waits = 0.0 if given.wait is None else values.seconds_of("wait", given.wait)
    if given.output_schema is not None:
        check_schema(given.output_schema)
        if not waits or given.cleanup == "delete":
            raise values.invalid("outputSchema", 'it needs a wait, and cleanup "keep", give both')
    mount_path = check_mount_path(given.attach_as.mount_path if given.attach_as is not None else None)
    asked = _CheckedSpawn(given, mount_path, _digest_of(given), references)
    run_id = asking.run_id_of(service, call, method="sessions_spawn", idempotency_key=given.idempotency_key)
    # One after the other for one requester: what the limit is judged by is in the log when the next one is judged.
    with service.spawning.inside(call.caller.key or call.caller.name):
        known = _known(service, call, asked, run_id)
        accepted, started = (known, None) if known is not None else _begin(service, call, asked, run_id)
    call.summary = AccessSummary(keys=(accepted.child,))
    if waits:
        return AwaitedChild(service, call, accepted, _answer(accepted), waits, given.output_schema).result()
    if accepted.attachments is not None or accepted.thread is not None:
        # A channel is given up before that.
        seconds = service.config.deliveries.timeout_seconds + LONGER_THAN_A_CHANNEL_S
        late = f"the sub-agent was not ready within {seconds:g} s"
        return (started or _ask_again(service, accepted)).pending(seconds, late, lambda: _answer(accepted))
    return _answer(accepted)


def _digest_of(given: SessionsSpawn) -> str:
    """Return the digest of a request; one that uses no newer field has the one that it always had."""
    newer = {
        "wait": given.wait,
        "outputSchema": given.output_schema,
        "context": None if given.context == "isolated" else given.context,
    }
    asked: JsonObject = {
        name: value for name, value in msgspec.to_builtins(given).items() if name not in newer
    }
    return asking.digest_of(asked | present(newer))


def _check_acp(service: Service, given: SessionsSpawn) -> None:
    if not service.world.agents.has(ACP):
        raise ToolRefused("not_supported", "runtime: no acp runtime is registered here, use subagent")
    if given.attachments:
        raise values.invalid(
            "attachments", "not with runtime acp, use subagent or put the content in the task"
        )


def _known(service: Service, call: Call, asked: _CheckedSpawn, run_id: str) -> SpawnAccepted | None:
    """Return the spawn that was accepted before: under the same key (SPAWN-6), in an attempt that was cut off (SEND-13), or before a fork's cut (FORK-4)."""
    key = asked.given.idempotency_key
    if key is None and not call.again:
        return None
    stream = ids.spawn_stream(asking.flow_begun_by(service, "spawn", run_id))
    first = next((item.event for item in service.log.stream(stream, to=1)), None)
    # What was recorded of a call is without the contents of its files, so that it has another digest.
    if isinstance(first, SpawnAccepted) and (call.again or same_request(first.digests, (asked.digest,))):
        return first
    if key is not None and (
        first is not None or service.runs.by_idempotency_key(call.caller.name, key) is not None
    ):
        raise asking.key_conflict("task or tool")
    return None


def _begin(
    service: Service, call: Call, asked: _CheckedSpawn, run_id: str
) -> tuple[SpawnAccepted, asking.FirstAnswer]:
    """Judge a spawn, stage its files, and have it accepted."""
    given = asked.given
    if given.runtime == "acp":
        _check_acp(service, given)
    allowed, started = _judge(service, call, given), asking.FirstAnswer()
    origin = asking.origin_of(service, call.caller, run_id)
    files: tuple[CheckedFile, ...] = ()
    if given.attachments:
        rules = service.config.tools.sessions_spawn.attachments
        files = check_attachments(given.attachments, rules, asked.references)
    accepted = _accepted(service, call, asked, allowed, files=files, run_id=run_id)
    spoken = _check_policy(service, accepted)
    with asking.keeping_refusals(service, call.caller, origin, "sessions_spawn", accepted.child):
        command = OpenSpawn(
            budget=asking.gone_on(service, origin, accepted.child, "task"),
            accepted=accepted,
            started=started,
            causation=origin.causation,
            judged=tuple(one for one in (allowed.judged, spoken.judged) if one is not None),
        )
        _stage(service, accepted, files)
        crash_point("P1")
        try:
            asking.ask_flow(service, command)
        except ToolRefused as refused:
            if accepted.attachments is not None and refused.code != "unavailable":
                discard_staged(place_of(service.log.log_id, accepted.spawn_id, accepted.attachments))
            raise
    return accepted, started


def _accepted(
    service: Service,
    call: Call,
    asked: _CheckedSpawn,
    allowed: SpawnAllowed,
    *,
    files: tuple[CheckedFile, ...],
    run_id: str,
) -> SpawnAccepted:
    """Return the event that accepts a spawn.

    Raises:
        ToolRefused: there is no thread to be had (`no_threads`), or no place for the files (`not_supported`).
    """
    log_id = service.log.log_id
    given = asked.given
    begins = NOTHING
    if given.context == "fork" and call.caller.key is not None:
        begins = inheritance_of(service.log, call.caller.key, run_id, service.clock.now_ms())
    spawn_id = asking.flow_begun_by(service, "spawn", run_id)
    made = SessionKey.acp if given.runtime == "acp" else SessionKey.subagent
    child = str(made(allowed.agent_id, ids.derive(log_id, "child", run_id)))
    caller, requester = call.caller, call.requester
    row = asking.calling_row(service, requester)
    route = route_of(row, requester.key) if requester.key is not None else None
    accepted = SpawnAccepted(
        spawn_id=spawn_id,
        run_id=run_id,
        child=child,
        child_session_id=ids.derive(log_id, "session", run_id),
        agent_id=allowed.agent_id,
        task=given.task if given.output_schema is None else with_schema(given.task, given.output_schema),
        message_id=ids.derive(log_id, "message", run_id),
        caller=caller.name,
        requester=caller.key,
        requester_session_id=row.session_id if row is not None else None,
        requester_run_id=caller.run.run_id if caller.run is not None else None,
        requester_channel=service.reader.channel_of(row) if row is not None else None,
        route=route,
        label=given.label,
        model=allowed.model,
        thinking=allowed.thinking,
        mode=allowed.mode,
        cleanup=allowed.cleanup,
        run_timeout_ms=allowed.run_timeout_ms,
        announce_timeout_ms=service.config.session.exchange.turn_timeout_ms,
        result_timeout_ms=service.config.run_timeout_ms(),
        announce_details=service.config.agents.defaults.subagents.announce_details,
        archive_after_ms=allowed.archive_after_ms,
        sandboxed=allowed.sandboxed,
        depth=allowed.depth,
        idempotency_key=given.idempotency_key,
        request_digests=(asked.digest, *call.digests),
        attachments=_attachments(service, allowed.agent_id, files, spawn_id) if files else None,
        mount_path=asked.mount_path,
        awaited_until_ms=service.clock.now_ms() + milliseconds(given.wait) if given.wait else 0,
        given=begins.messages,
        given_to=begins.version,
        given_without=begins.left_out,
        given_summary=begins.summary,
    )
    if not given.thread:
        return accepted
    return msgspec.structs.replace(accepted, thread=_thread(service, accepted))


def _attachments(
    service: Service, agent_id: str, files: tuple[CheckedFile, ...], spawn_id: str
) -> Attachments:
    root = os.fspath(workspace_of(service.config, agent_id, service.log.place))
    if not is_storable(root):
        raise ToolRefused(
            "unsafe_path",
            "attachments: the workspace's path is not valid Unicode and can't be recorded, ask the operator to move it",
        )
    return Attachments(
        root=root,
        directory=ids.derive(service.log.log_id, "attachments", spawn_id),
        files=tuple(file.file for file in files),
        retain=service.config.tools.sessions_spawn.attachments.retain_on_session_keep,
        withheld=any(file.withheld for file in files),
    )


def _thread(service: Service, accepted: SpawnAccepted) -> ThreadAsked:
    """Return the thread to be asked for, on the requester's channel."""
    route = accepted.route
    if route is None:
        raise _no_thread("the requester has no channel")
    bindings = service.config.thread_bindings(route.channel)
    if bindings.enabled is False:
        raise _no_thread(
            f"threads are off (session.threadBindings.enabled, channels.{route.channel}.threadBindings.enabled)"
        )
    if bindings.spawn_subagent_sessions is False:
        raise _no_thread(
            f"off for sub-agents (channels.{route.channel}.threadBindings.spawnSubagentSessions)"
        )
    if not service.world.channels.has_threads(route.channel):
        raise _no_thread(f"the requester's channel, {route.channel}, has no threads")
    return ThreadAsked(
        channel=route.channel,
        to=route.to,
        account=route.account,
        title=_title(accepted.label or accepted.task or ""),
        key=ids.derive(service.log.log_id, "thread", accepted.spawn_id),
        idle_ms=milliseconds((bindings.idle_hours or 0) * HOUR_S),
        max_age_ms=milliseconds((bindings.max_age_hours or 0) * HOUR_S),
    )


def _title(text: str) -> str:
    """Return the first line of a text as a title: what can't be seen is left out."""
    line = next((line for line in text.strip().splitlines() if line.strip()), "")
    shown = "".join(character for character in line if character.isprintable()).strip()
    return shown if len(shown) <= MOST_TITLE else shown[: MOST_TITLE - 1] + "…"


def _no_thread(why: str) -> ToolRefused:
    return ToolRefused("no_threads", f"thread: {why}, spawn without one")


def _check_policy(service: Service, accepted: SpawnAccepted) -> Verdict:
    """Ask the send policy for the child: it has a key, and no channel and no setting of its own yet (POL-3)."""
    verdict = service.world.rules.judge_child(accepted.child)
    if not verdict.allowed:
        error = f"agentId: send policy forbids it ({verdict.rule})"
        raise ToolRefused("policy_denied", error, judged=verdict.judged)
    return verdict


def _stage(service: Service, accepted: SpawnAccepted, files: tuple[CheckedFile, ...]) -> None:
    if accepted.attachments is None or accepted.attachments.withheld:
        return
    if not can_be_safe():
        raise ToolRefused("not_supported", "attachments: not on this system, put the content in the task")
    stage_files(
        place_of(service.log.log_id, accepted.spawn_id, accepted.attachments), accepted.attachments, files
    )


def _ask_again(service: Service, accepted: SpawnAccepted) -> asking.FirstAnswer:
    """Ask how the start of a spawn that was accepted before came out."""
    started = asking.FirstAnswer()
    stream = ids.spawn_stream(accepted.spawn_id)
    service.supervisor.tell_flow(stream, AskStarted(stream=stream, started=started))
    return started


def _judge(service: Service, call: Call, given: SessionsSpawn) -> SpawnAllowed:
    key = call.caller.key
    running = service.flows.running_children(key) if key is not None else 0
    wish = msgspec.convert(given, SpawnWish, from_attributes=True)
    verdict = judge_spawn(service.config, call.requester, wish, running=running)
    if isinstance(verdict, SpawnRefused):
        raise ToolRefused(verdict.code, verdict.error, judged=verdict.judged)
    return verdict


def _answer(accepted: SpawnAccepted) -> Result:
    answer: Result = {
        "status": "accepted",
        "runId": accepted.run_id,
        "childSessionKey": accepted.child,
        "mode": accepted.mode,
    }
    if accepted.attachments is not None:
        answer["attachments"] = receipt(accepted.attachments)
    return answer
