"""Reads for callers that must not block: on threads of its own, or by hand, for a simulation that orders everything itself.

The threads are no pool of the standard library's: those take no more work from when the main thread has returned, and a host may
go on in other threads for as long as it likes.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final, TypeVar

from intersession_events.basics.errors import LogError, StoreUnavailable

_LOGGER: Final = logging.getLogger("intersession.store")
_THREADS: Final = 2

T = TypeVar("T")


class Loader:
    """Reads on request, one after the other. `check` raises if reading is not allowed."""

    def __init__(self, *, threads: bool, check: Callable[[], None]) -> None:
        self._check = check
        self._waiting: deque[Callable[[], None]] = deque()
        """What waits to be read by hand."""
        self._jobs: SimpleQueue[Callable[[], None] | None] | None = SimpleQueue() if threads else None
        """What waits to be read by a thread; None ends one."""
        self._lock = threading.RLock()  # a handler of a signal may ask, or close, in the middle of this
        self._threads: list[threading.Thread] = []
        self._closed = False

    @property
    def by_hand(self) -> bool:
        """Whether reading happens only in `step`."""
        return self._jobs is None

    @property
    def has_work(self) -> bool:
        """Whether a request waits for `step`."""
        return bool(self._waiting)

    def later(self, read: Callable[[], T], told: Callable[[T | Exception], None]) -> None:
        """Queue a read and call back with its result or error; never blocks, never raises."""

        def job() -> None:
            found: T | Exception
            try:
                found = read()
            except Exception as error:  # noqa: BLE001 - a waiting caller must hear of it
                found = error
            tell(told, found)

        if self._jobs is None:
            self._waiting.append(job)
            return
        try:
            self._check()
            self._have_read(self._jobs, job)
        except LogError as error:
            tell(told, error)
        except RuntimeError as error:
            tell(told, StoreUnavailable(f"no thread can be started to read the log: {error}"))

    def step(self) -> bool:
        """Run the oldest request in the calling thread; False if none waits."""
        if not self._waiting:
            return False
        self._waiting.popleft()()
        return True

    def forget(self) -> None:
        """Drop the waiting requests."""
        self._waiting.clear()

    def close(self) -> None:
        """Finish the running request, and start no other."""
        with self._lock:
            self._closed = True
            threads, self._threads = self._threads, []
        for _ in threads:
            if self._jobs is not None:
                self._jobs.put(None)
        if threading.current_thread() not in threads:
            for thread in threads:
                thread.join()

    def _have_read(self, jobs: "SimpleQueue[Callable[[], None] | None]", job: Callable[[], None]) -> None:
        with self._lock:
            if self._closed:
                raise StoreUnavailable("the log is closed")
            while len(self._threads) < _THREADS:
                thread = threading.Thread(target=_work, args=(jobs,), name="intersession-loader", daemon=True)
                thread.start()
                self._threads.append(thread)
            jobs.put(job)


def _work(jobs: "SimpleQueue[Callable[[], None] | None]") -> None:
    while (job := jobs.get()) is not None:
        try:
            job()
        except BaseException:
            _LOGGER.exception("reading for somebody ended in no error; the next one is read all the same")


def tell(callback: Callable[[T], None], value: T) -> None:
    """Call back, and log an error of the callback: the next request belongs to another caller."""
    try:
        callback(value)
    except (Exception, SystemExit):
        _LOGGER.exception("a callback of the log raised; it must not")
