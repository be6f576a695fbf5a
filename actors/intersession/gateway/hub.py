"""Hands committed events to all connections: one listener on the log, its batches carried over to the event loop."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from intersession.gateway.protocol.run_events import RunEvent, RunEvents
from intersession_events.basics.errors import IntersessionError
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_projections.views.run_outcomes.outcome import RunRequest
from intersession_projections.views.run_outcomes.runs import Runs

Listener = Callable[[Sequence[RunEvent]], None]
"""Hears what a batch means for connections; called on the event loop, for every batch."""


class Hub:
    """Listens to the log while it has listeners. Belongs to one event loop at a time.

    When all have left, it goes on until the runs are over that they heard of: who comes back hears how such a run goes on, and
    nothing of it is kept for longer.
    """

    def __init__(self, log: Log, logger: logging.Logger) -> None:
        self._log = log
        self._logger = logger
        self._told = RunEvents(self._asked)
        self._listeners: dict[int, Listener] = {}
        self._next = 0
        self._stop: Callable[[], None] | None = None

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with everything that is committed from now on. Returns a function that stops it."""
        number, self._next = self._next, self._next + 1
        self._listeners[number] = listener
        if self._stop is None:
            loop = asyncio.get_running_loop()
            self._stop = self._log.on_committed(lambda batch: self._hand_over(loop, batch))

        def stop() -> None:
            self._listeners.pop(number, None)
            self._rest()

        return stop

    def wake(self) -> None:
        """Wake all listeners, though nothing was committed."""
        for listener in list(self._listeners.values()):
            listener(())

    def _asked(self, run_id: str) -> RunRequest | None:
        try:
            return Runs(self._log).asked(run_id)
        except IntersessionError as error:
            self._logger.warning(
                "run %s goes by its id, what its caller calls it can't be read: %s", run_id, error
            )
            return None

    def _hand_over(self, loop: asyncio.AbstractEventLoop, batch: Sequence[Recorded]) -> None:
        # From the writer's thread, which must not wait.
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._take, batch)

    def _take(self, batch: Sequence[Recorded]) -> None:
        heard = bool(self._listeners)
        events = [
            event
            for recorded in batch
            if heard or self._told.knows(recorded)
            for event in self._told.events_for(recorded)
        ]
        for listener in list(self._listeners.values()):
            listener(events)
        self._rest()

    def _rest(self) -> None:
        if not self._listeners and not self._told.under_way and self._stop is not None:
            self._stop()
            self._stop = None
