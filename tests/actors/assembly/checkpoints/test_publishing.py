"""Every checkpoint reaches its target, or is covered by one that does, whoever adds them and however many come."""

import threading
from collections.abc import Callable, Iterator

import pytest

from intersession_actors.assembly.checkpoints.publishing import Publisher
from intersession_actors.assembly.checkpoints.targets import Target
from intersession_actors.running.failures.reports import Reports
from intersession_events.facts import CheckpointPublished
from intersession_events.proofs.statement import Checkpoint
from intersession_events.stores.sqlite.log import SqliteLog
from support.fakes import ManualClock, ManualTimers

WAIT = 20.0


@pytest.fixture
def log() -> Iterator[SqliteLog]:
    with SqliteLog(":memory:") as opened:
        yield opened


def checkpoint(position: int) -> Checkpoint:
    return Checkpoint(log_id="l", position=position, count=position, rolling="", events_root="")


def publisher(log: SqliteLog, put: Callable[[Checkpoint], None]) -> Publisher:
    clock = ManualClock()
    target = Target("file", "file:here", lambda checkpoint, _: put(checkpoint))
    return Publisher(log, [target], clock=clock, timers=ManualTimers(clock), reports=Reports(clock=clock))


def recorded(log: SqliteLog) -> list[int]:
    return [item.event.position for item in log.all() if isinstance(item.event, CheckpointPublished)]


@pytest.mark.clause("CHECK-3")
def test_the_one_under_way_may_be_left_out_for_later_ones_and_none_is_skipped(log: SqliteLog) -> None:
    got: list[int] = []
    under_way, go_on = threading.Event(), threading.Event()

    def put(given: Checkpoint) -> None:
        got.append(given.position)
        under_way.set()
        assert go_on.wait(WAIT)

    publishing = publisher(log, put)
    publishing.add(checkpoint(1))
    assert under_way.wait(WAIT)
    for position in range(2, 1_000 + 2):
        publishing.add(checkpoint(position))
    go_on.set()
    publishing.stop(WAIT)

    assert got == list(range(1, 1_000 + 2))
    assert recorded(log)[-1] == 1_000 + 1


@pytest.mark.clause("CHECK-3")
def test_many_threads_add_and_each_checkpoint_is_put_once(log: SqliteLog) -> None:
    got: list[int] = []
    publishing = publisher(log, lambda given: got.append(given.position))

    def add(first: int) -> None:
        for n in range(50):
            publishing.add(checkpoint(first + n))

    adders = [threading.Thread(target=add, args=(first,)) for first in (0, 100, 200, 300)]
    for adder in adders:
        adder.start()
    for adder in adders:
        adder.join(WAIT)
    publishing.stop(WAIT)

    assert sorted(got) == [first + n for first in (0, 100, 200, 300) for n in range(50)]
