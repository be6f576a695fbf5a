"""How long ago something began is the monotonic clock's to say, and the wall clock's only for what was before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.running.runtime.clock import Stopwatch
from support.fakes import ManualClock

HOUR = 3_600_000


@pytest.mark.clause("L8")
@given(st.lists(st.tuples(st.integers(0, HOUR), st.integers(-(10**12), 10**12)), max_size=8))
def test_what_began_here_is_as_old_as_the_monotonic_clock_says(steps: list[tuple[int, int]]) -> None:
    clock = ManualClock()
    watch = Stopwatch(clock)
    began = clock.now_ms()
    watch.begin("run", "1", at=clock.monotonic())

    for passed, step in steps:
        clock.advance(passed)
        clock.set_wall(clock.now_ms() + step)
        assert watch.elapsed_ms("run", "1", since_ms=began) == round(clock.monotonic() * 1000)


@pytest.mark.clause("L8")
@pytest.mark.parametrize(("ago", "elapsed"), [(HOUR, HOUR), (0, 0), (-HOUR, 0)])
def test_what_began_before_is_reckoned_from_the_log_once(ago: int, elapsed: int) -> None:
    clock = ManualClock()
    watch = Stopwatch(clock)
    since = clock.now_ms() - ago

    assert watch.elapsed_ms("run", "1", since_ms=since) == elapsed
    clock.set_wall(clock.now_ms() + 5 * HOUR)
    clock.advance(10)
    assert watch.elapsed_ms("run", "1", since_ms=since) == elapsed + 10


def test_what_begins_again_is_young_again() -> None:
    clock = ManualClock()
    watch = Stopwatch(clock)
    watch.begin("said", at=clock.monotonic())
    clock.advance(HOUR)
    watch.begin("said", at=clock.monotonic())

    assert watch.elapsed_ms("said", since_ms=0) == 0


def test_what_is_over_is_let_go_of() -> None:
    """Before: it grew without a bound."""
    clock = ManualClock()
    watch = Stopwatch(clock)
    watch.begin("run", "1", at=clock.monotonic())
    watch.begin("run", "2", at=clock.monotonic())

    watch.forget("run", "1")
    watch.forget("run", "1")

    assert len(watch) == 1
    assert watch.elapsed_ms("run", "1", since_ms=clock.now_ms() - HOUR) == HOUR
