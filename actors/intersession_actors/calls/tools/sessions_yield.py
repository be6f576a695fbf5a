"""`sessions_yield`: an agent ends its turn to wait for its sub-agents, or for a message (CHILD-4)."""

from typing import Literal

import msgspec

from intersession_actors.calls.service import asking
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.callers import AccessSummary, Call
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.service import Service
from intersession_actors.owners.spawn.commands import ClaimResult
from intersession_actors.rules.gate import limits
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import SpawnAccepted, ready
from intersession_projections.views.flows.rows import SpawnSummary


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
        return {"status": "yielded", "waitFor": "children", "children": [_row(one) for one in own]} | extra
    if pending:
        note = "these are at work since an earlier turn, do not start them again"
        return {"status": "already_pending", "note": note, "children": [_row(one) for one in pending]}
    return {
        "status": "error",
        "error": "there is no sub-agent to wait for, start one, or use waitFor message",
    }


def _is_of(service: Service, spawn: SpawnSummary, run_id: str) -> bool:
    first = next((one.event for one in service.log.stream(spawn.stream, to=1)), None)
    return isinstance(first, SpawnAccepted) and first.requester_run_id == run_id


def _row(spawn: SpawnSummary) -> JsonObject:
    return {"runId": spawn.run_id, "sessionKey": spawn.child} | present({"label": spawn.label})
