"""A log as the library's projections see it: an application with a subscription that is fed from memory."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from time import monotonic
from typing import Final, NamedTuple, cast

from eventsourcing.application import Application
from eventsourcing.persistence import ApplicationRecorder, Mapper, Notification, StoredEvent, Subscription
from eventsourcing.utils import EnvType

from intersession_events.errors import LogError
from intersession_events.log import Log, Recorded
from intersession_events.stores.portable import NAME

PAGE: Final = 500
"""Events that are taken in together, at most."""
_MOST_KEPT: Final = 2_000
"""Events that are kept in memory for it; one that is further behind reads the log."""
_STRETCH: Final = 50_000
"""So much of the log is gone through at a time for the few events that a view takes."""
_COALESCE_S: Final = 0.1
"""Nobody waits for these views: many small commits make one page."""
_TO_OTHERS: Final = 3
_TO_WRITERS: Final = 9
"""A patient one rests so many times as long as it worked; the longer where somebody has written meanwhile."""
_LOGGER: Final = logging.getLogger("intersession.views")

Written = Callable[[int], int]
"""Hears that all events up to a position were given, and returns how far the view has come."""


class _Given(NamedTuple):
    """An event in the place of the library's notification, of which only the position is looked at."""

    id: int
    recorded: Recorded


class CommitSubscription(Subscription[ApplicationRecorder]):
    """Gives all events behind a position, in order, and says after each page that it was given.

    What was just committed is at hand. It is taken if it follows on the position without a gap, else the log is read.
    """

    def __init__(
        self,
        log: Log,
        gt: int,
        written: Written,
        *,
        topics: Collection[str] = (),
        follows: bool,
        patient: bool = False,
    ) -> None:
        super().__init__(cast("ApplicationRecorder", None), gt)
        self._log = log
        self._written = written
        self._taken = topics
        self._follows = follows
        self._patient = patient
        self._began: float | None = None
        self._given = self._after = gt
        self._page: deque[Recorded] = deque()
        self._changed = threading.Condition()
        self._moved = False
        self._committed: list[Recorded] = []
        self._stopping = False
        self._unsubscribe = log.on_committed(self._wake) if follows else lambda: None

    def __next__(self) -> Notification:
        """Return the next event. It ends when it was stopped and what had been committed is given.

        Raises:
            LogError: the log can't be read, and it does not wait until it can.
        """
        while not self._page:
            self._after = self._written(self._given)
            self._rest()
            if not self._take_page():
                raise StopIteration
            self._began = monotonic()
        recorded = self._page.popleft()
        return cast("Notification", _Given(recorded.position, recorded))

    def stop(self) -> None:
        """Let it end."""
        super().stop()
        with self._changed:
            again, self._stopping = self._stopping, True
            self._changed.notify_all()
        if not again:  # the library stops what it lets go of, too
            self._unsubscribe()

    def _rest(self) -> None:
        """Having taken in a page, leave the processor to others for a multiple of the time that it took."""
        if not self._patient or self._began is None:
            return
        took = monotonic() - self._began
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopping, took * (_TO_WRITERS if self._moved else _TO_OTHERS)
            )

    def _take_page(self) -> bool:
        failed = self._after < self._given  # it could not be written: not before something else has happened
        while True:
            with self._changed:
                self._moved = False
                stopping = self._stopping
                committed, self._committed = self._committed, []
            try:
                left = self._log.head() - self._after
                if stopping and left > _MOST_KEPT:
                    return False
                if not failed and left > 0 and self._read(committed):
                    return True
            except LogError as error:
                if self._page:
                    return True
                if not self._follows:
                    raise
                # The store is away: it is read when something happens again.
                _LOGGER.warning("the log can't be read behind position %d: %s", self._given, error)
            if stopping or not self._follows:
                return False
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or self._moved)
                self._changed.wait_for(lambda: self._stopping, _COALESCE_S)
            failed = False

    def _read(self, committed: Sequence[Recorded]) -> bool:
        """Take the next page, and return whether there is anything: rows that can't be read are passed over."""
        self._given = self._after
        fresh = [recorded for recorded in committed if recorded.position > self._after]
        if fresh and fresh[0].position == self._after + 1 and fresh[-1].position == self._after + len(fresh):
            self._page.extend(fresh)
            self._given = fresh[-1].position
            return True
        head = self._log.head()
        while self._given < head and len(self._page) < PAGE:
            to = min(head, self._given + _STRETCH)
            try:
                for recorded in self._log.all(
                    after=self._given, to=to, limit=PAGE - len(self._page), topics=self._taken
                ):
                    self._page.append(recorded)
                    self._given = recorded.position
                if len(self._page) < PAGE:
                    self._given = to
            except LogError as error:
                if error.position is None:
                    raise
                self._given = error.position
                _LOGGER.warning("position %d of the log is in no view beside it: %s", error.position, error)
        if not self._page:
            self._after = self._written(self._given)
        return bool(self._page)

    def _wake(self, committed: Sequence[Recorded]) -> None:
        with self._changed:
            if len(self._committed) + len(committed) <= _MOST_KEPT:
                self._committed += committed
            else:
                self._committed = []  # it is read from the log instead
            if not self._moved:
                self._moved = True
                self._changed.notify_all()


class _Recorder:
    def __init__(self, subscribed: Callable[[int], CommitSubscription]) -> None:
        self._subscribed = subscribed

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> CommitSubscription:
        if topics:
            raise ValueError(
                "a view that follows the log hears of all events: one that is passed over moves it, too"
            )
        return self._subscribed(gt or 0)


class _Ready:
    """In the place of a mapper: what comes from memory, or out of `Log.all`, is an event already."""

    def to_domain_event(self, stored_event: StoredEvent) -> Recorded:
        return cast("_Given", stored_event).recorded


def application_of(subscribed: Callable[[int], CommitSubscription]) -> type[Application[str]]:
    """Return the class of which the library's runner makes its application: a log that is open, and stays so.

    `subscribed` returns the subscription to what stands behind a position.
    """

    class FollowedLog(Application[str]):
        name = NAME

        def __init__(self, _env: EnvType | None = None) -> None:
            # Nothing of the library's own is made: recorder and connections are the log's.
            self.recorder = cast("ApplicationRecorder", _Recorder(subscribed))
            self.mapper = cast("Mapper[str]", _Ready())

        def close(self) -> None:
            """Do nothing: whoever opened the log closes it."""

    return FollowedLog
