"""Calls the host's code, for agents and channels, catches whatever it does, and tells of code that blocks an event loop.

The host's code may raise anything, SystemExit included, answer twice, late or never. None of that reaches a thread of
ours: each call has one outcome, the first.
"""

import asyncio
import concurrent.futures
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Hashable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import FunctionType, coroutine
from typing import Any, Final, NamedTuple, TypeGuard, TypeVar

import pykka

from intersession_actors.running.host.hosts_loop import HostsLoop, LoopEnded, OwnLoop, Watch
from intersession_actors.running.host.threads import Job, Workers
from intersession_actors.running.runtime.reply import ReplyFuture
from intersession_actors.running.runtime.threads import Threads

T = TypeVar("T")

logger = logging.getLogger("intersession.host")


LONG_S: Final = 1.0
"""A step that takes so long has blocked the loop: it computes, sleeps, or waits for a client that blocks."""


class Blocking(NamedTuple):
    """Reports code that blocks an event loop: its name, and for how many seconds. `monotonic` is the clock."""

    monotonic: Callable[[], float]
    tell: Callable[[str, float], None]

    async def watched(self, name: str, awaitable: Awaitable[T]) -> T:
        """Await something, and report the first of its steps that takes long."""

        async def whole() -> T:
            return await awaitable

        told = False

        def took(seconds: float) -> None:
            nonlocal told
            if seconds >= LONG_S and not told:
                told = True
                self.tell(name, seconds)

        return await _stepped(whole(), self.monotonic, took)


@coroutine
def _stepped(
    whole: Coroutine[object, object, T], monotonic: Callable[[], float], took: Callable[[float], None]
) -> Generator[object, object, T]:
    resume: Callable[[], object] = partial(whole.send, None)
    while True:
        began = monotonic()
        try:
            awaited = resume()
        except StopIteration as end:
            found: T = end.value
            return found
        finally:
            took(monotonic() - began)
        try:
            resume = partial(whole.send, (yield awaited))
        except BaseException as error:  # noqa: BLE001 - a cancellation above all: the coroutine decides on it
            resume = partial(whole.throw, error)


class Came(NamedTuple):
    """The call returned a value."""

    value: object


class Raised(NamedTuple):
    """The call raised; any kind of exception."""

    error: BaseException


Outcome = Came | Raised
OnOutcome = Callable[[Outcome], None]
Inside = Callable[[], AbstractContextManager[None]]
"""Makes the context that code of the host's runs in; each piece of one call has its own."""


class Call:
    """A running call. `done` gets its outcome, unless it was cancelled first: then `late` does, if there is one.

    `name` is what its code is called where it blocks an event loop.
    """

    def __init__(self, done: OnOutcome, late: OnOutcome, *, name: str = "") -> None:
        self.name = name
        self._done = done
        self._late = late
        self._lock = threading.Lock()
        self._cancelled = False
        self._settled = False
        self._begun = False
        self._withdrawn = False
        self._undo: Callable[[], bool] | None = None

    def begin(self) -> bool:
        """Note that the host's code is about to run; False if the call was withdrawn."""
        with self._lock:
            self._begun = self._begun or not self._withdrawn
            return self._begun

    def withdraw(self) -> bool:
        """Make sure that the host's code never runs for it; False if it is running, or did run."""
        with self._lock:
            self._withdrawn = not self._begun
            return self._withdrawn

    def settle(self, outcome: Outcome) -> None:
        """Take the outcome. A second one is ignored."""
        with self._lock:
            if self._settled:
                return
            self._settled = True
            listener = self._late if self._cancelled else self._done
            # They have the call themselves: in a circle, it would be there until the garbage collector comes.
            self._done = self._late = _nobody
            self._undo = None
            if (
                self._cancelled
                and isinstance(outcome, Raised)
                and isinstance(outcome.error, asyncio.CancelledError)
            ):
                return  # that is our own cancellation, come back
        try:
            listener(outcome)
        except BaseException:
            logger.exception("the outcome of a call could not be delivered")

    def cancel(self) -> bool:
        """Stop the call as far as possible: a task is cancelled, a thread given up.

        Returns whether that came before its outcome.
        """
        with self._lock:
            if self._cancelled or self._settled:
                return False
            self._cancelled = True
            undo, self._undo = self._undo, None
        if undo is not None:
            self._stop(undo)
        return True

    def undo_with(self, undo: Callable[[], bool]) -> None:
        """Set how the call is stopped from now on; `undo` returns whether it may still return."""
        with self._lock:
            cancelled = self._cancelled
            if not cancelled and not self._settled:
                self._undo = undo
        if cancelled:
            self._stop(undo)

    def _stop(self, undo: Callable[[], bool]) -> None:
        if not undo():
            self._settled = True

    @property
    def is_cancelled(self) -> bool:
        """Whether we have cancelled it."""
        return self._cancelled

    @property
    def is_zombie(self) -> bool:
        """Whether it was cancelled and has not returned."""
        return self._cancelled and not self._settled and not self._withdrawn


