"""Every checkpoint reaches its target, or is covered by one that does, whoever adds them and however many come."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from intersession_actors.assembly.checkpoints.publishing import Publisher
from intersession_actors.assembly.checkpoints.targets import Target
from intersession_actors.running.failures.failure import FailureKind
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


class HeardAtOnce(Reports):
    """Reports of which the host hears at once; then time passes before anything else is done."""

    def __init__(self, timers: ManualTimers) -> None:
        super().__init__(clock=timers.clock)
        self._timers = timers

    def tell(self, kind: FailureKind, **fields: Any) -> None:
        super().tell(kind, **fields)
        self._timers.advance(300_000)


def publisher(log: SqliteLog, put: Callable[[Checkpoint], None]) -> Publisher:
    timers = ManualTimers(ManualClock())
    target = Target("file", "file:here", lambda checkpoint, _: put(checkpoint))
    return Publisher(log, [target], clock=timers.clock, timers=timers, reports=HeardAtOnce(timers))


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


@pytest.mark.clause("CHECK-3")
def test_whoever_hears_that_a_target_failed_finds_the_next_try_set(log: SqliteLog) -> None:
    got: list[int] = []

    def put(given: Checkpoint) -> None:
        got.append(given.position)
        if len(got) == 1:
            raise OSError("it is full")

    publishing = publisher(log, put)
    publishing.add(checkpoint(1))
    assert log.wait_for(1, timeout=WAIT)
    publishing.stop(WAIT)

    assert got == [1, 1]
    assert (publishing.errors, recorded(log)) == ({}, [1])
