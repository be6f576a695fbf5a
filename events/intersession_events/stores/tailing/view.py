"""The base of tailed views: a tracking recorder of the library that takes events in pages."""

import threading
from abc import abstractmethod
from collections.abc import Collection, Sequence
from pathlib import Path
from time import monotonic
from typing import Final

from eventsourcing.persistence import Tracking, TrackingRecorder, WaitInterruptedError

from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Row, SqlValue
from intersession_events.log.views import InlineView, PickingView
from intersession_events.stores.database import MEMORY

_LOOK_S: Final = 0.1


class TailedView(TrackingRecorder):
    """Stores rows, or files, together with its position. Only one thread writes it."""

    said: str
    """What it is called where it is told that it is behind."""
    topics: Collection[str] = ()
    """The stored names of the events that it takes in, where those are not all."""

    def __init__(self) -> None:
        self._advanced = threading.Condition()

    @property
    @abstractmethod
    def position(self) -> int:
        """Its position in the log, as far as this process knows; 0 for a view that will be rebuilt."""

    @abstractmethod
    def reached(self) -> int:
        """Read its position from the store."""

    @abstractmethod
    def take(self, events: Sequence[Recorded], position: int) -> None:
        """Take in the events behind its position, and store the new position: all or nothing.

        Raises:
            OSError: it can't be written; the same events come again.
            sqlite3.Error: the same.
            PersistenceError: the same.
        """

    def close(self) -> None:
        """Let go of what is open."""

    def max_tracking_id(self, application_name: str) -> int | None:  # noqa: ARG002 - it follows one log
        """Return its position; None if it has not begun."""
        return self.reached() or None

    def insert_tracking(self, tracking: Tracking) -> None:
        """Store its position."""
        self.take((), tracking.notification_id)

    def has_tracking_id(self, application_name: str, notification_id: int | None) -> bool:  # noqa: ARG002 - as above
        """Return whether it has reached a position, as far as this process knows: a waiting caller must not touch the writing thread's data."""
        return notification_id is None or self.position >= notification_id

    def advanced(self) -> None:
        """Wake those that wait for its position."""
        with self._advanced:
            self._advanced.notify_all()

    def wait(
        self,
        application_name: str,
        notification_id: int | None,
        timeout: float = 1.0,
        interrupt: threading.Event | None = None,
    ) -> None:
        """Wait until it has reached a position. The library's own method polls.

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
    """A tailed view whose tables can be queried."""

    def __init__(self, view: InlineView) -> None:
        TailedView.__init__(self)
        self.said = f"the view {view.name}"
        if isinstance(view, PickingView):
            self.topics = view.topics
        self._position = 0

    @property
    def position(self) -> int:
        """Its position in the log."""
        return self._position

    @abstractmethod
    def query(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Run a reading statement on the view's tables; rows are tuples."""

    @abstractmethod
    def begin_anew(self) -> None:
        """Empty it; the next update rebuilds it from the whole log."""

    @abstractmethod
    def forget(self) -> Sequence[str]:
        """Remove deleted texts from wherever the database keeps replaced rows; return in words where that was not possible."""


def place_of(log_path: str, name: str) -> str:
    """Return the place of a view's database: `<store>.views`, or memory for a log in memory."""
    return MEMORY if log_path == MEMORY else str(Path(f"{log_path}.views") / f"{name}.db")
