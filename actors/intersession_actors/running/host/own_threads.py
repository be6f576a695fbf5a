"""Threads for coroutines that must block. The standard library's pools take no more work once the main thread has returned.

A host may go on in other threads then (one that polls, actors), for as long as it likes.
"""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Final, ParamSpec, TypeVar

from intersession_actors.running.host.threads import Job, Workers

_Taken = ParamSpec("_Taken")
T = TypeVar("T")

MOST: Final = 32
"""The most threads, as in asyncio."""


class OwnThreads(ThreadPoolExecutor):
    """An executor that takes work until it is shut down or the process ends, on daemon threads.

    It is a `ThreadPoolExecutor` since an event loop takes no other kind as its own.
    """

    def __init__(self, name: str) -> None:
        super().__init__(MOST, thread_name_prefix=name)
        self._workers = Workers(MOST, keep=0, name=name)

    def submit(self, fn: Callable[_Taken, T], /, *args: _Taken.args, **kwargs: _Taken.kwargs) -> "Future[T]":
        """Run a function on a thread.

        Raises:
            RuntimeError: it was shut down, or the machine has no thread left.
        """
        future: Future[T] = Future()
        self._workers.submit(Job(filling(future, partial(fn, *args, **kwargs))))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more, and finish what was taken."""
        self._workers.stop(finish=not cancel_futures)
        if wait:
            self._workers.join(threading.TIMEOUT_MAX)


def filling(future: "Future[T]", work: Callable[[], T]) -> Callable[[], None]:
    """Return a function that does work, unless its future was cancelled, and completes the future with the result or exception."""

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - the waiting caller is told, whatever it is
            future.set_exception(error)
        else:
            future.set_result(result)

    return run


async def off_loop(function: Callable[_Taken, T], /, *args: _Taken.args, **kwargs: _Taken.kwargs) -> T:
    """Run a blocking function on a thread, in the caller's context, and await its result or exception."""
    work = partial(copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_process.threads, work)


async def to_its_end(function: Callable[_Taken, T], /, *args: _Taken.args, **kwargs: _Taken.kwargs) -> T:
    """Like `off_loop`, on a thread that the process waits for when it ends."""
    return await _alone(partial(function, *args, **kwargs), "closing", daemon=False)


async def on_own_thread(function: Callable[[], T], name: str) -> T:
    """Like `off_loop`, for a function of the host's that may hang: on a thread that nothing else waits for."""
    return await _alone(function, name, daemon=True)


async def _alone(function: Callable[[], T], name: str, *, daemon: bool) -> T:
    future: Future[T] = Future()
    work = partial(copy_context().run, function)
    threading.Thread(target=filling(future, work), name=name, daemon=daemon).start()
    return await asyncio.wrap_future(future)


class _Process:
    """The threads of the process for all its loops. A fork has none of its parent's, and begins with none."""

    def __init__(self) -> None:
        self.begin()
        os.register_at_fork(after_in_child=self.begin)

    def begin(self) -> None:
        self.threads = OwnThreads("off-loop")


_process: Final = _Process()
