"""The blocking form of an append: a callback that one waits for."""

import threading

from intersession_events.errors import AppendConflict, StoreUnavailable
from intersession_events.recorded import Committed, Conflict, Outcome, Unavailable


class Waiting:
    """Takes the outcome of one append, and hands it to the thread that waits."""

    def __init__(self) -> None:
        self._told = threading.Event()
        self._outcome: Outcome | None = None

    def __call__(self, outcome: Outcome) -> None:
        """Take the outcome."""
        self._outcome = outcome
        self._told.set()

    @property
    def is_told(self) -> bool:
        """Whether the outcome is known."""
        return self._told.is_set()

    def committed(self, timeout: float) -> Committed:
        """Wait for the outcome.

        Raises:
            AppendConflict: a stream was not at its expected version.
            StoreUnavailable: it was refused, or is not known in time.
            LogError: what else the outcome says.
        """
        self._told.wait(timeout)
        match self._outcome:
            case Committed():
                return self._outcome
            case Conflict(stream=stream, expected=expected, actual=actual):
                raise AppendConflict(stream, expected, actual)
            case Unavailable(error=error):
                raise error
            case None:
                raise StoreUnavailable(
                    f"not durable after {timeout:g} s; it may still become so, read before trying again"
                )