class Outside:
    """Makes the calls, at most `per_lane` of one lane on threads at a time. `blocking` reports code that blocks an event loop."""

    def __init__(
        self,
        *,
        pool_size: int,
        name: str,
        keep: int | None = None,
        per_lane: int | None = None,
        hosts_loop: HostsLoop | None = None,
        threads: Threads | None = None,
        blocking: Blocking | None = None,
    ) -> None:
        self._blocking = blocking
        self._workers = Workers(pool_size, keep=keep, per_lane=per_lane, name=name, threads=threads)
        self._own_loop = OwnLoop(name=f"{name}-loop", threads=threads)
        self._hosts_loop = hosts_loop or HostsLoop()
        self._watch = Watch(threads=threads)

    def waiting(self) -> AbstractContextManager[None]:
        """Leave the calling thread out of the count while it waits, so that another one starts in its place."""
        return self._workers.waiting()

    def call(
        self,
        call: Call,
        function: Callable[[T], Any],  # what it returns is awaited or not, as it itself says
        argument: T,
        *,
        inside: Inside = nullcontext,
        lane: Hashable = None,
        on_loop: bool | None = None,
    ) -> None:
        """Call a function with an argument; never blocks, never raises. Its code runs in the context `inside`.

        It is called on an event loop if it is asynchronous; `on_loop` says that where it is known. `lane` is whom it is called for: where that is a function that blocks, it waits for others of its lane alone.
        """
        try:
            if is_async(function) if on_loop is None else on_loop:
                self._on_loop(call, lambda: function(argument), inside)
            else:
                self._on_thread(call, lambda: function(argument), inside, lane)
        except BaseException as error:  # noqa: BLE001 - the outcome of the call, whatever it is
            call.settle(Raised(error))

    def stop(self, timeout: float) -> None:
        """End the threads and the loop, as far as they return."""
        self._workers.stop()
        self._own_loop.stop(timeout)

    def _on_thread(
        self, call: Call, run: Callable[[], object], inside: Inside, lane: Hashable = None
    ) -> None:
        def job() -> None:
            if not call.begin():
                return
            try:
                with inside():
                    value = run()
            except BaseException as error:  # noqa: BLE001 - the outcome of the call, whatever it is
                call.settle(Raised(error))
            else:
                self._resolve(call, value, inside)

        work = Job(job, lane)
        call.undo_with(lambda: self._workers.give_up(work))
        self._workers.submit(work)

    def _on_loop(self, call: Call, run: Callable[[], Awaitable[object]], inside: Inside) -> None:
        hosts = self._hosts_loop.get()
        loop = hosts or self._own_loop.get()

        coroutine = self._awaited(call, run, inside, loop, is_hosts=loop is hosts)

        def stood_still() -> None:
            if not loop.is_closed():
                begun.cancel()  # should it ever run again, that is not another attempt
            self._loop_ended(call, loop)

        if loop is hosts:
            self._watch.begin(call, loop, stood_still)
        try:
            begun = asyncio.run_coroutine_threadsafe(coroutine, loop)
        except RuntimeError as error:
            # Closed between the look and the call.
            coroutine.close()
            self._watch.end(call)
            if loop is hosts:
                self._loop_ended(call, loop)
            else:
                call.settle(Raised(error))
            return

        def undo() -> bool:
            self._watch.end(call)
            begun.cancel()
            return True

        call.undo_with(undo)

    async def _awaited(
        self,
        call: Call,
        run: Callable[[], Awaitable[object]],
        inside: Inside,
        loop: asyncio.AbstractEventLoop,
        *,
        is_hosts: bool,
    ) -> None:
        if not call.begin():
            self._watch.end(call)
            return
        try:
            with inside():
                blocking = self._blocking
                value = await (run() if blocking is None else blocking.watched(call.name, run()))
        except BaseException as error:  # noqa: BLE001 - SystemExit in a task would end the host's loop
            self._watch.end(call)
            if is_hosts and _is_cut_off(error) and not call.is_cancelled:
                self._loop_ended(call, loop)
            else:
                call.settle(Raised(error))
        else:
            self._watch.end(call)
            self._resolve(call, value, inside)

    def _loop_ended(self, call: Call, loop: asyncio.AbstractEventLoop) -> None:
        self._hosts_loop.ended(loop)
        call.settle(Raised(LoopEnded(begun=not call.withdraw())))

    def _resolve(self, call: Call, value: object, inside: Inside) -> None:
        """Settle with a value, or wait for it without a thread where that is possible."""
        try:
            match value:
                case ReplyFuture():
                    call.undo_with(_cannot)
                    value.when_answered(lambda answered: call.settle(_outcome_of(answered)))
                case _ if _is_of_a_pool(value):
                    call.undo_with(_cannot)
                    value.add_done_callback(lambda done: call.settle(_result_of(done)))
                case _ if _is_future(value):
                    self._on_thread(call, lambda: self._get(value), nullcontext)
                case _ if inspect.isawaitable(value):
                    self._on_loop(call, lambda: value, inside)
                case _:
                    call.settle(Came(value))
        except BaseException as error:  # noqa: BLE001 - the outcome of the call, whatever it is
            call.settle(Raised(error))

    def _get(self, future: pykka.Future[object]) -> object:
        with self._workers.waiting():
            return future.get()


