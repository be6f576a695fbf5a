"""Threads and waiting: the machine's, or a simulation's. Passed to all code that blocks or starts a thread."""

import asyncio
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future
from types import TracebackType
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Thread(Protocol):
    """A started thread."""

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended, at most this many seconds."""
        ...


class Changed(Protocol):
    """A condition, like `threading.Condition`: a state that others wait for may have changed."""

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> object: ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until notified; False after a timeout."""
        ...

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """Wait until a predicate is true; return its last value."""
        ...

    def notify(self, n: int = 1) -> None:
        """Wake a number of waiting threads."""
        ...

    def notify_all(self) -> None:
        """Wake all waiting threads."""
        ...


class Threads(Protocol):
    """Starts threads, and waits."""

    by_hand: bool
    """Whether nothing happens by itself: a simulation decides what is done when."""

    def start(self, run: Callable[[], object], *, name: str) -> Thread:
        """Run a function on a daemon thread."""
        ...

    def me(self) -> Hashable:
        """Return an identifier of the calling thread among those that live."""
        ...

    def is_here(self, thread: Thread | None) -> bool:
        """Whether this is the calling thread."""
        ...

    def changed(self) -> Changed:
        """Return a condition to wait on."""
        ...

    def wait(self, future: "Future[Any]", timeout: float | None) -> bool:  # of whatever kind
        """Wait until a future is done, at most this many seconds; return whether it is."""
        ...

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """Return an event loop for a thread of its own."""
        ...


class _Condition(threading.Condition):
    """`threading.Condition`, entered as its lock is, without a call of Python's: some are entered several times a turn."""

    __slots__ = ("__enter__", "__exit__")

    def __init__(self) -> None:
        lock = threading.RLock()
        super().__init__(lock)
        self.__enter__ = lock.__enter__  # type: ignore[method-assign]
        self.__exit__ = lock.__exit__  # type: ignore[method-assign]  # pyright: ignore[reportAttributeAccessIssue]


class MachineThreads:
    """The machine's own threads, locks and event loops."""

    by_hand = False

    def start(self, run: Callable[[], object], *, name: str) -> Thread:
        """Run a function on a thread of its own."""
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def me(self) -> Hashable:
        """Return the number of the calling thread."""
        return threading.get_ident()

    def is_here(self, thread: Thread | None) -> bool:
        """Whether this is the calling thread."""
        return thread is threading.current_thread()

    def changed(self) -> Changed:
        """Return a condition to wait on."""
        return _Condition()

    def wait(self, future: "Future[Any]", timeout: float | None) -> bool:  # of whatever kind
        """Wait until a future is done."""
        try:
            future.exception(timeout)
        except (TimeoutError, CancelledError):
            return future.done()
        return True

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """Return an event loop of the machine's."""
        return asyncio.new_event_loop()
