"""The time, handed in: wall clock for what is recorded, monotonic clock for how long something takes."""

import time
from typing import Protocol

from intersession_events.basics.machine import wall_clock_ms


class Clock(Protocol):
    """Two clocks that tick together, until somebody sets the first one."""

    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970. It can jump, either way."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some moment. It only goes on."""
        ...


class SystemClock:
    """The machine's clocks."""

    now_ms = staticmethod(wall_clock_ms)
    monotonic = staticmethod(time.monotonic)
