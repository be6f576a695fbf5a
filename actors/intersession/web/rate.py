"""The rate limit of a caller: a burst of requests, then a rate a second."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

BURST: Final = 240
A_SECOND: Final = 60.0
_CALLERS: Final = 1_000


class Rates:
    """Counts requests by caller. The oldest caller is dropped if there are too many."""

    def __init__(
        self, monotonic: Callable[[], float], *, burst: int = BURST, a_second: float = A_SECOND
    ) -> None:
        self._monotonic = monotonic
        self._burst = burst
        self._a_second = a_second
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> float:
        """Count a request; return the seconds to wait before the next try, 0 if it may be answered."""
        now = self._monotonic()
        left, since = self._left.pop(caller, (float(self._burst), now))
        left = min(float(self._burst), left + (now - since) * self._a_second)
        wait = 0.0 if left >= 1 else (1 - left) / self._a_second
        self._left[caller] = (left if wait else left - 1, now)
        if len(self._left) > _CALLERS:
            self._left.popitem(last=False)
        return wait
