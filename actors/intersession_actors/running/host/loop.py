"""Runs an event loop of our own, for async agents and channels in a host that has none running."""

import asyncio
import logging
import threading

from intersession_actors.running.host.own_threads import OwnThreads
from intersession_actors.running.runtime.threads import MachineThreads, Thread, Threads

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
