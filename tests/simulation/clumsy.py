"""Calls that are refused, whatever the state of the system: each for a reason of its own, and none leaves a trace but of the refusal."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from simulation.clients import kind_of
from simulation.people import MAINS

if TYPE_CHECKING:
    from simulation.world import World

Refused = Callable[["World"], Mapping[str, Any]]

MOST_BYTES: Final = 4_000
"""The most that a file given to a sub-agent has in a simulation."""


def _sends(**given: Any) -> Refused:
    asked = {"sessionKey": MAINS[1], "message": "?", "timeoutSeconds": 0} | given
    return lambda world: world.system.tools(MAINS[0]).call("sessions_send", asked)


def _asks(method: Any, **given: Any) -> Refused:
    return lambda world: world.system.gateway.call(method, given)


def _spawns(*files: Mapping[str, str], **given: Any) -> Refused:
    asked = {"task": "?", **({"attachments": list(files)} if files else {}), **given}
    return lambda world: world.system.tools(MAINS[0]).call("sessions_spawn", asked)


def _says_otherwise(world: "World") -> Mapping[str, Any]:
    """Ask for something else under a key that was used, if one was."""
    for op in world.ops:
        if op.outcome == "ok" and op.kind == "write" and kind_of(world, op.call or "") == "agent":
            run = world.system.service.runs.get(op.run_id or "")
            if run is not None:
                asked = {"sessionKey": run.session_key, "message": "?", "idempotencyKey": op.call}
                return world.system.gateway.call("agent", asked)
    return {"code": "idempotency_conflict"}


FILE: Final = {"name": "one.txt", "content": "x"}

CLUMSY: Final[Mapping[str, Refused]] = {
    "self_send": _sends(sessionKey=MAINS[0]),
    "invalid_key": _sends(sessionKey="agent:"),
    "invalid_request": _sends(message=7),
    "unknown_run": _asks("agent.wait", runId="nobody's", timeoutMs=0),
    "unknown_agent": _asks("agent", agentId="nobody", message="?", idempotencyKey="clumsy"),
    "idempotency_conflict": _says_otherwise,
    "main_session": _asks("sessions.delete", key=MAINS[0]),
    "invalid_thinking": _spawns(thinking="too much"),
    "agent_not_allowed": _spawns(agentId="nobody"),
    "sandbox_required": _spawns(sandbox="require"),
    "invalid_name": _spawns(FILE | {"name": "../one"}),
    "duplicate_name": _spawns(FILE, FILE),
    "invalid_base64": _spawns(FILE | {"encoding": "base64", "content": "?"}),
    "file_count_exceeded": _spawns(*(FILE | {"name": f"{number}"} for number in range(60))),
    "file_bytes_exceeded": _spawns(FILE | {"content": "x" * (MOST_BYTES + 1)}),
    "total_bytes_exceeded": _spawns(
        *(FILE | {"name": f"{number}", "content": "x" * MOST_BYTES} for number in range(3))
    ),
    "forbidden": _spawns(FILE),
}
"""Each refusal, and a call that gets it."""

_OF_FILES: Final = (
    "invalid_name",
    "duplicate_name",
    "invalid_base64",
    "file_count_exceeded",
    "file_bytes_exceeded",
    "total_bytes_exceeded",
)


def clumsy_calls(world: "World") -> list[str]:
    """Return which of the calls are refused for their reason here: files are looked at only where they may be given."""
    others = {"forbidden"} if "files" in world.faults.enabled else set(_OF_FILES)
    return [code for code in CLUMSY if code not in others]
