"""Reads for those who must not block: on threads of its own, or by hand, for a simulation that decides itself what happens when."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from intersession_events.errors import LogError, StoreUnavailable

_LOGGER: Final = logging.getLogger("intersession.store")
_THREADS: Final = 2
_NAME: Final = "intersession-loader"

T = TypeVar("T")


class Loader:
    """Has what is asked for read, in turn. `check` says whether that may be, by an error."""

    def __init__(self, *, threads: bool, check: Callable[[], None]) -> None:
        self._check = check
        self._waiting: deque[Callable[[], None]] = deque()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix=_NAME) if threads else None

    @property
    def by_hand(self) -> bool:
        """Whether nothing is read but by `step`."""
        return self._threads is None

    @property
    def has_work(self) -> bool:
        """Whether something waits to be read by `step`."""
        return bool(self._waiting)

    def later(self, read: Callable[[], T], told: Callable[[T | Exception], None]) -> None:
        """Have something read, and tell what came of it, an error too; never blocks, never raises."""

        def job() -> None:
            found: T | Exception
            try:
                found = read()
            except Exception as error:  # noqa: BLE001 - whoever waits must hear of it
                found = error
            tell(told, found)

        if self._threads is None:
            self._waiting.append(job)
            return
        try:
            self._check()
            self._threads.submit(job)
        except (LogError, RuntimeError) as error:
            tell(told, error if isinstance(error, LogError) else StoreUnavailable("the log is closed"))

    def step(self) -> bool:
        """Read what was asked for first, in the calling thread; False if nothing waited."""
        if not self._waiting:
            return False
        self._waiting.popleft()()
        return True

    def forget(self) -> None:
        """Drop what waits to be read."""
        self._waiting.clear()

    def close(self) -> None:
        """Finish what was begun, and begin nothing more."""
        if self._threads is not None:
            self._threads.shutdown(wait=not threading.current_thread().name.startswith(_NAME))


def tell(callback: Callable[[T], None], value: T) -> None:
    """Call back, and log what the callback raises: what comes next belongs to another caller."""
    try:
        callback(value)
    except (Exception, SystemExit):
        _LOGGER.exception("a callback of the log raised; it must not")
