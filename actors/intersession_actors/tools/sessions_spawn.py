"""`sessions_spawn`: a sub-agent for one task (SPAWN)."""

import hashlib
import math
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Final, Literal

import msgspec

from intersession_actors.agents import ACP
from intersession_actors.attachments import (
    AttachmentArgument,
    GivenFile,
    can_be_safe,
    check_attachments,
    check_mount_path,
    discard_staged,
    receipt,
    stage_files,
)
from intersession_actors.errors import ToolRefused
from intersession_actors.policy import SpawnAllowed, SpawnRefused, SpawnRequester, SpawnWish, judge_spawn
from intersession_actors.service import AccessSummary, Caller, Service, invalid, read_arguments
from intersession_actors.spawn import AskStarted, OpenSpawn
from intersession_actors.streams import Accepted, Refused
from intersession_actors.tools.call import Answer
from intersession_actors.tools.spawn_request import SpawnWords, accepted_spawn, place_of
from intersession_events import ids
from intersession_events.crash_points import crash_point
from intersession_events.facts import SpawnAccepted, ready

MAX_RUN_TIMEOUT_S: Final = 31_536_000
PREPARATION_TIMEOUT_S: Final = 90.0
"""How long a call waits for a child's files and thread; a channel is given up before."""


class AttachAs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Where the child is told its files would be mounted."""

    mount_path: str | None = None


@ready
class SessionsSpawn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
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
    attachments: tuple[AttachmentArgument, ...] = ()
    attach_as: AttachAs | None = None
    runtime: Literal["subagent", "acp"] = "subagent"
    idempotency_key: str | None = None


def start_subagent(service: Service, caller: Caller, arguments: dict[str, Any]) -> Answer:
    """Start a sub-agent on a task and answer at once; its result is announced when it has ended.

    Raises:
        ToolRefused: nothing was started and nothing is left behind.
    """
    given = read_arguments(SessionsSpawn, arguments)
    if not given.task.strip():
        raise invalid("task", "blank, write what the sub-agent should do")
    seconds = given.run_timeout_seconds
    if seconds is not None and not (math.isfinite(seconds) and 0 <= seconds <= MAX_RUN_TIMEOUT_S):
        raise invalid("runTimeoutSeconds", f"{seconds:g} is out of range, give 0 to {MAX_RUN_TIMEOUT_S}")
    if given.runtime == "acp":
        _check_acp(service, given)
    words = SpawnWords(
        task=given.task,
        label=given.label,
        mount_path=check_mount_path(given.attach_as.mount_path if given.attach_as is not None else None),
        idempotency_key=given.idempotency_key,
        digest=hashlib.sha256(msgspec.json.encode(given, order="sorted")).hexdigest(),
        wants_thread=given.thread,
        runtime=given.runtime,
    )
    run_id = service.run_id(
        caller=caller.name,
        method="sessions_spawn",
        key=given.idempotency_key,
        calling=caller.run,
        ordinal=caller.ordinal,
    )
    # One after the other for one requester: what the limit is judged by is in the log when the next one is judged.
    with service.spawning.inside(caller.key or caller.name):
        known = _known(service, caller, words, run_id)
        accepted, started = (
            (known, None) if known is not None else _begin(service, caller, given, words, run_id)
        )
    caller.summary = AccessSummary(keys=(accepted.child,))
    if accepted.attachments is not None or accepted.thread is not None:
        _wait_until_started(started or _ask_again(service, accepted))
    return Answer(_answer(accepted))


def _check_acp(service: Service, given: SessionsSpawn) -> None:
    if not service.world.agents.has(ACP):
        raise ToolRefused("not_supported", "runtime: no acp runtime is registered here, use subagent")
    if given.attachments:
        raise invalid("attachments", "not with runtime acp, use subagent or put the content in the task")


def _known(service: Service, caller: Caller, words: SpawnWords, run_id: str) -> SpawnAccepted | None:
    """Return the spawn that was accepted under the same key before (SPAWN-6)."""
    key = words.idempotency_key
    if key is None:
        return None
    stream = ids.spawn_stream(ids.derive(service.log.log_id, "spawn", run_id))
    first = next((item.event for item in service.log.stream(stream, to=1)), None)
    if isinstance(first, SpawnAccepted) and first.request_digest == words.digest:
        return first
    if first is not None or service.runs.by_idempotency_key(caller.name, key) is not None:
        raise ToolRefused(
            "idempotency_conflict", "idempotencyKey: it was used for another task or tool, use a new key"
        )
    return None


def _begin(
    service: Service, caller: Caller, given: SessionsSpawn, words: SpawnWords, run_id: str
) -> "tuple[SpawnAccepted, Future[Accepted | Refused]]":
    """Judge a spawn, stage its files, and have it accepted."""
    allowed = _judge(service, caller, given)
    files: tuple[GivenFile, ...] = ()
    if given.attachments:
        files = check_attachments(given.attachments, service.config.tools.sessions_spawn.attachments)
    accepted = accepted_spawn(service, caller, words, allowed, files=files, run_id=run_id)
    _stage(service, accepted, files)
    crash_point("P1")
    started: Future[Accepted | Refused] = Future()
    command = OpenSpawn(
        accepted=accepted,
        started=_into(started),
        causation=caller.run.cause if caller.run is not None else None,
        correlation=(caller.run.root if caller.run is not None else None) or run_id,
    )
    stream = ids.spawn_stream(accepted.spawn_id)
    try:
        service.ask(lambda told: service.supervisor.tell_flow(stream, told), command)
    except ToolRefused as refused:
        if accepted.attachments is not None and refused.code != "unavailable":
            discard_staged(place_of(service, accepted, accepted.attachments))
        raise
    return accepted, started


def _stage(service: Service, accepted: SpawnAccepted, files: tuple[GivenFile, ...]) -> None:
    if accepted.attachments is None:
        return
    if not can_be_safe():
        raise ToolRefused("not_supported", "attachments: not on this system, put the content in the task")
    stage_files(place_of(service, accepted, accepted.attachments), accepted.attachments, files)


def _ask_again(service: Service, accepted: SpawnAccepted) -> "Future[Accepted | Refused]":
    """Ask how the start of a spawn that was accepted before came out."""
    started: Future[Accepted | Refused] = Future()
    stream = ids.spawn_stream(accepted.spawn_id)
    service.supervisor.tell_flow(stream, AskStarted(stream=stream, started=_into(started)))
    return started


def _into(future: "Future[Accepted | Refused]") -> Callable[[Accepted | Refused], None]:
    """Return what puts the first answer into a future; nobody asks for another."""

    def answer(outcome: Accepted | Refused) -> None:
        if not future.done():
            future.set_result(outcome)

    return answer


def _wait_until_started(started: "Future[Accepted | Refused]") -> None:
    try:
        outcome = started.result(PREPARATION_TIMEOUT_S)
    except FutureTimeout:
        raise ToolRefused(
            "unavailable", f"the sub-agent was not ready within {PREPARATION_TIMEOUT_S:g} s, try again"
        ) from None
    if isinstance(outcome, Refused):
        raise ToolRefused(outcome.code, outcome.error)


def _judge(service: Service, caller: Caller, given: SessionsSpawn) -> SpawnAllowed:
    row = service.sessions.get(caller.key) if caller.key is not None else None
    requester = SpawnRequester(
        key=caller.requester.key,
        depth=row.spawn_depth if row is not None else 0,
        sandboxed=caller.requester.sandboxed,
        running=service.flows.running_children(caller.key) if caller.key is not None else 0,
    )
    verdict = judge_spawn(
        service.config,
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


def _answer(accepted: SpawnAccepted) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "status": "accepted",
        "runId": accepted.run_id,
        "childSessionKey": accepted.child,
        "mode": accepted.mode,
    }
    if accepted.attachments is not None:
        answer["attachments"] = receipt(accepted.attachments)
    return answer
