"""Live events without any server: an iterator over what is committed, from any position on."""

import threading
from collections.abc import Iterator

from intersession_events.log import Log, Recorded

POLL_S = 0.5
"""How often somebody who waits looks whether the log was closed."""


class Follower:
    """Follows one log."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End all iterations, within half a second."""
        self._stopped.set()

    def events(self, position: int | None, *, timeout: float | None = None) -> Iterator[Recorded]:
        """Yield events from behind a position (None: from now on). Ends when nothing came for `timeout` seconds."""
        after = self._log.head() if position is None else position
        return self._events(after, timeout)

    def _events(self, after: int, timeout: float | None) -> Iterator[Recorded]:
        waited = 0.0
        while not self._stopped.is_set():
            for recorded in self._log.all(after=after):
                after, waited = recorded.position, 0.0
                yield recorded
            step = POLL_S if timeout is None else min(POLL_S, timeout - waited)
            if step <= 0:
                return
            if not self._log.wait_for(after + 1, timeout=step):
                waited += step
