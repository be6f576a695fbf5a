"""The threads that block for coroutines: a bounded number, shared fairly between callers."""

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Final, NamedTuple, TypeVar

from intersession_actors.running.host.own_threads import filling
from intersession_actors.running.host.threads import Job, Workers
from intersession_actors.running.runtime.threads import Threads
from intersession_events.basics.errors import StoreUnavailable

T = TypeVar("T")

THREADS: Final = 16
RESERVED: Final = 2

ABOUT: Final = "about the system"
"""The lane of `health` and the like: it has threads of its own, which nothing else can hold."""


class LimitedLane(NamedTuple):
    """The one lane of a limited credential, for all its calls: a quarter of the threads at most, in turn with others."""

    caller: str


def _here() -> None:
    return


class DoorThreads:
    """Runs blocking work of doors, each caller in turn.

    Each caller is a lane: none has more than half of the threads, and a limited credential, which is one lane, a quarter.
    Once the threads have ended, so has the system: callers are told so. `check` raises `StoreUnavailable` where there are
    none, in a forked child of the process that has them.
    """

    def __init__(
        self, number: int = THREADS, *, check: Callable[[], object] = _here, threads: Threads | None = None
    ) -> None:
        self._check = check
        half, quarter = max(number // 2, 1), max(number // 4, 1)
        self._workers = Workers(
            number,
            per_lane=lambda lane: quarter if isinstance(lane, LimitedLane) else half,
            name="doors",
            threads=threads,
        )
        self._reserved = Workers(RESERVED, name="doors-reserved", threads=threads)

    def submit(self, work: Callable[[], T], lane: Hashable = None) -> "Future[T]":
        """Run a function on a thread, in the caller's context: it has the same cause.

        Raises:
            StoreUnavailable: the system is closed, or another process's.
        """
        self._check()
        future: Future[T] = Future()
        work = partial(copy_context().run, work)
        workers = self._reserved if lane == ABOUT else self._workers
        try:
            workers.submit(Job(filling(future, work), lane))
        except RuntimeError as error:
            raise StoreUnavailable("the system is closed") from error
        return future

    def here(self, work: Callable[[], T]) -> T:
        """Run a function that does not block on the calling thread, under the same conditions.

        Raises:
            StoreUnavailable: the system is closed, or another process's.
        """
        self._check()
        if self._workers.stopped:
            raise StoreUnavailable("the system is closed")
        return work()

    async def run(self, work: Callable[[], T], lane: Hashable = None) -> T:
        """Run a function on a thread and await what it returns.

        Raises:
            StoreUnavailable: the system is closed.
        """
        return await asyncio.wrap_future(self.submit(work, lane))

    def shutdown(self) -> None:
        """Take no more, and finish what was taken."""
        for workers in (self._workers, self._reserved):
            workers.stop(finish=True)
