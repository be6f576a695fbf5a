"""Counts the wrong tokens of each address: after ten in a minute it must wait.

Only failures are counted and answered so. A token that is right is taken all the same: behind one address may be many, and
somebody's wrong guesses must not keep the others out.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

from intersession.gateway.admission.limits import FAILURE_WINDOW_S, MOST_FAILURES

MOST_ADDRESSES: Final = 10_000


class FailedAttempts:
    """Counts failures by address. `monotonic` gives seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def __len__(self) -> int:
        """Return how many addresses are remembered; those that failed longest ago are forgotten first."""
        return len(self._failures)

    def wait_for(self, address: str) -> float:
        """Return the seconds that an address with too many failures must wait; 0 if it may try again."""
        failures = self._failures.get(address)
        if failures is None or len(failures) < MOST_FAILURES:
            return 0.0
        return max(0.0, failures[0] + FAILURE_WINDOW_S - self._monotonic())

    def failed(self, address: str) -> None:
        """Note that an address gave a wrong token."""
        failures = self._failures.setdefault(address, deque(maxlen=MOST_FAILURES))
        failures.append(self._monotonic())
        self._failures.move_to_end(address)
        if len(self._failures) > MOST_ADDRESSES:
            self._failures.popitem(last=False)
