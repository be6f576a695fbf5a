"""Follows a log that another process writes. SQLite tells nobody of a commit, so its data version is looked at."""

import logging
import threading
from typing import Final

from intersession_events.errors import CorruptEvent, LogError, UnknownTopic
from intersession_events.log import Recorded
from intersession_events.stores.sqlite.event_reader import PAGE, EventReader
from intersession_events.stores.sqlite.failures import typed
from intersession_events.stores.sqlite.frontier import Frontier
from intersession_events.stores.sqlite.readers import Readers

POLL_S: Final = 0.02
"""Looking costs some three microseconds."""

_LOGGER: Final = logging.getLogger("intersession.store")


class Follower:
    """A thread that sees when another process has committed, and tells a frontier."""

    def __init__(self, readers: Readers, events: EventReader, frontier: Frontier) -> None:
        self._readers = readers
        self._events = events
        self._frontier = frontier
        self._stopping = threading.Event()
        frontier.advance(events.head())
        self._thread = threading.Thread(target=self._run, name="intersession-follower", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop following."""
        self._stopping.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        seen: tuple[int, int] | None = None
        try:
            while not self._stopping.wait(POLL_S):
                # Borrowed each time: that is when it is looked whether the file is still the same, and a log that was at
                # rest may have got a writer. Versions of two connections can't be compared.
                with typed(), self._readers.connection() as connection:
                    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
                if (id(connection), version) != seen:
                    seen = (id(connection), version)
                    self._catch_up()
        except LogError:
            _LOGGER.exception("following the log has ended")

    def _catch_up(self) -> None:
        while rows := self._events.rows(after=self._frontier.head, limit=PAGE):
            recorded: list[Recorded] = []
            for row in rows:
                try:
                    recorded.append(self._events.proven(row))
                except (CorruptEvent, UnknownTopic) as error:
                    _LOGGER.warning("position %d was passed over: %s", row[0], error)
            self._frontier.advance(rows[-1][0])
            if recorded:
                self._frontier.tell(recorded)
