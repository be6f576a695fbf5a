"""The time, handed in: wall clock for what is recorded, monotonic clock and stopwatch for how long something takes.

The log says when something began by the wall clock, which can be set. So the one process that saw it begin measures it
on the monotonic clock, and only what began before this process is reckoned from the log's time (reliability, L8).
"""

import threading
import time
from collections import OrderedDict
from typing import Final, Protocol

from intersession_events.basics.machine import wall_clock_ms


class Clock(Protocol):
    """A wall clock and a monotonic clock."""

    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970. It can jump, either way."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some moment. It never goes back."""
        ...


class SystemClock:
    """The machine's clocks."""

    now_ms = staticmethod(wall_clock_ms)
    monotonic = staticmethod(time.monotonic)


MOST: Final = 16_384
"""Beginnings that are kept, of what is not over. The least recently asked for is forgotten, and reckoned from the log's time again."""


class Stopwatch:
    """Measures how long ago things began, each by its key. Its methods may be called from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._began: OrderedDict[tuple[str, ...], float] = OrderedDict()

    def begin(self, *key: str, at: float) -> None:
        """Start measuring, at a time of the monotonic clock; repeated, it starts over."""
        with self._lock:
            self._began[key] = at
            self._began.move_to_end(key)
            if len(self._began) > MOST:
                self._began.popitem(last=False)

    def forget(self, *key: str) -> None:
        """Drop a measurement; does nothing for an unknown one."""
        with self._lock:
            self._began.pop(key, None)

    def __len__(self) -> int:
        """Return how many beginnings are kept."""
        return len(self._began)

    def elapsed_ms(self, *key: str, since_ms: int) -> int:
        """Return how many milliseconds ago it began, never less than 0.

        `since_ms` is when it began by the wall clock: for what this process has not seen begin.
        """
        now = self._clock.monotonic()
        with self._lock:
            began = self._began.get(key)
            if began is not None:
                self._began.move_to_end(key)
        if began is None:
            began = now - max(self._clock.now_ms() - since_ms, 0) / 1000
            self.begin(*key, at=began)
        # Rounded, not cut: a timer that fires after n milliseconds then measures n.
        return max(round((now - began) * 1000), 0)
