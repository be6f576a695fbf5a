"""Every command calls a session by one name, and takes that name."""

import shlex

import pytest

from support.doors.command_line import DemoLog, ran

KID = "main/detour"


@pytest.mark.clause("KEY-6", "FIND-2")
@pytest.mark.parametrize(
    "command",
    [
        "runs",
        "messages --why --delivered",
        "events",
        "events --session {kid}",
        "replay {spawn}",
        "replay {spawn} --steps",
        "replay {kid}",
        "replay main",
        "why {spawn}",
        "why {spawn} --steps",
        "why {spawn}@start --forward",
        "show {spawn}",
        "search distance",
        'origin "84 km"',
        "state {spawn}",
        "state {kid} --from {spawn}@start --to {spawn}@end",
        "runs --session {kid}",
        "messages --to {kid}",
        "lens {spawn}@reply",
    ],
)
def test_a_sub_agent_is_called_by_its_label_wherever_it_is_told_of(demo_log: DemoLog, command: str) -> None:
    """Lists and stories called it by the beginning of its id, diagrams and places by its label."""
    line = command.format(spawn=demo_log.spawn, kid=KID)
    told = ran(*shlex.split(line), "--store", demo_log.path).out
    assert KID in told
    assert "main/subagent:" not in told
