"""Each call leaves one receipt of what was decided (VIS-4)."""

from pathlib import Path

import pytest

from intersession import SessionSystem, echo
from intersession_events.access import AccessRecorded

MAIN = "agent:main:main"


@pytest.mark.clause("VIS-4")
def test_spawns_and_agent_lists_leave_receipts_too(tmp_path: Path) -> None:
    agents = {"main": echo(), "ops": echo()}
    with SessionSystem(f"sqlite:///{tmp_path / 'log.db'}", agents=agents) as system:
        tools = system.tools(MAIN)
        tools.call("agents_list", {})
        spawned = tools.call("sessions_spawn", {"task": "count"})
        refused = tools.call("sessions_spawn", {"task": "count", "agentId": "ops"})
    with SessionSystem(f"sqlite:///{tmp_path / 'log.db'}") as system:
        receipts = [item.event for item in system.log.stream(f"access:{MAIN}")]

    assert spawned["status"] == "accepted"
    assert refused["code"] == "agent_not_allowed"
    kept = [
        (event.tool, event.allowed, event.denied) for event in receipts if isinstance(event, AccessRecorded)
    ]
    assert kept == [
        ("agents_list", 0, ()),
        ("sessions_spawn", 1, ()),
        ("sessions_spawn", 0, (("ops", "agent_not_allowed"),)),
    ]
