"""Hands committed events to all connections: one listener on the log, its batches carried over to the event loop."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from intersession.gateway.protocol.run_events import RunEvent, RunEvents
from intersession_actors.outside.agents.pieces import Pieces, Utterance
from intersession_events.basics.errors import IntersessionError
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_projections.views.run_outcomes.outcome import RunRequest
from intersession_projections.views.run_outcomes.runs import Runs

Listener = Callable[[Sequence[RunEvent]], None]
"""Hears what a batch means for connections; called on the event loop, for every batch."""

PIECES_S: Final = 0.15
"""The shortest time between two deltas of a run, as in the original."""


class Hub:
    """Listens to the log, and to what agents say in pieces, while it has listeners. Belongs to one event loop at a time.

    When all have left, it goes on until the runs are over that they heard of: who comes back hears how such a run goes on, and
    nothing of it is kept for longer.
    """

    def __init__(self, log: Log, pieces: Pieces, now_ms: Callable[[], int], logger: logging.Logger) -> None:
        self._log = log
        self._pieces = pieces
        self._now_ms = now_ms
        self._logger = logger
        self._told = RunEvents(self._asked)
        self._listeners: dict[int, Listener] = {}
        self._next = 0
        self._stops: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._due: set[str] = set()
        """The runs of which a delta is to be told."""

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with everything that is committed from now on. Returns a function that stops it."""
        number, self._next = self._next, self._next + 1
        self._listeners[number] = listener
        if not self._stops:
            loop = asyncio.get_running_loop()
            self._stops = [
                self._log.on_committed(lambda batch: self._hand_over(loop, batch)),
                self._pieces.watch(lambda run_id: self._said(loop, run_id)),
            ]

        def stop() -> None:
            self._listeners.pop(number, None)
            self._rest()

        return stop

    def catch_up(self, listener: Listener) -> None:
        """Tell a new listener what agents under way have said in pieces so far."""
        for run_id in self._pieces.runs:
            shown = self._pieces.of(run_id)
            if shown is not None:
                listener(self._told.so_far(run_id, shown, self._now_ms()))

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

    def _said(self, loop: asyncio.AbstractEventLoop, run_id: str) -> None:
        # From an agent's thread, which must not wait; of a hundred pieces at once, one wakes the loop.
        with self._lock:
            is_known = run_id in self._due
            self._due.add(run_id)
        if not is_known and not loop.is_closed():
            loop.call_soon_threadsafe(self._tell_pieces, loop, run_id)

    def _tell_pieces(self, loop: asyncio.AbstractEventLoop, run_id: str) -> None:
        """Tell the latest of what an agent has said, and what comes to it in the next moment only after that."""
        shown = self._pieces.of(run_id)
        if shown is None or not self._listeners:
            with self._lock:
                self._due.discard(run_id)
            return
        events = self._told.pieces(run_id, shown, self._now_ms())
        if events:
            for listener in list(self._listeners.values()):
                listener(events)
        loop.call_later(PIECES_S, self._tell_rest, loop, run_id, shown)

    def _tell_rest(self, loop: asyncio.AbstractEventLoop, run_id: str, before: Utterance) -> None:
        with self._lock:
            self._due.discard(run_id)
        if self._pieces.of(run_id) not in {None, before}:
            self._said(loop, run_id)

    def _rest(self) -> None:
        if not self._listeners and not self._told.under_way:
            for stop in self._stops:
                stop()
            self._stops = []
