"""Follows a log that another process writes. SQLite tells nobody of a commit, so its data version is looked at."""

import logging
from collections.abc import Callable
from typing import Final

from intersession_events.basics.errors import LogError
from intersession_events.stores.database import typed
from intersession_events.stores.portable.reading.following import Following
from intersession_events.stores.sqlite.failures import FAILURES
from intersession_events.stores.sqlite.readers import Readers

POLL_S: Final = 0.02
"""Looking costs some three microseconds."""

_LOGGER: Final = logging.getLogger("intersession.store")


class Follower(Following):
    """A thread that sees when another process has committed, and has somebody catch up."""

    def __init__(self, readers: Readers, catch_up: Callable[[], int]) -> None:
        """Catch up, then follow."""
        self._readers = readers
        super().__init__(catch_up)

    def _run(self) -> None:
        seen: tuple[int, int] | None = None
        try:
            while not self._stopping.wait(POLL_S):
                # Borrowed each time: that is when it is looked whether the file is still the same, and a log that was at
                # rest may have got a writer. Versions of two connections can't be compared.
                with typed(FAILURES), self._readers.connection() as connection:
                    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
                if (id(connection), version) != seen:
                    seen = (id(connection), version)
                    self._catch_up()
        except LogError:
            _LOGGER.exception("following the log has ended")
