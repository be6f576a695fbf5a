"""Pairs of agents are killed with their host at any moment, again and again: all that it was asked to do is done, once."""

import random
from collections import Counter
from itertools import count
from pathlib import Path

import pytest

from intersession_events.facts import (
    ChildArchived,
    DeliveryDecided,
    ExchangeAccepted,
    ExchangeClosed,
    ExchangeHeld,
    ExchangeReleased,
    RunFailed,
    SpawnAccepted,
    SpawnClosed,
)
from support.any_log import Logs
from support.processes.killed import Host, asked, of

AT_NIGHT = [pytest.mark.nightly, pytest.mark.timeout(7_200)]
KILLS = {4: 3, 64: 200}
"""How often so many pairs are killed."""


@pytest.mark.clause("D1", "O3", "O6", "O7")
@pytest.mark.sampled("4-1-keyed", "keyed-4-1")
@pytest.mark.parametrize("channel", ["keyed", pytest.param("plain", marks=pytest.mark.ci)])
@pytest.mark.parametrize(
    ("pairs", "seed"),
    [
        (4, 1),
        *(pytest.param(4, seed, marks=pytest.mark.nightly) for seed in range(2, 40)),
        pytest.param(64, 1, marks=AT_NIGHT),
    ],
)
def test_pairs_at_work_may_be_killed_at_any_moment(
    logs: Logs, tmp_path: Path, pairs: int, seed: int, channel: str
) -> None:
    chance = random.Random(seed)  # noqa: S311 - when to kill
    kills, killed = KILLS[pairs], 0
    # What was cut off is begun anew first: with many pairs, that alone is many steps.
    most = 30 * max(1, pairs // 8)
    for number in count():
        directory = tmp_path / str(number)
        directory.mkdir()
        host = Host(logs, directory, f"crowd-{pairs}", channel)
        while killed < kills and host.dies_after(
            chance.randrange(1, most), chance.random() / 20, surely=False
        ):
            killed += 1
            host.check_acknowledged()
        host.finishes()
        check_done(host, pairs, channel)
        if killed == kills:
            break


def check_done(host: Host, pairs: int, channel: str) -> None:
    """Check that all that the pairs were asked for is done, each thing of it once."""
    events = host.events()
    a_quarter = pairs // 4
    assert Counter(asked(events, ExchangeAccepted)) == {f"look {n} up": 1 for n in range(pairs)}
    assert (
        len(of(events, ExchangeHeld, "hold_id")) == len(of(events, ExchangeReleased, "hold_id")) == a_quarter
    )
    assert len(of(events, SpawnAccepted, "task")) == len(of(events, ChildArchived, "child")) == a_quarter
    assert of(events, RunFailed, "code") == []
    assert len({line["call"] for line in host.lines("acks")}) == pairs + 2 * a_quarter
    ends = {*of(events, ExchangeClosed, "reason"), *of(events, SpawnClosed, "reason")}
    assert ends <= ({"announced"} if channel == "keyed" else {"announced", "delivery_unknown"})
    texts = len(of(events, DeliveryDecided, "delivery_id"))
    assert texts == pairs + 2 * a_quarter
    shown = Counter(line["key"] for line in host.lines("shown"))
    assert (
        shown.total() == len(shown) == texts if channel == "keyed" else shown.total() == len(shown) <= texts
    )
    host.check_all()
