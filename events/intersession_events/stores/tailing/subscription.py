"""A log as the library's projections see it: an application whose subscription is fed from memory."""

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from time import monotonic
from typing import Final, NamedTuple, cast

from eventsourcing.application import Application
from eventsourcing.persistence import ApplicationRecorder, Mapper, Notification, Subscription
from eventsourcing.utils import EnvType

from intersession_events.basics.errors import LogError
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.stores.portable.application import NAME

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


class Page(NamedTuple):
    """Consecutive events, in the place of the library's single notification and its event."""

    id: int
    """The position up to which they were looked for."""
    events: Sequence[Recorded]


class CommitSubscription(Subscription[ApplicationRecorder]):
    """Gives all events behind a position, in order, page by page: the next page once a view has taken the last.

    What was just committed is at hand. It is taken if it follows on the position without a gap, else the log is read.
    """

    def __init__(
        self,
        log: Log,
        gt: int,
        reached: Callable[[], int],
        *,
        topics: Collection[str] = (),
        follows: bool,
        patient: bool = False,
    ) -> None:
        """Subscribe to what stands behind a position; `reached` says how far the view has come."""
        super().__init__(cast("ApplicationRecorder", None), gt)
        self._log = log
        self._reached = reached
        self._taken = topics
        self._follows = follows
        self._patient = patient
        self._began: float | None = None
        self._given = self._after = gt
        self._changed = threading.Condition()
        self._moved = False
        self._committed: list[Recorded] = []
        self._stopping = False
        self._unsubscribe = log.on_committed(self._wake) if follows else lambda: None

    def __next__(self) -> Notification:
        """Return the next page. It ends when it was stopped and what had been committed is given.

        Raises:
            LogError: the log can't be read, and it does not wait until it can.
        """
        self._after = self._reached()
        self._rest()
        page = self._next_page()
        if page is None:
            raise StopIteration
        self._began = monotonic()
        return cast("Notification", page)

    def stop(self) -> None:
        """End the subscription."""
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

    def _next_page(self) -> Page | None:
        failed = self._after < self._given  # it could not be written: not before something else has happened
        while True:
            with self._changed:
                self._moved = False
                stopping = self._stopping
                committed, self._committed = self._committed, []
            try:
                left = self._log.head() - self._after
                if stopping and left > _MOST_KEPT:
                    return None
                if not failed and left > 0:
                    page = self._read(committed)
                    self._given = page.id
                    return page
            except LogError as error:
                if not self._follows:
                    raise
                # The store is away: it is read when something happens again.
                _LOGGER.warning("the log can't be read behind position %d: %s", self._given, error)
            if stopping or not self._follows:
                return None
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or self._moved)
                self._changed.wait_for(lambda: self._stopping, _COALESCE_S)
            failed = False

    def _read(self, committed: Sequence[Recorded]) -> Page:
        """Return the next page: rows that can't be read are passed over."""
        fresh = [recorded for recorded in committed if recorded.position > self._after]
        if fresh and fresh[0].position == self._after + 1 and fresh[-1].position == self._after + len(fresh):
            return Page(fresh[-1].position, fresh)
        reached, events = self._after, list[Recorded]()
        try:
            head = self._log.head()
            while reached < head and len(events) < PAGE:
                to = min(head, reached + _STRETCH)
                try:
                    for recorded in self._log.all(
                        after=reached, to=to, limit=PAGE - len(events), topics=self._taken
                    ):
                        events.append(recorded)
                        reached = recorded.position
                    if len(events) < PAGE:
                        reached = to
                except LogError as error:
                    if error.position is None:
                        raise
                    reached = error.position
                    _LOGGER.warning("position %d of the log is in no view beside it: %s", reached, error)
        except LogError:
            if not events:
                raise
        return Page(reached, events)

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
    """In the place of a mapper: what comes from memory, or out of `Log.all`, are events already."""

    def to_domain_event(self, stored_event: Page) -> Page:
        return stored_event


def application_of(subscribed: Callable[[int], CommitSubscription]) -> type[Application[str]]:
    """Return the application class for the library's runner: it uses the open log, and does not close it.

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
