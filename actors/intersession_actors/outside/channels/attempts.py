"""What this process has asked of channels: what is under way, and what came of it that nobody has recorded yet.

For the outbox and the spawner. Told to carry a flow on, they learn here whether its call was cut off by a crash, or is being
made right now.
"""

import threading
from enum import Enum
from typing import Generic, TypeVar

R = TypeVar("R")


class CallState(Enum):
    """Where a call stands whose outcome is not there."""

    DUE = "due"
    """It is about to be made: that it begins is on record, or soon will be, and the channel does not know of it."""
    UNDER_WAY = "under way"
    NEVER = "never"
    """This process has not made it, or its outcome is on record."""


class Attempts(Generic[R]):
    """The calls of this process by idempotency key and attempt. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[tuple[str, int], R | CallState] = {}

    def due(self, key: str, attempt: int) -> None:
        """Note that a channel is going to be asked."""
        with self._lock:
            self._asked[key, attempt] = CallState.DUE

    def begin(self, key: str, attempt: int) -> None:
        """Note that a channel is asked."""
        with self._lock:
            self._asked[key, attempt] = CallState.UNDER_WAY

    def came(self, key: str, attempt: int, result: R) -> None:
        """Keep what came of it until it is recorded."""
        with self._lock:
            self._asked[key, attempt] = result

    def recorded(self, key: str, attempt: int) -> None:
        """Forget an attempt: the log has its outcome."""
        with self._lock:
            self._asked.pop((key, attempt), None)

    def of(self, key: str, attempt: int) -> R | CallState:
        """Return what came of an attempt, or that it is under way, or that nothing is known of it here."""
        with self._lock:
            return self._asked.get((key, attempt), CallState.NEVER)
