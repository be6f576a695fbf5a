"""An agent that sends, starts others and pays is killed in the middle of it, and asked again: each thing happens once."""

import random
from collections import Counter
from pathlib import Path

import pytest

from intersession_events.facts import (
    ExchangeAccepted,
    RunQueued,
    RunStarted,
    SpawnAccepted,
    ToolCallBlock,
    message_in,
    text_of,
)
from support.any_log import Logs
from support.processes.errands import RUN
from support.processes.killed import Host, asked, of

SENT = {"pay invoice 7": 1, "again": 2, "thanks": 1, "by the key": 1}
RESEARCH = "session:agent:research:main"

POINTS = [
    "S0",
    "S1:3",
    "S2:2",
    "S4:2",
    "S5:2",
    "S6:2",
    "S7",
    "P1",
    "P2",
    "P5",
    "P6",
]
"""Where it dies: before and behind each thing that it asks for, and at some of the commits that it takes."""


def check_once(host: Host) -> None:
    """Check that the errand is done, and each thing of it once, whatever happened on the way."""
    events = host.events()
    assert Counter(asked(events, ExchangeAccepted)) == SENT
    assert sorted(asked(events, SpawnAccepted)) == ["dig here", "dig there"]
    heard = [
        text_of(message)
        for item in events
        if item.stream == RESEARCH and (message := message_in(item.event)) is not None
        if message.role == "user"
    ]
    assert Counter(heard) == SENT
    runs = [item.event for item in events if isinstance(item.event, RunQueued)]
    (run,) = (event.run_id for event in runs if event.message_id in _asks(host))
    made = [
        (block.name, block.id)
        for item in events
        if (message := message_in(item.event)) is not None and message.run_id == run
        for block in message.content
        if isinstance(block, ToolCallBlock)
    ]
    assert Counter(name for name, _ in made) == {"sessions_send": 5, "sessions_spawn": 2, "pay": 3}
    assert len(set(made)) == 10
    results = [
        message.tool_call_id
        for item in events
        if (message := message_in(item.event)) is not None and message.run_id == run
        if message.role == "toolResult"
    ]
    assert sorted(map(str, results)) == sorted(call for _, call in made)
    assert sorted(line["invoice"] for line in host.lines("paid")) == [7, 8, 8]
    assert {line["key"] for line in host.lines("paid")} == {call for name, call in made if name == "pay"}
    host.check_all()  # every run has ended, among others


def _asks(host: Host) -> set[str]:
    return {
        message.id
        for item in host.events()
        if (message := message_in(item.event)) is not None and text_of(message) == RUN
    }


def attempts(host: Host) -> int:
    """Return how often its most tried run was tried."""
    return max(map(int, of(host.events(), RunStarted, "attempt")))


@pytest.mark.clause("SEND-13", "S5", "O4")
@pytest.mark.parametrize("scenario", ["errands", pytest.param("errand", marks=pytest.mark.ci)])
def test_an_errand_that_is_killed_on_its_way_is_done_once(tmp_path: Path, scenario: str) -> None:
    host = Host(Logs(), tmp_path, scenario)

    host.dies_after(7)
    host.dies_after(4)
    host.finishes()

    assert attempts(host) == 3
    check_once(host)


@pytest.mark.ci
@pytest.mark.clause("SEND-13", "S5", "O4")
@pytest.mark.parametrize("scenario", ["errand", "errands"])
@pytest.mark.parametrize("lines", range(1, 22, 2))
def test_an_errand_that_is_killed_behind_each_step_is_done_once(
    tmp_path: Path, scenario: str, lines: int
) -> None:
    host = Host(Logs(), tmp_path, scenario)

    for _ in range(2):
        host.dies_after(lines, surely=False)
    host.finishes()

    check_once(host)


@pytest.mark.ci
@pytest.mark.clause("SEND-13", "S5", "O4")
@pytest.mark.parametrize("scenario", ["errand", "errands"])
@pytest.mark.parametrize("crash_at", POINTS)
def test_an_errand_that_is_killed_at_a_crash_point_is_done_once(
    tmp_path: Path, scenario: str, crash_at: str
) -> None:
    host = Host(Logs(), tmp_path, scenario)

    host.dies_at(crash_at)
    host.dies_at(crash_at, surely=False)
    host.finishes()

    check_once(host)


def killed_at_random(tmp_path: Path, scenario: str, kills: int, seed: int) -> int:
    """Kill hosts at random moments, each until it is done; return how many there were."""
    chance = random.Random(seed)  # noqa: S311 - when to kill
    hosts = 0
    while kills > 0:
        hosts += 1
        directory = tmp_path / str(hosts)
        directory.mkdir()
        host = Host(Logs(), directory, scenario)
        while kills > 0 and host.dies_after(chance.randrange(0, 24), chance.random() / 20, surely=False):
            kills -= 1
        host.finishes()
        check_once(host)
    return hosts


@pytest.mark.nightly
@pytest.mark.clause("SEND-13", "S5", "O4")
@pytest.mark.parametrize("scenario", ["errand", "errands"])
@pytest.mark.parametrize("seed", range(4))
def test_of_two_hundred_kills_at_random_moments_none_has_anything_happen_twice(
    tmp_path: Path, scenario: str, seed: int
) -> None:
    assert killed_at_random(tmp_path, scenario, 25, seed) >= 2
