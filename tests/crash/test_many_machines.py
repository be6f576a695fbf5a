"""A cluster on machines of their own loses nothing, and does nothing twice, while machines are killed, paused, cut off and slowed."""

import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from intersession_events import facts
from intersession_events.stores.opened import open_log
from support.machines.cluster import Cluster, Host, People, cluster
from support.machines.machines import can_make_machines

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not can_make_machines(), reason="makes network cards and namespaces, which root may"),
]

FAULTS = ("kill", "term", "pause", "cut", "slow")


def befall(host: Host, fault: str, seconds: float, delay_ms: float) -> None:
    """Do something to a machine, and put it right again."""
    program = host.program
    assert program is not None
    match fault:
        case "kill":
            program.kill()
        case "term":
            program.tell(signal.SIGTERM)
            program.process.wait(60)
        case "pause":
            program.pause()
            time.sleep(seconds)
            program.go_on()
        case "cut":
            host.machine.cut()
            time.sleep(seconds)
            host.machine.heal()
        case _:
            host.machine.slow(delay_ms)
            time.sleep(seconds)
            host.machine.slow(0)
    host.start()


def check(made: Cluster, people: People) -> None:
    """Check that each message is there once and was answered once, as its door said, and each run ended once."""
    with open_log(made.url, read_only=True) as log:
        recorded = list(log.all())
    asked = {
        item.event.run_id: facts.text_of(item.event.message)
        for item in recorded
        if isinstance(item.event, facts.RunQueued) and item.event.message is not None
    }
    ends = Counter(item.event.run_id for item in recorded if isinstance(item.event, facts.RunEnd))
    answered = {
        asked[item.event.run_id]: facts.text_of(item.event.message)
        for item in recorded
        if isinstance(item.event, facts.RunCompleted) and item.event.message is not None
    }
    assert people.accepted.keys() <= set(asked.values())
    assert len(set(asked.values())) == len(asked)
    assert ends.keys() == asked.keys()
    assert set(ends.values()) == {1}
    for text, end in people.ended.items():
        assert end["status"] == "ok", (text, end)
        assert answered[text] == f"answer to {text}"


@pytest.mark.clause("WORK-5", "STBY-3", "DOOR-2", "DOOR-4")
@pytest.mark.parametrize(
    ("cycles", "seed", "longest"),
    [
        pytest.param(5, 1, 5.0, marks=pytest.mark.ci),
        pytest.param(60, 2, 30.0, marks=(pytest.mark.nightly, pytest.mark.timeout(3_600))),
    ],
)
def test_nothing_is_lost_or_done_twice_whatever_befalls_a_machine(
    tmp_path: Path, cycles: int, seed: int, longest: float
) -> None:
    chance = random.Random(seed)  # noqa: S311 - faults, not secrets
    with cluster(tmp_path) as made:
        people = People([made.hosts["d1"].address, made.hosts["d2"].address], 6)
        people.start()
        for _ in range(cycles):
            before = len(people.ended)
            befall(
                made.hosts[chance.choice(sorted(made.hosts))],
                chance.choice(FAULTS),
                chance.choice((1.0, 5.0, longest)),
                chance.choice((5.0, 200.0)),
            )
            until = time.monotonic() + 90
            while len(people.ended) < before + 10:
                assert time.monotonic() < until, f"nothing goes on: {dict(people.troubles)}"
                time.sleep(0.1)
        assert people.stop(90)
        check(made, people)
