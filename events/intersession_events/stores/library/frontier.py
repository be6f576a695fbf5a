"""Keeps how far the log has got, and tells those who wait for a position or listen for commits."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from intersession_events.log import OnCommitted, Recorded

_LOGGER: Final = logging.getLogger("intersession.store")


class Frontier:
    """The position of the last event, waiters for positions, and listeners to commits."""

    def __init__(self, head: int) -> None:
        self._head = head
        self._moved = threading.Condition()
        self._closed = False
        self._listeners: tuple[OnCommitted, ...] = ()

    def waits_on(self, condition: threading.Condition) -> None:
        """Have those who wait do it on another condition: a simulation's."""
        self._moved = condition

    @property
    def head(self) -> int:
        """The position of the last committed event."""
        return self._head

    def advance(self, position: int) -> int:
        """Take note of a commit, wake who waits for it, and return the position of the last one."""
        with self._moved:
            self._head = max(self._head, position)
            self._moved.notify_all()
            return self._head

    def tell(self, recorded: Sequence[Recorded]) -> None:
        """Give committed events to the listeners; what goes wrong in one stays there."""
        for listener in self._listeners:
            try:
                listener(recorded)
            except (Exception, SystemExit):
                _LOGGER.exception("a listener to commits raised; it must not")

    def listen(self, listener: OnCommitted) -> Callable[[], None]:
        """Call a listener with everything that is committed from now on. Returns a way to stop."""
        with self._moved:
            self._listeners = (*self._listeners, listener)

        def stop() -> None:
            with self._moved:
                self._listeners = tuple(known for known in self._listeners if known is not listener)

        return stop

    @property
    def is_closed(self) -> bool:
        """Whether the log goes no further."""
        return self._closed

    def wait_for(self, position: int, timeout: float) -> bool:
        """Wait until the log has reached a position; False if it has not in time, or is closed."""
        self.wait_until(lambda: self._head >= position, timeout)
        return self._head >= position

    def wait_until(self, happened: Callable[[], bool], timeout: float) -> None:
        """Wait until something has happened that comes with a commit or a `wake`, at most until the log is closed."""
        with self._moved:
            self._moved.wait_for(lambda: happened() or self._closed, timeout)

    def wake(self) -> None:
        """Let everybody who waits look whether it has happened."""
        with self._moved:
            self._moved.notify_all()

    def close(self) -> None:
        """Wake all who wait."""
        with self._moved:
            self._closed = True
            self._moved.notify_all()
