"""Load for long leaves nothing behind: objects, threads and files are counted when all is quiet, and again much later."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem
from intersession.cli.commands.demo import play_round
from intersession.cli.commands.demo_agents import AGENTS, CONFIG
from intersession_actors.outside.channels.channels import Channel
from support.any_log import Logs
from support.running import merged
from support.soaking import grown, held, resident_bytes, settled

SOON: Mapping[str, Any] = {
    "runs": {"idleSeconds": 0.05},
    "views": {"afterSeconds": 0},
    "agents": {"defaults": {"subagents": {"archiveAfterMinutes": 0.001}}},
}
GROUPS = 2
A_BUSY_NIGHT_S = 4 * 3_600
"""What hangs is found by the bound that each wait of a round has. On a server it takes some 1,400 s on a machine that does
nothing else, and a night may have much else to do."""
A_ROUND_MAY_COST = 16 * 1024
"""Bytes of memory: what memories with a bound take in of a round (support/soaking.py), until they are full."""


@pytest.fixture
def system(log_url: str) -> Iterator[SessionSystem]:
    nowhere = Channel(deliver=lambda _: None)
    with SessionSystem(
        log_url,
        agents=AGENTS,
        channels={"telegram": nowhere, "discord": nowhere},
        config=merged(CONFIG, SOON),
    ) as made:
        yield made


def play(system: SessionSystem, rounds: int, also: Callable[[int], object] = lambda _: None) -> None:
    """Have people ask, agents send, talk it over, announce and spawn, so many times, until all is over."""
    for number in range(rounds):
        name = f"ada{number % GROUPS}"
        play_round(system, {"chat_id": f"group-{name}", "chat_type": "group", "sender": name})
        also(number)
    settled(system)


@pytest.mark.clause("L9")
def test_what_is_over_leaves_nothing_behind(system: SessionSystem) -> None:
    """Before: it grew without a bound."""
    play(system, GROUPS)
    before = held()
    play(system, 3)

    assert grown(before, held(), by=8) == {}
    assert len(system.service.world.time.stopwatch) == 0


@pytest.mark.ci
@pytest.mark.clause("L9")
def test_a_planted_leak_is_noticed(system: SessionSystem, tmp_path: Path) -> None:
    over, files = threading.Event(), ExitStack()

    def leak(number: int) -> None:
        for each in range(50):
            system.service.world.time.stopwatch.begin("planted", f"{number}.{each}", at=0.0)
            files.enter_context((tmp_path / "planted").open("w"))
            threading.Thread(target=over.wait).start()

    play(system, 1)
    before = held()
    play(system, 2, leak)
    with files:
        found = grown(before, held(), by=8)
    over.set()

    # Not 100: what an earlier test has left may end meanwhile.
    assert min(found["Stopwatch._began"], found["files"], found["threads"]) >= 50


@pytest.mark.nightly
@pytest.mark.timeout(A_BUSY_NIGHT_S)
@pytest.mark.clause("L9")
def test_hundreds_of_rounds_leave_nothing_behind(system: SessionSystem, logs: Logs) -> None:
    """Before: 0.17 MB a round were left. Each round is two days of a small bot, so these are eleven years and more."""
    # SQLite's memories of pages are nearly full by then; a server has those of its own, and only ours are to fill.
    play(system, 2800 if logs.are_files else 1600)
    rounds = 400
    before, memory = held(), resident_bytes()
    play(system, rounds)

    assert grown(before, held(), by=rounds // 8) == {}
    assert (resident_bytes() - memory) / rounds < A_ROUND_MAY_COST
