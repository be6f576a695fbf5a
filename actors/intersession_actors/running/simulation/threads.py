"""Greenlets in place of threads, conditions and event loops, for the runtime of a simulation (`simulated.py`)."""

import asyncio
from asyncio import events
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, TypeVar

from greenlet import GreenletExit, getcurrent

from intersession_actors.running.simulation.greenlets import Greenlets, Sleeper

T = TypeVar("T")
_ROUNDS: Final = 4
"""How often an ending loop runs: tasks that were about to begin do so, and are cancelled."""


class _Started:
    """A greenlet, in the place of a thread."""

    def __init__(self, greenlets: Greenlets, run: Callable[[], object]) -> None:
        self._ended = SimulatedChanged(greenlets)
        self.greenlet = greenlets.start(self._run)
        self._run_it = run

    def _run(self) -> None:
        try:
            self._run_it()
        finally:
            self._ended.notify_all()

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended."""
        self._ended.wait_for(lambda: self.greenlet.dead, timeout)


class SimulatedChanged:
    """A condition, like `threading.Condition`; nothing interrupts a greenlet, so there is no lock."""

    def __init__(self, greenlets: Greenlets) -> None:
        self._greenlets = greenlets
        self._waiting: list[Sleeper] = []

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        return

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until notified; False after a timeout."""
        sleeper = self._greenlets.here()
        self._waiting.append(sleeper)
        try:
            return self._greenlets.sleep(sleeper, timeout)
        finally:
            if sleeper in self._waiting:
                self._waiting.remove(sleeper)

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """Wait until a predicate is true; return its last value."""
        clock = self._greenlets.clock
        until = None if timeout is None else clock.monotonic() + timeout
        while not (is_so := predicate()):
            left = None if until is None else until - clock.monotonic()
            if left is not None and left <= 0:
                break
            self.wait(left)
        return is_so

    def notify(self, n: int = 1) -> None:
        """Wake a number of waiting threads."""
        woken, self._waiting = self._waiting[:n], self._waiting[n:]
        for sleeper in woken:
            self._greenlets.wake(sleeper)

    def notify_all(self) -> None:
        """Wake all waiting greenlets."""
        self.notify(len(self._waiting))


class SimulatedThreads:
    """Threads that are greenlets of one simulation."""

    by_hand = True

    def __init__(self, greenlets: Greenlets) -> None:
        self._greenlets = greenlets

    def start(self, run: Callable[[], object], *, name: str) -> _Started:  # noqa: ARG002 - nobody sees its name
        """Run a function in a greenlet."""
        return _Started(self._greenlets, run)

    def me(self) -> Hashable:
        """Return the greenlet that calls."""
        return getcurrent()

    def is_here(self, thread: object) -> bool:
        """Whether this is the calling greenlet."""
        return isinstance(thread, _Started) and thread.greenlet is getcurrent()

    def changed(self) -> SimulatedChanged:
        """Return a condition to wait on."""
        return SimulatedChanged(self._greenlets)

    def wait(self, future: "Future[Any]", timeout: float | None) -> bool:  # of whatever kind
        """Wait until a future is done."""
        if not future.done():
            sleeper = self._greenlets.here()
            future.add_done_callback(lambda _: self._greenlets.wake(sleeper))
            self._greenlets.sleep(sleeper, timeout)
        return future.done()

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """Return an event loop without sockets, in the simulation's time."""
        loop = SimulatedLoop(self._greenlets)
        self._greenlets.at_end.append(loop.end)
        return loop


class SimulatedLoop(asyncio.BaseEventLoop):
    """asyncio's own loop. Instead of sleeping, its greenlet lets the others go on."""

    def __init__(self, greenlets: Greenlets) -> None:
        super().__init__()
        self._greenlets = greenlets
        self._changed = SimulatedChanged(greenlets)
        self._woken = False
        self._rounds_left: int | None = None
        self._selector = self  # where `BaseEventLoop` sleeps

    def time(self) -> float:
        """Return the simulation's time in seconds."""
        return self._greenlets.clock.monotonic()

    def select(self, timeout: float | None) -> list[object]:
        """Sleep. Meanwhile no loop counts as running here."""
        if self._rounds_left is not None:
            return self._wind_down()
        events._set_running_loop(None)  # noqa: SLF001 - as `run_forever` does
        try:
            if timeout == 0 or self._woken:
                self._greenlets.give_way()
            else:
                self._changed.wait(timeout)
        except GreenletExit:
            self._rounds_left = _ROUNDS
            return self._wind_down()
        finally:
            self._woken = False
            events._set_running_loop(self)  # noqa: SLF001 - asyncio has no public name for it
        return []

    def end(self) -> None:
        """End a loop that never ran, like the others: its tasks are cancelled."""
        if not self.is_closed() and not self.is_running():
            self._rounds_left = _ROUNDS
            with suppress(RuntimeError):  # another loop runs here
                self.run_forever()
            self.close()

    def _wind_down(self) -> list[object]:
        """Cancel its tasks, and those that they begin; then it stops by itself. Its runner would go on after an exception."""
        for task in asyncio.all_tasks(self):
            task.cancel()
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001 - nobody is to blame
        self._rounds_left = (self._rounds_left or 1) - 1
        if not self._rounds_left:
            self.stop()
        return []

    def _process_events(self, event_list: list[object]) -> None:
        """Nothing comes in by itself."""

    def _write_to_self(self) -> None:
        self._woken = True
        self._changed.notify_all()

    def run_in_executor(self, executor: object, func: Callable[..., T], *args: object) -> "asyncio.Future[T]":  # noqa: ARG002 - there are no other threads
        """Run a function in a greenlet of its own."""
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(func(*args))
            except BaseException as error:  # noqa: BLE001 - the waiting caller is told, whatever it is
                done.set_exception(error)

        _Started(self._greenlets, run)
        return asyncio.wrap_future(done, loop=self)
