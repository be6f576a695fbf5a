"""The half of a recorder that reads a log, for any database: the eventsourcing library's methods, on our readers.

They read as the library's own do, without a transaction round a single statement, and never wait for the writer.
"""

import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import starmap
from typing import Any, Final, cast
from uuid import UUID

from eventsourcing.persistence import ApplicationRecorder, Notification, StoredEvent, Subscription

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.log.sql import COLUMNS, Question, SqlValue
from intersession_events.log.sql import Row as AnyRow
from intersession_events.stores.database import Failures, StoredRow, of_stream, typed
from intersession_events.stores.library.frontier import Frontier

_ALL: Final = 2**63 - 1
EVENTS: Final = "stored_events"


class Following(ABC):
    """A thread that notices when another process has committed."""

    def __init__(self, catch_up: Callable[[], int]) -> None:
        """Catch up, then follow. `catch_up` returns the position that was reached."""
        self._catch_up = catch_up
        self._stopping = threading.Event()
        self._hurried = threading.Event()
        catch_up()
        self._thread = threading.Thread(target=self._run, name="intersession-follower", daemon=True)
        self._thread.start()

    def hurry(self) -> None:
        """Look now: something was committed, as a caller knows. A store that is told of commits looks by itself."""
        self._hurried.set()

    def close(self) -> None:
        """Stop following."""
        self._stopping.set()
        self._hurried.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    @abstractmethod
    def _run(self) -> None:
        """Catch up after each commit, until stopped."""


PAGE: Final = 500
_LOOK_S: Final = 1.0
_LOGGER: Final = logging.getLogger("intersession.store")


class LogSubscription(Subscription[ApplicationRecorder]):
    """Gives all events behind a position, in order, and waits for more until it is stopped."""

    def __init__(
        self,
        recorder: ApplicationRecorder,
        frontier: Frontier,
        gt: int | None = None,
        topics: Sequence[str] = (),
        *,
        is_away: Callable[[Exception], bool],
    ) -> None:
        """Subscribe to what stands behind a position; `is_away` says of an error that the store may come back."""
        super().__init__(recorder, gt, topics)
        self._is_away = is_away
        self._events = recorder
        self._wanted = topics
        self._frontier = frontier
        self._after = gt or 0
        self._page: deque[Notification] = deque()
        self._stopped = False

    def __next__(self) -> Notification:
        """Return the next event; ends when the subscription is stopped."""
        while not self._stopped:
            if self._page:
                return self._page.popleft()
            head = self._frontier.head
            if head > self._after:
                try:
                    self._take_page(head)
                except Exception as error:
                    if not self._is_away(error):
                        raise
                    _LOGGER.warning(
                        "the log can't be read behind position %d: %s", self._after, type(error).__name__
                    )
                    self._frontier.wait_until(lambda: self._stopped, _LOOK_S)
            elif self._frontier.is_closed:
                break
            else:
                self._frontier.wait_until(self._may_go_on, _LOOK_S)
        raise StopIteration

    def stop(self) -> None:
        """End the subscription, also for a thread that waits in it."""
        super().stop()
        self._stopped = True
        self._frontier.wake()

    def _may_go_on(self) -> bool:
        return self._stopped or self._frontier.head > self._after

    def _take_page(self, head: int) -> None:
        self._page.extend(
            self._events.select_notifications(self._after, PAGE, head, self._wanted, inclusive_of_start=False)
        )
        # With topics, what was passed over is not looked at again.
        self._after = self._page[-1].id if len(self._page) == PAGE else head


class ReadsLog(ApplicationRecorder):
    """Reads the events of a log, and can be subscribed to. A database sets how its rows are read and how it is followed."""

    failures: Failures
    """What the errors of the database mean."""

    # What the library's recorder for the database is given is its own affair.
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.frontier: Frontier | None = None
        """How far the log has got, where that is known: the writer's. A reader makes one when it is followed."""
        self._follower: Following | None = None
        self._following = threading.Lock()

    @abstractmethod
    def rows(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[AnyRow]:
        """Return all rows of a reading statement as tuples."""

    is_remote = False
    """Whether several statements cost about as much as one, since the round trip dominates."""

    def each(self, questions: Iterable[Question]) -> list[list[AnyRow]]:
        """Return the rows of several reading statements, the events among them in their own form."""
        return [
            self.event_rows(statement, parameters)
            if EVENTS in statement
            else self.rows(statement, parameters)
            for statement, parameters in questions
        ]

    @abstractmethod
    def event_rows(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[AnyRow]:
        """Return rows of events or snapshots. A value of the wrong type comes as bytes: one such row must not hide others."""

    def look(self) -> None:
        """Check, from any thread, that reads and writes go to where the next start will look.

        Raises:
            StoreUnavailable: it is not.
        """

    @abstractmethod
    def positions_given(self) -> int:
        """Return the last position that was ever assigned to an event, even if that was removed since."""

    @abstractmethod
    def follow(self, catch_up: Callable[[], int]) -> Following:
        """Catch up, and again whenever another process has committed."""

    @abstractmethod
    def close_readers(self) -> None:
        """Close the reading connections, at once or when they are returned."""

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[Notification]:
        """Return rows of a stream with `gt < version <= lte`, unproven, each with its position."""
        rest, parameters = of_stream(originator_id, gt=gt, lte=lte, desc=desc, limit=limit)
        return cast(
            "list[Notification]", list(starmap(StoredRow, self.event_rows(COLUMNS + rest, parameters)))
        )

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Return rows of the whole log by position, unproven."""
        statement = COLUMNS + f"WHERE rowid{'>=' if inclusive_of_start else '>'}? AND rowid<=? "
        parameters: list[SqlValue] = [-_ALL if start is None else start, _ALL if stop is None else stop]
        if topics:
            statement += f"AND topic IN ({', '.join('?' * len(topics))}) "
            parameters += topics
        statement += "ORDER BY rowid LIMIT ?"
        found = self.event_rows(statement, (*parameters, limit))
        return cast("list[Notification]", list(starmap(StoredRow, found)))

    def max_notification_id(self) -> int:
        """Return the position of the last event; None if there is none, as the library's recorders do despite their annotation."""
        last: int = self.rows("SELECT MAX(rowid) FROM stored_events")[0][0]
        return last

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """Return a subscription to all events behind a position.

        Raises:
            StoreUnavailable: there is nothing to be followed now.
        """
        with self._following:
            if self.frontier is None:
                frontier = Frontier(0)
                with typed(self.failures):
                    self._follower = self.follow(lambda: frontier.advance(self.max_notification_id() or 0))
                self.frontier = frontier
        return LogSubscription(self, self.frontier, gt, topics, is_away=self.failures.is_of_the_store)

    def insert_events(self, stored_events: Sequence[StoredEvent], **_: object) -> Sequence[int]:
        """Refuse: only the writer's recorder takes events.

        Raises:
            StoreUnavailable: always.
        """
        raise StoreUnavailable(
            f"{len(stored_events)} events were not taken: the log is open for reading only"
        )

    def close(self) -> None:
        """Stop following, and let subscriptions end."""
        with self._following:
            if self._follower is not None:
                self._follower.close()
                self._follower = None
        if self.frontier is not None:
            self.frontier.close()
