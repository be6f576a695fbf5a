"""Work that a caller waits for in the writer's queue: a transaction on tables of views, or the outcome of an append."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from intersession_events.basics.errors import AppendConflict, StoreUnavailable
from intersession_events.log.recorded import Committed, Conflict, Outcome, Unavailable
from intersession_events.stores.database import Cursor, Failures
from intersession_events.stores.portable.group_commit import Work

T = TypeVar("T")


class Transact(Work, Generic[T]):
    """Runs a function inside a transaction and keeps what it returned or raised.

    Where nobody knows how the commit ended it is told that it failed: only the caller could tell, and looks.
    """

    alone = True

    def __init__(self, work: Callable[[Cursor], T], then: Callable[[], None], failures: Failures) -> None:
        self._work = work
        self._then = then
        self._failures = failures
        self._told = threading.Event()
        self._returned: list[T] = []
        self._error: Exception | None = None
        self._abandoned = False

    def write(self, cursor: Cursor) -> None:
        """Run the function, unless nobody waits for it any more."""
        if self._abandoned:
            raise StoreUnavailable("given up before its turn came")
        self._returned = [self._work(cursor)]

    def done(self, error: Exception | None) -> None:
        """Wake the caller. What follows a success (`then`) runs before any later transaction."""
        self._error = error
        if error is None:
            self._then()
        self._told.set()

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._told.is_set()

    def result(self, timeout: float) -> T:
        """Wait for the end and return what the function returned, or raise what it raised.

        Raises:
            StoreUnavailable: the store failed, the role lacks a right, or its turn did not come in time.
        """
        if not self._told.wait(timeout):
            self._abandoned = True
            raise StoreUnavailable(f"the writer had no time for it in {timeout:g} s")
        if self._error is None:
            return self._returned[0]
        if self._failures.is_of_the_store(self._error) or self._failures.is_forbidden(self._error):
            raise self._failures.log_error(self._error) from self._error
        raise self._error


class Waiting:
    """Takes the outcome of one append, and hands it to the thread that waits."""

    def __init__(self) -> None:
        # Released once, for the one thread that waits. An event makes three locks for that: a twelfth of the time that each of
        # many threads takes.
        self._untold = threading.Lock()
        self._untold.acquire()
        self._outcome: Outcome | None = None

    def __call__(self, outcome: Outcome) -> None:
        """Take the outcome."""
        self._outcome = outcome
        self._untold.release()

    @property
    def is_told(self) -> bool:
        """Whether the outcome is known."""
        return self._outcome is not None

    def committed(self, timeout: float) -> Committed:
        """Wait for the outcome, once.

        Raises:
            AppendConflict: a stream was not at its expected version.
            StoreUnavailable: it was refused, or is not known in time.
            LogError: what else the outcome says.
        """
        self._untold.acquire(timeout=min(max(timeout, 0), threading.TIMEOUT_MAX))
        match self._outcome:
            case Committed():
                return self._outcome
            case Conflict(stream=stream, expected=expected, actual=actual):
                raise AppendConflict(stream, expected, actual)
            case Unavailable(error=error):
                raise error
            case None:
                raise StoreUnavailable(
                    f"not durable after {timeout:g} s; it may still become so, read before trying again"
                )
