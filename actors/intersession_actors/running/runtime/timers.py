"""One thread for all timers: the awaited state is in the log, a timer is only the alarm."""

import logging
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, NamedTuple, Protocol

from intersession_actors.running.runtime.clock import Clock
from intersession_actors.running.runtime.threads import MachineThreads, Thread, Threads

logger = logging.getLogger("intersession.actors")

Key = tuple[str, ...]
Fire = Callable[[], None]

LONGEST_SLEEP: Final = 3600.0
"""In seconds. A thread can't be told to sleep for a thousand years, but it can sleep often."""

CANCELLED_BEFORE_SWEEP: Final = 64


class _Alarm(NamedTuple):
    due: float
    number: int
    key: Key


class Timers(Protocol):
    """Calls back after a while. A key has one timer; setting it again moves it."""

    def after(self, delay_ms: int, key: Key, fire: Fire) -> None:
        """Call `fire` in this many milliseconds, at once for 0 and less."""
        ...

    def cancel(self, key: Key) -> None:
        """Cancel a timer."""
        ...


class TimerWheel:
    """Calls back after a while, from its own thread. A key has one timer.

    It knows the monotonic clock alone, so that no step of the wall clock moves anything (`docs/reliability.md`, L8).
    """

    def __init__(self, clock: Clock, *, threads: Threads | None = None) -> None:
        self._clock = clock
        self._threads = threads or MachineThreads()
        self._changed = self._threads.changed()
        self._alarms: list[_Alarm] = []
        self._set: dict[Key, tuple[int, Fire]] = {}
        self._numbers = count()
        self._stopped = False
        self._thread: Thread | None = None

    def after(self, delay_ms: int, key: Key, fire: Fire) -> None:
        """Call `fire` in this many milliseconds, at once for 0 and less; it must not block.

        Setting a key again moves its timer. After `stop` nothing is set any more.
        """
        with self._changed:
            if self._stopped:
                return
            due = self._clock.monotonic() + delay_ms / 1000
            number = next(self._numbers)
            self._set[key] = (number, fire)
            heappush(self._alarms, _Alarm(due, number, key))
            if len(self._alarms) > 2 * len(self._set) + CANCELLED_BEFORE_SWEEP:
                self._sweep()
            if self._thread is None:
                self._thread = self._threads.start(self._run, name="timers")
            if self._alarms[0].number == number:
                self._changed.notify_all()  # the others come later than what it waits for

    def cancel(self, key: Key) -> None:
        """Cancel a timer; does nothing if there is none."""
        with self._changed:
            self._set.pop(key, None)

    def stop(self) -> None:
        """Cancel all timers and end the thread."""
        with self._changed:
            self._stopped = True
            self._set.clear()
            self._alarms.clear()
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and not self._threads.is_here(thread):
            thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._stopped:
                    return
                fire = self._next_due()
                if fire is None:
                    self._changed.wait(self._until_next())
                    continue
            try:
                fire()
            except BaseException:
                logger.exception("a timer could not be delivered")

    def _next_due(self) -> Fire | None:
        now = self._clock.monotonic()
        while self._alarms and self._alarms[0].due <= now:
            alarm = heappop(self._alarms)
            number, fire = self._set.get(alarm.key, (-1, None))
            if number == alarm.number and fire is not None:
                del self._set[alarm.key]
                return fire
        return None

    def _until_next(self) -> float | None:
        if not self._alarms:
            return None
        return min(max(self._alarms[0].due - self._clock.monotonic(), 0.0), LONGEST_SLEEP)

    def _sweep(self) -> None:
        """Drop cancelled alarms, once they are the majority."""
        self._alarms = [a for a in self._alarms if self._set.get(a.key, (-1, None))[0] == a.number]
        heapify(self._alarms)
