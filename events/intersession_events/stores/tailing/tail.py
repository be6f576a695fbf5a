"""Keeps a tailed view current, by the library's projection and runner."""

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, Generic, TypeVar, cast

from eventsourcing.application import Application
from eventsourcing.persistence import PersistenceError, Tracking
from eventsourcing.projection import BaseProjectionRunner, Projection

from intersession_events.basics.errors import LogError
from intersession_events.log.log import Log
from intersession_events.stores.portable.application import NAME
from intersession_events.stores.tailing.subscription import CommitSubscription, Page, application_of
from intersession_events.stores.tailing.view import QueryableView, TailedView

V = TypeVar("V", bound=TailedView)
_LOGGER: Final = logging.getLogger("intersession.views")


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

        def run() -> None:
            try:
                self._runner = BaseProjectionRunner[Application[str]](
                    projection=self._pages,
                    application_class=application_of(self._subscription),
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

    def catch_up(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Take in all events of the log, in the calling thread; return the position reached.

        `progress` gets the position and the last one.

        Raises:
            LogError: the log can't be read.
        """
        head = self._log.head()
        behind = CommitSubscription(
            self._log,
            self.view.reached(),
            lambda: self.view.position,
            topics=self.view.topics,
            follows=False,
        )
        for page in cast("Iterable[Page]", behind):
            self._pages.process_event(page, Tracking(NAME, page.id))
            if progress is not None:
                progress(self.view.position, max(head, self.view.position))
        return self.view.position

    def _subscription(self, gt: int) -> CommitSubscription:
        return CommitSubscription(
            self._log,
            gt,
            lambda: self.view.position,
            topics=self.view.topics,
            follows=True,
            patient=self._patient,
        )

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
