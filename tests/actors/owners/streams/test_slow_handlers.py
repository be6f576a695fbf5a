"""A handler that takes long is told of: all actors of the host had to wait for it."""

import logging
from queue import Queue
from typing import Any, NamedTuple

import pytest

from intersession_actors.owners.streams.shell import Shell
from intersession_actors.running.failures.failure import Failure
from intersession_actors.running.failures.reports import Reports
from intersession_events.stores.sqlite.log import SqliteLog
from support.fakes import ManualClock
from support.flows import a_world


class Takes(NamedTuple):
    """A message that takes its handler so long."""

    ms: int


class Works(Shell[Any, Any]):
    """An actor that has nothing to do but to take its time."""

    def __init__(self, log: SqliteLog, clock: ManualClock, reports: Reports) -> None:
        world = a_world(log, Queue())
        world.reports, world.time = reports, world.time._replace(clock=clock)
        super().__init__(world)
        self._clock = clock

    def on_receive(self, message: object) -> None:
        assert isinstance(message, Takes)
        self._clock.advance(message.ms)

    def __str__(self) -> str:
        return "works"


@pytest.mark.clause("L4")
def test_a_handler_that_is_slow_is_told_once_an_hour_and_counted_each_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "intersession")
    clock, failures = ManualClock(), Queue[Failure]()
    reports = Reports(clock=clock, on_failure=failures.put)
    with SqliteLog(":memory:") as log:
        works = Works(log, clock, reports)
        for ms in (49, 51, 999, 1_001, 3_000, 3_595_000, 60):
            works._handle_receive(Takes(ms))
        reports.stop(10)

    told = [
        (record.levelname, record.getMessage())
        for record in caplog.records
        if "handler was slow" in record.getMessage()
    ]
    what = "handler was slow, others had to wait: actor=works: Takes took"
    assert told == [("INFO", f"{what} 0.05 s"), ("WARNING", f"{what} 1.00 s"), ("INFO", f"{what} 0.06 s")]
    assert reports.counts["slow_handler"] == 6
    heard = failures.get(timeout=20)
    assert (heard.kind, heard.level, heard.actor, heard.error) == (
        "slow_handler",
        "warning",
        "works",
        "Takes took 1.00 s",
    )
    assert failures.empty()
