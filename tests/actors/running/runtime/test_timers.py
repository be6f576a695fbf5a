import threading
from collections.abc import Iterator
from functools import partial

import pytest

from intersession_actors.running.runtime.clock import SystemClock
from intersession_actors.running.runtime.timers import TimerWheel
from support.fakes import ManualClock, ManualTimers, look_at_clock

WAIT = 20.0
YEAR_MS = 365 * 24 * 3600 * 1000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def wheel(clock: ManualClock) -> Iterator[TimerWheel]:
    started = TimerWheel(clock)
    yield started
    started.stop()


class Bell:
    """Counts how often it was rung, and can be waited for."""

    def __init__(self) -> None:
        self._rung = threading.Semaphore(0)
        self.order: list[str] = []

    def ring(self, name: str = "ring") -> None:
        self.order.append(name)
        self._rung.release()

    def heard(self, times: int = 1) -> list[str]:
        for _ in range(times):
            assert self._rung.acquire(timeout=WAIT)
        return self.order


def test_a_timer_fires_once_its_deadline_is_reached(clock: ManualClock, wheel: TimerWheel) -> None:
    bell = Bell()
    wheel.after(1000, ("run", "1"), bell.ring)
    wheel.after(999, ("run", "0"), lambda: bell.ring("before"))

    clock.advance(999)
    look_at_clock(wheel)
    assert bell.heard() == ["before"]
    assert len(wheel._set) == 1

    clock.advance(1)
    look_at_clock(wheel)
    assert bell.heard() == ["before", "ring"]
    assert len(wheel._set) == 0


def test_a_deadline_that_has_passed_fires_at_once() -> None:
    wheel = TimerWheel(SystemClock())
    bell = Bell()
    wheel.after(-5, ("missed while down",), bell.ring)
    assert bell.heard() == ["ring"]
    wheel.stop()


def test_timers_fire_in_order_of_their_deadlines(clock: ManualClock, wheel: TimerWheel) -> None:
    bell = Bell()
    for number in (3, 1, 2):
        wheel.after(number, (str(number),), partial(bell.ring, str(number)))

    clock.advance(3)
    look_at_clock(wheel)

    assert bell.heard(3) == ["1", "2", "3"]


def test_setting_a_key_again_moves_its_timer(clock: ManualClock, wheel: TimerWheel) -> None:
    bell = Bell()
    wheel.after(1000, ("run",), lambda: bell.ring("first"))
    wheel.after(2000, ("run",), lambda: bell.ring("second"))
    assert len(wheel._set) == 1

    clock.advance(2000)
    look_at_clock(wheel)

    assert bell.heard() == ["second"]


def test_a_cancelled_timer_does_not_fire(clock: ManualClock, wheel: TimerWheel) -> None:
    bell = Bell()
    wheel.after(1, ("cancelled",), lambda: bell.ring("cancelled"))
    wheel.after(2, ("kept",), lambda: bell.ring("kept"))
    wheel.cancel(("cancelled",))
    wheel.cancel(("never set",))

    clock.advance(2)
    look_at_clock(wheel)

    assert bell.heard() == ["kept"]


@pytest.mark.clause("L8")
@pytest.mark.parametrize("step_ms", [-3_600_000, -10 * YEAR_MS, YEAR_MS])
def test_a_step_of_the_wall_clock_moves_no_timer(clock: ManualClock, wheel: TimerWheel, step_ms: int) -> None:
    bell = Bell()
    wheel.after(1000, ("run",), lambda: bell.ring("run"))
    clock.set_wall(clock.now_ms() + step_ms)
    clock.advance(999)
    wheel.after(0, ("now",), lambda: bell.ring("now"))

    assert bell.heard() == ["now"]

    clock.advance(1)
    look_at_clock(wheel)
    assert bell.heard() == ["now", "run"]


@pytest.mark.parametrize("error", [ValueError(), SystemExit(1)])
def test_a_timer_that_raises_does_not_stop_the_others(
    clock: ManualClock, wheel: TimerWheel, error: BaseException
) -> None:
    bell = Bell()

    def fire() -> None:
        raise error

    wheel.after(0, ("bad",), fire)
    wheel.after(1, ("good",), bell.ring)
    clock.advance(1)
    look_at_clock(wheel)

    assert bell.heard() == ["ring"]


def test_timers_that_come_and_go_leave_nothing_behind(wheel: TimerWheel) -> None:
    for number in range(10_000):
        wheel.after(YEAR_MS, (str(number),), lambda: None)
        wheel.cancel((str(number),))

    assert len(wheel._set) == 0
    assert len(wheel._alarms) < 100


def test_a_stopped_wheel_fires_nothing(clock: ManualClock) -> None:
    wheel = TimerWheel(clock)
    bell = Bell()
    wheel.after(1000, ("run",), bell.ring)
    wheel.stop()
    wheel.after(0, ("too late",), bell.ring)
    clock.advance(1000)
    look_at_clock(wheel)

    assert bell.order == []


def test_manual_timers_fire_what_falls_due_on_the_way() -> None:
    timers = ManualTimers(ManualClock(0))
    fired: list[tuple[str, int]] = []

    def again() -> None:
        fired.append(("first", timers.clock.now_ms()))
        timers.after(10, ("second",), lambda: fired.append(("second", timers.clock.now_ms())))

    timers.after(5, ("first",), again)
    timers.after(1000, ("later",), again)

    assert timers.advance(20) == 2
    assert fired == [("first", 5), ("second", 15)]
    assert timers.clock.now_ms() == 20
    assert timers.keys == [("later",)]
