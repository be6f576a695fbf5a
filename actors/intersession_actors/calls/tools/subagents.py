"""`subagents` and `sessions_yield`: list, cancel and steer the sub-agents that a session has started, and wait for them (CHILD)."""

from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from intersession_actors.calls.service import asking
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.callers import AccessSummary, Call
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.service import Service
from intersession_actors.owners.session.commands import Abort, Steer
from intersession_actors.owners.spawn.commands import ClaimResult
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate import limits
from intersession_actors.rules.gate.values import invalid
from intersession_actors.rules.policy.access import may_act_as
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import Message, Provenance, SpawnAccepted, ready
from intersession_projections.views.flows.rows import SpawnSummary
from intersession_projections.views.run_outcomes.outcome import RunOutcome

RECENT_MINUTES: Final = 30
MOST_SHOWN: Final = 100
_TASK: Final = 72
"""How much of a task a list shows, in characters."""


@ready
class Subagents(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments (CHILD-2). `kill` is another word for `cancel`."""

    action: Literal["list", "cancel", "kill", "steer"] = "list"
    target: limits.KeyText | None = None
    message: limits.MessageText | None = None
    recent_minutes: Annotated[int, msgspec.Meta(ge=1, le=1440)] = RECENT_MINUTES


class _Child(NamedTuple):
    """A sub-agent, with the run of its task."""

    spawn: SpawnSummary
    run: RunOutcome | None

    @property
    def at_work(self) -> bool:
        return self.spawn.status is None and self.spawn.is_open

    @property
    def status(self) -> str:
        if self.at_work:
            return "running" if self.run is not None and self.run.status == "running" else "queued"
        return {"ok": "done", "error": "failed"}.get(
            self.spawn.status or "error", self.spawn.status or "failed"
        )


def lead_subagents(service: Service, call: Call, arguments: Result) -> Result:
    """List, cancel or steer the caller's sub-agents.

    Raises:
        ToolRefused: there is no such sub-agent, or it is not clear which is meant (`invalid_request`).
    """
    given = read_arguments(Subagents, arguments)
    key = call.caller.key
    if key is None:
        raise invalid("tool", "only a session has sub-agents, call it as one")
    children = _children(service, call, key, given.recent_minutes)
    call.summary = AccessSummary(keys=tuple(one.spawn.child for one in children))
    if given.action == "list":
        return _listed(service, key, children)
    if given.target is None:
        raise invalid("target", "say which: a number of the list, a label, a session key, a run id, or last")
    if given.action == "steer":
        return _steered(service, call, key, _meant(children, given.target), given.message)
    found = children if given.target.strip() in {"all", "*"} else [_meant(children, given.target)]
    cancelled = [one for one in found if one.at_work and _cancel(service, key, one)]
    return {
        "status": "ok" if cancelled else "done",
        "action": "cancel",
        "cancelled": [{"runId": one.spawn.run_id, "sessionKey": one.spawn.child} for one in cancelled],
    }


def _children(service: Service, call: Call, key: str, recent_minutes: int) -> list[_Child]:
    """Return those at work, and those that ended lately, each the newest first; of a credential those within its reach (VIS-6)."""
    within, parse = call.caller.within, service.reader.parse
    since = service.clock.now_ms() - recent_minutes * 60_000
    spawns = [
        one
        for one in reversed(service.flows.spawns_of(key))
        if ((one.status is None and one.is_open) or (one.ended_ms or one.closed_ms or 0) >= since)
        and (within is None or may_act_as(within, parse(one.child)))
    ]
    runs = service.runs.many_without_words(one.run_id for one in spawns)
    found = [_Child(one, runs.get(one.run_id)) for one in spawns]
    return sorted(found, key=lambda one: not one.at_work)


def _listed(service: Service, key: str, children: list[_Child]) -> Result:
    shown = children[:MOST_SHOWN]
    rows = [_row(service, number, one) for number, one in enumerate(shown, 1)]
    at_work = sum(one.at_work for one in shown)
    return {
        "status": "ok",
        "action": "list",
        "requesterSessionKey": key,
        "total": len(children),
        "active": rows[:at_work],
        "recent": rows[at_work:],
    }


def _row(service: Service, number: int, one: _Child) -> JsonObject:
    spawn, run = one.spawn, one.run
    row = service.sessions.get(spawn.child)
    ended = spawn.ended_ms
    started = None if run is None else run.started_ms
    until = service.clock.now_ms() if ended is None else ended
    return {
        "index": number,
        "runId": spawn.run_id,
        "sessionKey": spawn.child,
        "agentId": spawn.agent_id,
        "status": one.status,
    } | present(
        {
            "label": spawn.label or (None if row is None else row.label),
            "acceptedAt": spawn.accepted_ms,
            "startedAt": started,
            "endedAt": ended,
            "runtimeMs": None if started is None else max(0, until - started),
        }
    )


def _meant(children: list[_Child], typed: str) -> _Child:
    """Return the sub-agent that is named.

    Raises:
        ToolRefused: none is, or several are.
    """
    named = typed.strip()
    if named == "last" and children:
        return max(children, key=lambda one: one.spawn.accepted)
    if named.isascii() and named.isdigit() and 1 <= int(named) <= len(children):
        return children[int(named) - 1]
    low = named.casefold()
    ways = (
        [one for one in children if one.spawn.child == named],
        [one for one in children if (one.spawn.label or "").casefold() == low],
        [one for one in children if low and (one.spawn.label or "").casefold().startswith(low)],
        [one for one in children if low and one.spawn.run_id.startswith(low)],
    )
    found = next((way for way in ways if way), list[_Child]())
    if len(found) == 1:
        return found[0]
    if found:
        raise invalid("target", f"{named[:64]!r} names {len(found)} sub-agents, use the number of the list")
    raise invalid("target", f"you have no sub-agent {named[:64]!r}, list them")


def _cancel(service: Service, key: str, one: _Child) -> bool:
    command = Abort(run_id=None, by=key)
    return bool(asking.ask_session(service, one.spawn.child, command).recorded)


def _steered(service: Service, call: Call, key: str, one: _Child, text: str | None) -> Result:
    if text is None or not text.strip():
        raise invalid("message", "blank, write what the sub-agent should know")
    spawn = one.spawn
    if not one.at_work:
        raise invalid("target", "its run is over, read its result, or send it a message with sessions_send")
    verdict = service.world.rules.judge_child(spawn.child)
    if not verdict.allowed:
        error = f"target: send policy forbids it ({verdict.rule})"
        raise ToolRefused("policy_denied", error, judged=verdict.judged)
    asked_for = asking.run_id_of(service, call, method="subagents", idempotency_key=None)
    message = Message(
        id=asked_for,  # a later attempt finds it by that
        role="user",
        content=text,
        timestamp=service.clock.now_ms(),
        run_id=spawn.run_id,
        provenance=Provenance(kind="inter_session", source_session_key=key, source_tool="subagents"),
    )
    asking.ask_session(service, spawn.child, Steer(run_id=spawn.run_id, message=message, by=key))
    return {"status": "accepted", "action": "steer", "runId": spawn.run_id, "sessionKey": spawn.child}


# --- sessions_yield


@ready
class SessionsYield(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments. `message` is a note for the log, `acknowledgment` comes back with the answer."""

    wait_for: Literal["children", "message"] = "children"
    message: limits.MessageText | None = None
    acknowledgment: limits.MessageText | None = None


def yield_turn(service: Service, call: Call, arguments: Result) -> Result:
    """Have the results of the turn's sub-agents come to the caller's session.

    Raises:
        ToolRefused: it is not called in a run (`invalid_request`).
    """
    given = read_arguments(SessionsYield, arguments)
    caller = call.caller
    if caller.key is None or caller.run is None:
        raise invalid("tool", "only an agent in its turn can yield, call it from there")
    pending = [one for one in service.flows.spawns_of(caller.key) if one.is_open]
    call.summary = AccessSummary(keys=tuple(one.child for one in pending))
    own = [one for one in pending if _is_of(service, one, caller.run.run_id)]
    extra = present({"acknowledgment": given.acknowledgment})
    if given.wait_for == "message":
        return {"status": "yielded", "waitFor": "message"} | extra
    if own:
        for one in own:
            command = ClaimResult(stream=one.stream, run_id=caller.run.run_id, by=caller.key)
            asking.ask_flow(service, command)
        return {
            "status": "yielded",
            "waitFor": "children",
            "children": [_pending(one) for one in own],
        } | extra
    if pending:
        note = "these are at work since an earlier turn, do not start them again"
        return {"status": "already_pending", "note": note, "children": [_pending(one) for one in pending]}
    return {
        "status": "error",
        "error": "there is no sub-agent to wait for, start one, or use waitFor message",
    }


def _is_of(service: Service, spawn: SpawnSummary, run_id: str) -> bool:
    first = next((one.event for one in service.log.stream(spawn.stream, to=1)), None)
    return isinstance(first, SpawnAccepted) and first.requester_run_id == run_id


def _pending(spawn: SpawnSummary) -> JsonObject:
    return {"runId": spawn.run_id, "sessionKey": spawn.child} | present({"label": spawn.label})
