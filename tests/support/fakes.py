"""Small classes that honour a contract and are easy to steer. Shared by all tests; add, do not change."""

import threading
from collections.abc import Callable

from intersession_actors.running.runtime.clock import SystemClock
from intersession_actors.running.runtime.timers import TimerWheel


class ManualClock:
    """A clock that stands still until it is moved. Both hands move together, unless the wall clock is set."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic = 0.0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, ms: int) -> None:
        self._now_ms += ms
        self._monotonic += ms / 1000

    def set_wall(self, now_ms: int) -> None:
        """Step the wall clock, as an operator or NTP does; the monotonic clock does not notice."""
        self._now_ms = now_ms


class TickingClock(SystemClock):
    """The machine's clocks, and no two readings in one millisecond: what follows on something is later than it."""

    def __init__(self) -> None:
        self._reading = threading.Lock()
        self._last_ms = 0

    def now_ms(self) -> int:
        with self._reading:
            self._last_ms = max(super().now_ms(), self._last_ms + 1)
            return self._last_ms


def look_at_clock(wheel: TimerWheel) -> None:
    """Have timers look at a clock now that was moved by hand."""
    with wheel._changed:
        wheel._changed.notify_all()


class ManualTimers:
    """Timers that fire when the clock is advanced through them, in order of the times that they fall due."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self._timers: dict[tuple[str, ...], tuple[int, Callable[[], None]]] = {}

    def after(self, delay_ms: int, key: tuple[str, ...], fire: Callable[[], None]) -> None:
        self._timers.pop(key, None)
        self._timers[key] = (self.clock.now_ms() + delay_ms, fire)

    def cancel(self, key: tuple[str, ...]) -> None:
        self._timers.pop(key, None)

    @property
    def keys(self) -> list[tuple[str, ...]]:
        return sorted(self._timers, key=lambda key: self._timers[key][0])

    def advance(self, ms: int) -> int:
        """Move the clock and fire what falls due on the way, timers set meanwhile among them; return how many."""
        end = self.clock.now_ms() + ms
        fired = 0
        while (key := next(iter(self.keys), None)) is not None and self._timers[key][0] <= end:
            deadline, fire = self._timers.pop(key)
            self.clock.advance(max(deadline - self.clock.now_ms(), 0))
            fire()
            fired += 1
        self.clock.advance(end - self.clock.now_ms())
        return fired
