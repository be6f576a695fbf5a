"""Keeps a tailed view current, by the library's projection and runner."""

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from types import SimpleNamespace
from typing import Final, Generic, NamedTuple, TypeVar, cast

from eventsourcing.application import Application
from eventsourcing.persistence import (
    ApplicationRecorder,
    Mapper,
    Notification,
    PersistenceError,
    Subscription,
    Tracking,
)
from eventsourcing.projection import BaseProjectionRunner, Projection
from eventsourcing.utils import EnvType

from intersession_events.basics.errors import LogError
from intersession_events.basics.progress import Progress
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.stores.portable.application import NAME
from intersession_events.stores.tailing.view import QueryableView, TailedView

V = TypeVar("V", bound=TailedView)
PAGE: Final = 500
"""Events that are taken in together, at most."""
_MOST_KEPT: Final = 2_000
"""Events that are kept in memory for it; one that is further behind reads the log."""
_STRETCH: Final = 50_000
"""How much of the log is read at a time for the few events that a view takes."""
_COALESCE_S: Final = 0.1
"""Nobody waits for these views: many small commits make one page."""
_TO_OTHERS: Final = 3
_TO_WRITERS: Final = 9
"""A patient runner rests this many times as long as it worked; the greater number if the log was written meanwhile."""
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

    def __init__(self, log: Log, view: TailedView, gt: int, *, follows: bool, patient: bool = False) -> None:
        """Subscribe to the events behind a position, for a view."""
        super().__init__(cast("ApplicationRecorder", None), gt)
        self._log = log
        self._view = view
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
        self._after = self._view.position
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
                        after=reached, to=to, limit=PAGE - len(events), topics=self._view.topics
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


def application_of(subscribed: Callable[[int], CommitSubscription]) -> type[Application[str]]:
    """Return the application class for the library's runner: it uses the open log, and does not close it.

    `subscribed` returns the subscription to what stands behind a position.
    """

    def subscribe(gt: int | None, topics: Sequence[str]) -> CommitSubscription:  # noqa: ARG001 - there are none
        return subscribed(gt or 0)

    def as_it_is(page: Page) -> Page:
        return page  # what comes from memory, or out of `Log.all`, are events already

    class FollowedLog(Application[str]):
        name = NAME

        def __init__(self, _env: EnvType | None = None) -> None:
            # Nothing of the library's own is made: recorder and connections are the log's.
            self.recorder = cast("ApplicationRecorder", SimpleNamespace(subscribe=subscribe))
            self.mapper = cast("Mapper[str]", SimpleNamespace(to_domain_event=as_it_is))

        def close(self) -> None:
            """Do nothing: the log's owner closes it."""

    return FollowedLog


class _Pages(Projection[V]):
    """Has a view take in page by page: one transaction, or one write, for many events."""

    # The library has a method with a variant for each type here; one for all types does, too.
    def process_event(self, page: Page, tracking: Tracking) -> None:  # noqa: ARG002  # pyright: ignore[reportIncompatibleVariableOverride]
        try:
            self.view.take(page.events, page.id)
        except (OSError, LogError, PersistenceError, sqlite3.Error) as error:
            _LOGGER.warning("%s: still at position %d: %s", self.view.said, self.view.position, error)
        except Exception:
            _LOGGER.exception("%s has ended at position %d", self.view.said, self.view.position)
            raise
        self.view.advanced()


class Tail(Generic[V]):
    """Keeps a view current: on a thread from `start` to `stop`, or in `catch_up`.

    With `patient` that thread leaves most of the time to others: nobody waits for the view.
    """

    def __init__(self, log: Log, view: V, *, patient: bool = False) -> None:
        self.view: Final = view
        self._patient = patient
        self._log = log
        self._pages = _Pages(view)
        self._runner: BaseProjectionRunner[Application[str]] | None = None

    def start(self) -> None:
        """Follow the log."""
        followed = partial(CommitSubscription, self._log, self.view, follows=True, patient=self._patient)

        def run() -> None:
            try:
                self._runner = BaseProjectionRunner[Application[str]](
                    projection=self._pages,
                    application_class=application_of(followed),
                    tracking_recorder=self.view,
                    topics=(),
                ).__enter__()
            except (OSError, LogError, PersistenceError, sqlite3.Error) as error:
                _LOGGER.warning("%s is not kept up to date: %s", self.view.said, error)

        # The runner's threads are of the kind that makes them: these must not keep a process that forgets to stop.
        beginning = threading.Thread(target=run, name="views", daemon=True)
        beginning.start()
        beginning.join()

    def stop(self) -> None:
        """Take in the last few events, and stop; a view that is far behind continues after the next start."""
        runner, self._runner = self._runner, None
        if runner is not None:
            with suppress(Exception):  # it was logged when it happened
                runner.__exit__(None, None, None)
        self.view.close()

    def catch_up(self, progress: Progress | None = None) -> int:
        """Take in all events of the log, in the calling thread; return the position reached.

        `progress` gets the position and the last one.

        Raises:
            LogError: the log can't be read.
        """
        head = self._log.head()
        behind = CommitSubscription(self._log, self.view, self.view.reached(), follows=False)
        for page in cast("Iterable[Page]", behind):
            self._pages.process_event(page, Tracking(NAME, page.id))
            if progress is not None:
                progress(self.view.position, max(head, self.view.position))
        return self.view.position

    def wait(self, position: int, timeout: float) -> None:
        """Wait until the view has reached a position of the log.

        Raises:
            TimeoutError: it has not in time.
        """
        if self._runner is None:
            self.catch_up()
            return
        self._runner.wait(position, timeout)


class Tails:
    """The views that `opened` returns, from `begin` to `stop`."""

    def __init__(self, opened: Callable[[], Iterable[Tail[QueryableView]]]) -> None:
        self._opened = opened
        self._turn = threading.Lock()
        self._tails: list[Tail[QueryableView]] = []
        self._thread: threading.Thread | None = None
        self._stopped = False

    def begin(self) -> None:
        """Open them and let them follow, on a thread of their own; after `stop` it does nothing."""
        with self._turn:
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._follow, name="views", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Let them take in the last few events, if they are not far behind, and close them."""
        with self._turn:
            self._stopped = True
        if self._thread is not None:
            self._thread.join()
        for tail in self._tails:
            tail.stop()

    def _follow(self) -> None:
        for tail in self._opened():
            self._tails.append(tail)
            tail.start()
