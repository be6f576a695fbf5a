"""Several views that follow one log, opened only when they begin to: whoever is soon over opens none."""

import threading
from collections.abc import Callable, Iterable

from intersession_events.stores.tailing.tail import Tail
from intersession_events.stores.tailing.view import QueryableView


class Tails:
    """The views that `opened` gives, from `begin` to `stop`."""

    def __init__(self, opened: Callable[[], Iterable[Tail[QueryableView]]]) -> None:
        self._opened = opened
        self._turn = threading.Lock()
        self._tails: list[Tail[QueryableView]] = []
        self._thread: threading.Thread | None = None
        self._stopped = False

    def begin(self) -> None:
        """Open them and let them follow, on a thread of their own; after `stop` nothing begins."""
        with self._turn:
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._follow, name="views", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Let them take in what was committed a moment ago, if it is not much, and close them."""
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
