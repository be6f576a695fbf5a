"""A subscription to a log, for the library's projections: it has no thread, and waits until the log has more events."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from eventsourcing.persistence import ApplicationRecorder, Notification, Subscription

from intersession_events.stores.library.frontier import Frontier

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
