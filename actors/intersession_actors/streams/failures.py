"""How often something may fail before it is given up: the one policy for actors and for the flows of a manager."""

from collections import deque
from typing import Final

RESTARTS: Final = 3
WITHIN_MS: Final = 5_000


class Failures:
    """Counts the failures of one actor or one flow: three within five seconds are tried again, the fourth is too many."""

    __slots__ = ("_times",)

    def __init__(self) -> None:
        self._times: deque[int] = deque(maxlen=RESTARTS + 1)

    def too_many(self, now_ms: int) -> bool:
        """Count one more, and say whether that is too many."""
        self._times.append(now_ms)
        return len(self._times) > RESTARTS and now_ms - self._times[0] <= WITHIN_MS
