"""Who asked for a flow, in the words of a timeline."""

import msgspec
import pytest

from intersession_events.facts import SpawnAccepted

OPERATORS = SpawnAccepted(
    spawn_id="s",
    run_id="r",
    child="agent:a:subagent:c",
    child_session_id="c",
    agent_id="a",
    task="t",
    message_id="m",
)


@pytest.mark.clause("IMP-4", "SPAWN-6")
@pytest.mark.parametrize(
    ("changes", "asker"),
    [
        ({}, "operator"),
        ({"caller": "credential:desk"}, "credential:desk"),
        ({"requester": "agent:a:main", "caller": "agent:a:main"}, "agent:a:main"),
        ({"inferred": True, "caller": "unknown"}, "unknown"),
        ({"inferred": True, "requester": "agent:a:main"}, "agent:a:main"),
    ],
)
def test_nobody_is_invented_who_asked_for_an_imported_spawn(changes: dict[str, object], asker: str) -> None:
    assert msgspec.structs.replace(OPERATORS, **changes).asker == asker
