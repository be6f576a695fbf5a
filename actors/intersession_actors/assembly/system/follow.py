"""Live events without a server: an iterator over committed events, from any position on."""

from collections.abc import Iterator

from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded

POLL_S = 0.5
"""How often a waiting caller checks whether the log was closed."""


def followed(log: Log, position: int | None, *, timeout: float | None = None) -> Iterator[Recorded]:
    """Iterate over the events behind a position (None: from now on). Ends when none came for `timeout` seconds."""
    return _events(log, log.head() if position is None else position, timeout)


def _events(log: Log, after: int, timeout: float | None) -> Iterator[Recorded]:
    waited = 0.0
    while True:
        for recorded in log.all(after=after):
            after, waited = recorded.position, 0.0
            yield recorded
        step = POLL_S if timeout is None else min(POLL_S, timeout - waited)
        if step <= 0:
            return
        if not log.wait_for(after + 1, timeout=step):
            waited += step
