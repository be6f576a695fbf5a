"""Answers that may have to be waited for, and the two ways to wait: on the calling thread, or without blocking a loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import ParamSpec, TypeVar

import msgspec

from intersession_events.errors import StoreUnavailable
from intersession_events.plain_json import JsonObject

P = ParamSpec("P")
T = TypeVar("T")

Result = JsonObject
"""An answer, as a model or a client sees it."""


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that is there once `future` is done or `timeout` seconds are over; `finish` then makes it from the log.

    `over` is called when the wait has ended in whichever way, before `finish`, and also where nobody wants the answer
    any more.
    """

    future: "Future[None]"
    timeout: float
    finish: Callable[[], Result]
    over: Callable[[], object]

    def with_fields(self, **fields: object) -> "Pending":
        """Return the same wait, whose answer has these fields too."""
        return msgspec.structs.replace(self, finish=lambda: self.finish() | fields)


class BlockingThreads(ThreadPoolExecutor):
    """The threads that block for coroutines. Once they have ended, so has the system: callers are told so."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Run a function on a thread.

        Raises:
            StoreUnavailable: the system is closed.
        """
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError as error:
            raise StoreUnavailable("the system is closed") from error

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function on a thread and await what it returns.

        Raises:
            StoreUnavailable: the system is closed.
        """
        return await asyncio.wrap_future(self.submit(work))


def finished(begun: Result | Pending) -> Result:
    """Return the answer, waiting for it on the calling thread."""
    if not isinstance(begun, Pending):
        return begun
    try:
        with suppress(TimeoutError):
            begun.future.result(begun.timeout)
    finally:
        begun.over()
    return begun.finish()


async def afinished(begun: Result | Pending, threads: BlockingThreads) -> Result:
    """Return the answer without blocking the event loop; while it is waited for, no thread is held."""
    if not isinstance(begun, Pending):
        return begun
    try:
        await asyncio.wait([asyncio.wrap_future(begun.future)], timeout=begun.timeout)
    finally:
        begun.over()
    try:
        finishing = threads.submit(begun.finish)
    except StoreUnavailable:
        return begun.finish()  # closed meanwhile: what it has to say takes no time
    return await asyncio.wrap_future(finishing)
