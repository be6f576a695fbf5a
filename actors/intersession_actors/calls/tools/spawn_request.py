"""Turns a spawn that is allowed into the event that accepts it: child, route, files, thread (SPAWN-6, SPAWN-12)."""

import os
from typing import Final, Literal

import msgspec

from intersession_actors.calls.service.asking import flow_begun_by
from intersession_actors.calls.service.callers import Call
from intersession_actors.calls.service.deliveries import route_of
from intersession_actors.calls.service.openings import calling_row
from intersession_actors.calls.service.service import Service
from intersession_actors.outside.attachments.checks import CheckedFile
from intersession_actors.outside.attachments.files import Place
from intersession_actors.outside.attachments.workspaces import workspace_of
from intersession_actors.rules.config.settings import milliseconds
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import is_storable
from intersession_actors.rules.policy.spawning import SpawnAllowed
from intersession_events.basics import ids
from intersession_events.basics.keys.key import SessionKey
from intersession_events.facts import Attachments, SpawnAccepted, ThreadAsked

MOST_TITLE: Final = 80
HOUR_S: Final = 3600


class SpawnWords(msgspec.Struct, frozen=True, kw_only=True):
    """What a spawn takes over from its caller as it is."""

    task: str
    label: str | None = None
    mount_path: str | None = None
    idempotency_key: str | None = None
    digest: str
    wants_thread: bool = False
    runtime: Literal["subagent", "acp"] = "subagent"


def accepted_spawn(
    service: Service,
    call: Call,
    words: SpawnWords,
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
    spawn_id = flow_begun_by(service, "spawn", run_id)
    made = SessionKey.acp if words.runtime == "acp" else SessionKey.subagent
    child = str(made(allowed.agent_id, ids.derive(log_id, "child", run_id)))
    caller, requester = call.caller, call.requester
    row = calling_row(service, requester)
    route = route_of(row, requester.key) if requester.key is not None else None
    accepted = SpawnAccepted(
        spawn_id=spawn_id,
        run_id=run_id,
        child=child,
        child_session_id=ids.derive(log_id, "session", run_id),
        agent_id=allowed.agent_id,
        task=words.task,
        message_id=ids.derive(log_id, "message", run_id),
        caller=caller.name,
        requester=caller.key,
        requester_session_id=row.session_id if row is not None else None,
        requester_run_id=caller.run.run_id if caller.run is not None else None,
        requester_channel=service.reader.channel_of(row) if row is not None else None,
        route=route,
        label=words.label,
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
        idempotency_key=words.idempotency_key,
        request_digest=words.digest,
        attachments=_attachments(service, allowed.agent_id, files, spawn_id) if files else None,
        mount_path=words.mount_path,
    )
    if not words.wants_thread:
        return accepted
    return msgspec.structs.replace(accepted, thread=_thread(service, accepted))


def place_of(service: Service, accepted: SpawnAccepted, attachments: Attachments) -> Place:
    """Return where a spawn's files go."""
    return Place(root=attachments.root, log_id=service.log.log_id, spawn_id=accepted.spawn_id)


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