def _is_cut_off(error: BaseException) -> bool:
    """Whether the present task was cancelled, as by a loop that ends, or dropped."""
    if not isinstance(error, asyncio.CancelledError):
        return isinstance(error, GeneratorExit)
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def is_async(function: Callable[..., object]) -> bool:
    """Return whether calling a function gives a coroutine, which has not run yet."""
    if isinstance(function, FunctionType) and not vars(function):  # what marks one as such stands in these
        return bool(function.__code__.co_flags & inspect.CO_COROUTINE)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - whether calling it gives a coroutine
    )


def _is_of_a_pool(value: object) -> TypeGuard[concurrent.futures.Future[object]]:
    return isinstance(value, concurrent.futures.Future)


def _is_future(value: object) -> TypeGuard[pykka.Future[object]]:
    return isinstance(value, pykka.Future)


def _outcome_of(future: ReplyFuture) -> Outcome:
    try:
        return Came(future.answer())
    except BaseException as error:  # noqa: BLE001 - the outcome of the call, whatever it is
        return Raised(error)


def _result_of(future: concurrent.futures.Future[object]) -> Outcome:
    try:
        return Came(future.result())
    except BaseException as error:  # noqa: BLE001 - the outcome of the call, whatever it is
        return Raised(error)


def _nobody(_: Outcome) -> None:
    """Do nothing."""


def _cannot() -> bool:
    """Say that it may still come back: an actor of the host's can't be stopped from outside."""
    return True
