"""Writes a spawn as a record of the original's registry of sub-agents, `subagents/runs.json` (EXP-2). Pure."""

from collections.abc import Sequence
from typing import Final

from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import ChildEnded, RunStatus, SpawnAccepted
from intersession_events.log.recorded import Recorded
from intersession_projections.copies.openclaw_state.entry import route_as_object

_SECOND_MS: Final = 1000
_OUTCOMES: Final[dict[RunStatus, str]] = {"ok": "ok", "error": "error", "timeout": "timeout"}


def record_of(recorded: Sequence[Recorded]) -> tuple[SpawnAccepted, JsonObject] | None:
    """Return a spawn and its record; None for one that no session asked for: the original records no such spawn.

    Every record is over. What it has of a child that still works is an unknown outcome: the original must not take up
    what goes on here, and would delete a child whose time to be archived has come.
    """
    if not recorded or not isinstance(spawn := recorded[0].event, SpawnAccepted) or spawn.requester is None:
        return None
    ended = next((item for item in recorded if isinstance(item.event, ChildEnded)), None)
    done = ended.event if ended is not None and isinstance(ended.event, ChildEnded) else None
    over_ms = recorded[-1].time if ended is None else ended.time
    status = "unknown" if done is None else _OUTCOMES.get(done.status, "unknown")
    killed = done is not None and done.status == "aborted"
    route = spawn.route
    origin = present({"channel": spawn.requester_channel}) if route is None else route_as_object(route)
    record = present(
        {
            "runId": spawn.run_id,
            "childSessionKey": spawn.child,
            "requesterSessionKey": spawn.requester,
            "requesterDisplayKey": spawn.requester,
            "requesterOrigin": origin or None,
            "task": spawn.task,
            "cleanup": spawn.cleanup,
            "spawnMode": spawn.mode,
            "label": spawn.label,
            "model": spawn.model,
            "runTimeoutSeconds": spawn.run_timeout_ms // _SECOND_MS,
            "createdAt": recorded[0].time,
            "startedAt": done.started_ms if done is not None else None,
            "endedAt": done.ended_ms if done is not None and done.ended_ms is not None else over_ms,
            "outcome": present({"status": status, "error": done.error if done is not None else None}),
            "endedReason": "subagent-killed" if killed else "subagent-complete",
            "cleanupHandled": True,
            "cleanupCompletedAt": max(over_ms, recorded[-1].time),
        }
    )
    return spawn, record
