"""The event loops of async agents and channels: one of the host's that lives on, else one of our own.

A loop that is made for one call and ends with it (`asyncio.run` for each request, a WSGI host) must not get runs that go on after
that call.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final
from weakref import WeakSet

from intersession_actors.running.host.own_threads import OwnThreads
from intersession_actors.running.runtime.threads import MachineThreads, Thread, Threads
from intersession_events.basics.errors import Picklable

Stopped = Callable[[], None]
_Watched = tuple[asyncio.AbstractEventLoop, Stopped]


class LoopEnded(Picklable, RuntimeError):
    """The host's event loop ended, or stopped, during a call; or before it, if none of it had `begun`."""

    def __init__(self, *, begun: bool = True) -> None:
        super().__init__(f"the event loop that it {'ran' if begun else 'was to run'} on has ended")
        self.begun = begun


class HostsLoop:
    """The host's loop, as long as it runs. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._outlived_a_call: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
        self._ended: WeakSet[asyncio.AbstractEventLoop] = WeakSet()

    def get(self) -> asyncio.AbstractEventLoop | None:
        """Return the loop, if there is one and it runs."""
        with self._lock:
            return self._alive()

    def adopt(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take a loop over, also in place of another: the host has said that it keeps running (`async with`)."""
        with self._lock:
            self._loop = loop
            self._ended.discard(loop)

    def offer(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take a loop over unless there is one, or it is ending."""
        with self._lock:
            self._offer(loop)

    @contextmanager
    def visited(self) -> Generator[None]:
        """Note a call of the running loop. The first loop that has outlived a call is taken over at its next one."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop in self._outlived_a_call:
                self._offer(loop)
        try:
            yield
        finally:
            with self._lock:
                self._outlived_a_call.add(loop)

    def ended(self, loop: asyncio.AbstractEventLoop) -> None:
        """Note that a loop is ending: no more calls begin on it."""
        with self._lock:
            self._ended.add(loop)
            if self._loop is loop:
                self._loop = None

    def _offer(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._alive() is None and loop not in self._ended:
            self._loop = loop

    def _alive(self) -> asyncio.AbstractEventLoop | None:
        loop = self._loop
        return loop if loop is not None and loop.is_running() else None


_LOOK_S: Final = 0.25
"""How often a loop is checked."""


class Watch:
    """Watches a host's loop and tells its calls when it stops running: otherwise they would wait for ever.

    Its thread lives while there is such a call.
    """

    def __init__(self, *, threads: Threads | None = None) -> None:
        self._threads = threads or MachineThreads()
        self._changed = self._threads.changed()
        self._watched: dict[object, _Watched] = {}
        self._thread: Thread | None = None

    def begin(self, call: object, loop: asyncio.AbstractEventLoop, stopped: Stopped) -> None:
        """Watch over a call; `stopped` is called once, from another thread, if its loop stops running."""
        with self._changed:
            self._watched[call] = (loop, stopped)
            if self._thread is None:
                self._thread = self._threads.start(self._run, name="hosts-loop")

    def end(self, call: object) -> None:
        """Stop watching."""
        with self._changed:
            self._watched.pop(call, None)
            if not self._watched:
                self._changed.notify_all()

    def _run(self) -> None:
        stood_still: set[object] = set()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: not self._watched, timeout=_LOOK_S)
                if not self._watched:
                    self._thread = None
                    return
                still = {call for call, (loop, _) in self._watched.items() if not loop.is_running()}
                # A loop that only changes hands between two looks is not taken for one that has ended.
                stopped = [self._watched.pop(call) for call in still & stood_still]
                stood_still = still
            for _, tell in stopped:
                tell()


logger = logging.getLogger("intersession.host")


class OwnLoop:
    """A loop on a thread of its own, started when it is first needed."""

    def __init__(self, *, name: str, threads: Threads | None = None) -> None:
        self._name = name
        self._threads = threads or MachineThreads()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._stopping = False

    def get(self) -> asyncio.AbstractEventLoop:
        """Return the loop, running."""
        with self._lock:
            if self._loop is None:
                if self._stopping:
                    raise RuntimeError(f"{self._name}: stopped")
                loop = self._loop = self._threads.new_event_loop()
                self._thread = self._threads.start(lambda: self._run(loop), name=self._name)
            return self._loop

    def stop(self, timeout: float) -> None:
        """Cancel what still runs on the loop and end it."""
        with self._lock:
            self._stopping = True
            loop, thread, self._loop = self._loop, self._thread, None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(_wind_down(loop), loop)
        if not self._threads.is_here(thread):
            thread.join(timeout)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        if not self._threads.by_hand:
            # asyncio's own takes no more once the main thread has returned: no name would be looked up any more.
            loop.set_default_executor(OwnThreads(f"{self._name}-threads"))
        while True:
            try:
                loop.run_forever()
                break
            except BaseException:
                # A task of the host's that raised SystemExit has ended the loop; the others are not to blame.
                logger.exception("%s: a task tried to end the event loop", self._name)
        loop.close()


async def _wind_down(loop: asyncio.AbstractEventLoop) -> None:
    current = asyncio.current_task()
    tasks = [task for task in asyncio.all_tasks() if task is not current]
    for task in tasks:
        task.cancel()
    if tasks:
        # One that swallows its cancellation does not hold up the end.
        await asyncio.wait(tasks, timeout=1.0)
    await loop.shutdown_asyncgens()
    loop.stop()
