"""How often something may fail before it is given up: the one policy for actors and for the flows of a manager."""

from collections import deque
from typing import Final

RESTARTS: Final = 3
WITHIN_S: Final = 5.0


class Failures:
    """Counts the failures of one actor or one flow: three within five seconds are tried again, the fourth is too many."""

    __slots__ = ("_times",)

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=RESTARTS + 1)

    def too_many(self, now: float) -> bool:
        """Count one more, at a time of the monotonic clock, and say whether that is too many."""
        self._times.append(now)
        return len(self._times) > RESTARTS and now - self._times[0] <= WITHIN_S
