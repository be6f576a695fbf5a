"""What the log records of a wall clock that steps, and how its time comes back (L8), on every store."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.facts import ClockStepped
from intersession_events.log.recorded import Draft, Outcome
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.portable.log import PortableLog
from support.any_log import Place, log_at
from support.fakes import ManualClock
from support.faulty_store import FAULT, faulty
from support.log_drafts import anywhere, said

NOW = 1_795_000_000_000
MINUTE = 60_000
TEN_YEARS = 315_360_000_000


@pytest.fixture
def clock() -> Iterator[ManualClock]:
    yield ManualClock(NOW)
    FAULT.before = FAULT.after = FAULT.down = None


def opened(place: Place, clock: ManualClock, **options: Any) -> PortableLog:
    return place.open(clock=clock.now_ms, monotonic=clock.monotonic, **options)


def at(time: int, name: str, *, is_dated: bool = False) -> Draft:
    return msgspec.structs.replace(said(name), time=time, is_dated=is_dated)


def say(log: PortableLog, clock: ManualClock, name: str) -> int:
    return log.append_now([anywhere("s", at(clock.now_ms(), name))]).recorded[0].time


def steps(log: PortableLog) -> list[tuple[int, int, int, int]]:
    """Return position, time, from and to of each step, as far from the beginning as can be."""
    return [
        (one.position, one.time - NOW, one.event.from_ms - NOW, one.event.to_ms - NOW)
        for one in log.stream("clock")
        if isinstance(one.event, ClockStepped)
    ]


@pytest.mark.clause("L8")
def test_a_clock_that_was_ahead_brings_the_logs_time_back_by_an_event(
    place: Place, clock: ManualClock
) -> None:
    with opened(place, clock) as log:
        say(log, clock, "a")
        clock.advance(1_000)
        clock.set_wall(NOW + TEN_YEARS)
        ahead = say(log, clock, "b")
        clock.set_wall(NOW + 2_000)
        back = say(log, clock, "c")

        assert (ahead, back) == (NOW + TEN_YEARS, NOW + 2_000)
        assert steps(log) == [(2, TEN_YEARS, 1_000, TEN_YEARS), (4, 2_000, TEN_YEARS, 2_000)]
        assert verify_log(log).ok


@pytest.mark.clause("L8")
def test_and_so_it_does_at_the_next_start(place: Place, clock: ManualClock) -> None:
    with opened(place, clock) as log:
        clock.set_wall(NOW + TEN_YEARS)
        say(log, clock, "a")
    clock.set_wall(NOW)
    with opened(place, clock) as log:
        times = [say(log, clock, "b")]
    with opened(place, clock) as log:
        clock.advance(1)
        times.append(say(log, clock, "c"))

        assert times == [NOW, NOW + 1]
        assert steps(log) == [(1, TEN_YEARS, 0, TEN_YEARS), (3, 0, TEN_YEARS, 0)]
        assert verify_log(log).ok


@pytest.mark.clause("L8")
@pytest.mark.parametrize("ms", [-5 * MINUTE, -1, 1, 5 * MINUTE])
def test_minutes_are_no_step_and_time_does_not_fall_for_them(
    place: Place, clock: ManualClock, ms: int
) -> None:
    with opened(place, clock) as log:
        say(log, clock, "a")
        clock.set_wall(NOW + ms)

        assert say(log, clock, "b") == NOW + max(ms, 0)
        assert steps(log) == []


@pytest.mark.clause("L8")
def test_a_log_in_which_nothing_happens_for_days_has_seen_no_step(place: Place, clock: ManualClock) -> None:
    with opened(place, clock) as log:
        say(log, clock, "a")
        for day in range(1, 4):
            clock.advance(86_400_000)
            say(log, clock, f"b{day}")
    clock.set_wall(NOW + TEN_YEARS)  # while nobody writes, nobody can tell a step from a pause
    with opened(place, clock) as log:
        say(log, clock, "c")

        assert steps(log) == []


@pytest.mark.clause("L8")
def test_what_was_made_long_ago_and_what_is_imported_set_no_time_back(
    place: Place, clock: ManualClock
) -> None:
    with opened(place, clock) as log:
        say(log, clock, "a")
        log.append_now([anywhere("s", at(NOW - 60 * MINUTE, "late"))])
        log.append_now([anywhere("i", at(7, "old", is_dated=True))])
        log.append_now([anywhere("i", at(NOW + TEN_YEARS, "future", is_dated=True))])

        assert [one.time for one in log.all()] == [NOW, NOW, 7, NOW + TEN_YEARS]
        assert say(log, clock, "b") == NOW


@pytest.mark.clause("L8", "O5")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_step_whose_commit_fails_is_recorded_with_the_next(
    log_url: str, clock: ManualClock, moment: str
) -> None:
    given = {"clock": clock.now_ms, "monotonic": clock.monotonic}
    with log_at(log_url, environment=faulty(log_url), **given) as log:
        clock.set_wall(NOW + TEN_YEARS)
        say(log, clock, "a")
        clock.set_wall(NOW)
        setattr(FAULT, moment, RuntimeError("not this time"))
        try:
            say(log, clock, "b")
        except StoreUnavailable:
            say(log, clock, "b")

        assert steps(log) == [(1, TEN_YEARS, 0, TEN_YEARS), (3, 0, TEN_YEARS, 0)]
        assert [one.time - NOW for one in log.stream("s")] == [TEN_YEARS, 0]
        assert verify_log(log).ok


@pytest.mark.clause("L8")
def test_a_step_goes_with_the_append_that_told_it_where_that_is_refused(
    place: Place, clock: ManualClock
) -> None:
    told: list[Outcome] = []
    with opened(place, clock, threads=False) as log:
        clock.set_wall(NOW + TEN_YEARS)
        log.append_now([anywhere("s", at(clock.now_ms(), "a"))])
        clock.set_wall(NOW)
        bad = msgspec.structs.replace(at(NOW, "bad"), id="\ud800")
        for draft in (bad, at(NOW, "b"), at(NOW + 1, "c")):
            log.append([anywhere("s", draft)], told.append)
        while log.step():
            pass

        assert [type(outcome).__name__ for outcome in told] == ["Unavailable", "Committed", "Committed"]
        assert steps(log) == [(1, TEN_YEARS, 0, TEN_YEARS), (3, 0, TEN_YEARS, 0)]
        assert [one.time - NOW for one in log.stream("s")] == [TEN_YEARS, 0, 1]
        assert verify_log(log).ok
