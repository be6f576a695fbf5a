"""The time, handed in: wall clock for what is recorded, monotonic clock for how long something takes."""

import time
from typing import Protocol


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

    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return seconds since the machine started, or some such moment."""
        return time.monotonic()
