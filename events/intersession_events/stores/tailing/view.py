"""What a view is that follows the log: a tracking recorder of the library, which takes events in pages."""

import threading
from abc import abstractmethod
from collections.abc import Collection, Sequence
from pathlib import Path
from time import monotonic
from typing import Final

from eventsourcing.persistence import Tracking, TrackingRecorder, WaitInterruptedError

from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Row, SqlValue
from intersession_events.stores.database import MEMORY

_LOOK_S: Final = 0.1


class TailedView(TrackingRecorder):
    """Keeps rows, or files, and how far it has come, both together. Only one thread writes it."""

    said: str
    """What it is called where it is told that it is behind."""
    topics: Collection[str] = ()
    """The stored names of the events that it takes in, where those are not all."""

    def __init__(self) -> None:
        self._advanced = threading.Condition()

    @property
    @abstractmethod
    def position(self) -> int:
        """How far it has come in the log, as far as is known here; 0 for one that is to be built anew."""

    @abstractmethod
    def reached(self) -> int:
        """Look how far it has come."""

    @abstractmethod
    def take(self, events: Sequence[Recorded], position: int) -> None:
        """Take events in that follow on its position, and note how far that is: all of it, or nothing.

        Raises:
            OSError: it can't be written; the same events come again.
            sqlite3.Error: the same.
            PersistenceError: the same.
        """

    def close(self) -> None:
        """Let go of what is open."""

    def max_tracking_id(self, application_name: str) -> int | None:  # noqa: ARG002 - it follows one log
        """Return how far it has come; None if it has not begun."""
        return self.reached() or None

    def insert_tracking(self, tracking: Tracking) -> None:
        """Note how far it has come."""
        self.take((), tracking.notification_id)

    def has_tracking_id(self, application_name: str, notification_id: int | None) -> bool:  # noqa: ARG002 - as above
        """Say whether it has come to a position, as far as is known here: who waits must not touch what another thread writes."""
        return notification_id is None or self.position >= notification_id

    def advanced(self) -> None:
        """Wake who waits for it."""
        with self._advanced:
            self._advanced.notify_all()

    def wait(
        self,
        application_name: str,
        notification_id: int | None,
        timeout: float = 1.0,
        interrupt: threading.Event | None = None,
    ) -> None:
        """Wait until it has come to a position. The library's own looks only now and then.

        Raises:
            TimeoutError: it has not in time.
            WaitInterruptedError: whoever keeps it up to date has stopped.
        """
        until = monotonic() + timeout
        with self._advanced:
            while not self.has_tracking_id(application_name, notification_id):
                if interrupt is not None and interrupt.is_set():
                    raise WaitInterruptedError
                left = until - monotonic()
                if left <= 0:
                    raise TimeoutError(f"{self.said} is at {self.position}, not yet at {notification_id}")
                self._advanced.wait(min(left, _LOOK_S))


class QueryableView(TailedView):
    """A view of tables that can be asked."""

    @abstractmethod
    def query(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Run a reading statement on the view's tables; rows are tuples."""

    @abstractmethod
    def begin_anew(self) -> None:
        """Empty it; whoever brings it up to date makes it of the whole log."""

    @abstractmethod
    def forget(self) -> None:
        """Leave nothing of what was taken out of it where the database keeps what was replaced."""


def place_of(log_path: str, name: str) -> str:
    """Return where the database of a view lies: in `<store>.views`, or in memory for a log that is there."""
    return MEMORY if log_path == MEMORY else str(Path(f"{log_path}.views") / f"{name}.db")
