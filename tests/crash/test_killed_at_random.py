"""A busy host is killed at any moment, again and again; in the end all that it was asked to do is done, once."""

import random
from pathlib import Path

import pytest

from intersession_events.facts import ChildArchived, ExchangeAccepted, SpawnAccepted
from support.any_log import Logs
from support.processes.killed import Host, of

SENDS, SPAWNS, ASKED = 16, 3, 6
KILLS = 3
NIGHTS = [pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 40)]


@pytest.mark.clause("D1", "O3", "O6", "O7")
@pytest.mark.sampled("1-keyed", "keyed-1")
@pytest.mark.parametrize("channel", ["keyed", pytest.param("plain", marks=pytest.mark.ci)])
@pytest.mark.parametrize("seed", [1, *NIGHTS])
def test_a_busy_host_may_be_killed_at_any_moment(logs: Logs, tmp_path: Path, seed: int, channel: str) -> None:
    chance = random.Random(seed)  # noqa: S311 - when to kill
    host = Host(logs, tmp_path, "busy", channel)

    for _ in range(KILLS):
        host.dies_after(chance.randrange(1, 30))
        host.check_acknowledged()
    host.finishes()

    events = host.events()
    assert (
        len(set(of(events, ExchangeAccepted, "message")))
        == len(of(events, ExchangeAccepted, "message"))
        == SENDS
    )
    assert len(of(events, SpawnAccepted, "task")) == len(of(events, ChildArchived, "child")) == SPAWNS
    assert len({line["call"] for line in host.lines("acks")}) == SENDS + SPAWNS + ASKED
    host.check_all()
