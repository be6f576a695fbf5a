"""The eventsourcing library's SQLite recorders of a log: one that reads and can be followed, one that writes as well.

Named in the library's environment as `APPLICATION_RECORDER_TOPIC`; nothing of the library is changed. All rows of events
go in by `insert_rows`, and come out by `select_events` and `select_notifications`.
"""

import logging
import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Final, cast

from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

from intersession_events.basics.errors import LogError
from intersession_events.log.sql import Row, SqlValue
from intersession_events.stores.database import Cursor, typed
from intersession_events.stores.portable.committing import Committing
from intersession_events.stores.portable.reading.recorder import Following, ReadsLog
from intersession_events.stores.sqlite import identity
from intersession_events.stores.sqlite.connections import LogDatastore
from intersession_events.stores.sqlite.failures import FAILURES
from intersession_events.stores.sqlite.presence import Presence
from intersession_events.stores.sqlite.readers import MemoryReaders, Readers, legible

POLL_S: Final = 0.02
"""Looking costs some three microseconds."""
AGAIN_S: Final = 1.0
"""How long to wait where the log can't be read."""

_NO_TEXT: Final = "Could not decode to UTF-8"
_INSERT: Final = "INSERT INTO stored_events (rowid, originator_id, originator_version, topic, state) VALUES (?, ?, ?, ?, ?)"

_LOGGER: Final = logging.getLogger("intersession.store")


class Follower(Following):
    """A thread that notices when another process has committed, and calls back to catch up."""

    def __init__(self, readers: Readers, catch_up: Callable[[], int]) -> None:
        """Catch up, then follow."""
        self._readers = readers
        super().__init__(catch_up)

    def _run(self) -> None:
        seen: tuple[int, int] | None = None
        is_out = False
        while not self._stopping.is_set():
            self._hurried.wait(POLL_S)
            self._hurried.clear()
            try:
                # Borrowed each time: that is when it is looked whether the file is still the same, and a log that was at
                # rest may have got a writer. Versions of two connections can't be compared.
                with typed(FAILURES), self._readers.connection() as connection:
                    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
                if (id(connection), version) != seen:
                    self._catch_up()
                    seen = (id(connection), version)
                is_out = False
            except LogError as error:
                if not is_out and not self._stopping.is_set():
                    is_out = True
                    _LOGGER.warning("the log can't be followed now: %s", error)
                self._stopping.wait(AGAIN_S)


class ReadingRecorder(ReadsLog, SQLiteApplicationRecorder):
    """Reads the events of a log on connections of its own, which never wait for the writer, and can be subscribed to."""

    failures = FAILURES

    def __init__(self, datastore: SQLiteDatastore, events_table_name: str = "stored_events") -> None:
        super().__init__(datastore, events_table_name)
        self.readers: Readers = MemoryReaders(cast("LogDatastore", datastore).only_connection)
        """Set when a file is opened."""

    def rows(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Return all rows of a reading statement as tuples."""
        with self.readers.connection() as connection:
            return _rows(connection, statement, parameters)

    def event_rows(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Return rows of events; values that are not text come as bytes."""
        try:
            return self.rows(statement, parameters)
        except sqlite3.OperationalError as error:
            if _NO_TEXT not in str(error):
                raise
        with self.readers.connection() as connection, legible(connection):
            return _rows(connection, statement, parameters)

    def positions_given(self) -> int:
        """Return the last position that was ever given to an event."""
        found = self.rows("SELECT seq FROM sqlite_sequence WHERE name='stored_events'")
        # Others can write into this table: verification reports a value that is not a number.
        return max((seq for (seq,) in found if isinstance(seq, int)), default=0)

    def follow(self, catch_up: Callable[[], int]) -> Follower:
        """Catch up, and then whenever another process has committed."""
        return Follower(self.readers, catch_up)

    def close_readers(self) -> None:
        """Close the reading connections, at once or when they are returned."""
        self.readers.close()


class GroupCommitRecorder(Committing, ReadingRecorder):
    """Writes the work of many callers in one transaction with one sync; an error fails only the work it comes from."""

    datastore: LogDatastore

    def __init__(self, datastore: SQLiteDatastore, events_table_name: str = "stored_events") -> None:
        super().__init__(datastore, events_table_name)
        self.epoch = 0
        """The writer's, set by the log's opening."""
        self.whole_views = ""
        """The views that nobody else had written into, as the last transaction began: their names in order."""
        self.presence: Presence | None = None
        """The files that must still be there when a commit is acknowledged; None for a log in memory."""

    def transaction(self) -> AbstractContextManager[Cursor]:
        """Run a writing transaction round a block."""
        return self.datastore.writing()

    def close(self) -> None:
        """Finish the waiting work, and take no more."""
        super().close()
        self.datastore.close_writing()

    @contextmanager
    def looking_back(self) -> Generator[Cursor]:
        """Look at what is in the file."""
        with self.datastore.transaction(commit=False) as cursor:
            yield cursor

    def last_given(self, cursor: Cursor) -> int:
        """Return the last position that was ever assigned; fails if another writer has taken over."""
        given, self.whole_views = identity.begun(cursor, self.epoch)
        return given

    def insert_rows(self, cursor: Cursor, stored_events: Sequence[StoredEvent], *, first: int) -> None:
        """Insert rows from a position on."""
        cursor.executemany(
            _INSERT,
            [
                (position, event.originator_id, event.originator_version, event.topic, event.state)
                for position, event in enumerate(stored_events, first)
            ],
        )

    def look(self) -> None:
        """Check, from any thread, that the files are where they were.

        Raises:
            StoreUnavailable: they are not.
        """
        if self.presence is not None:
            self.presence.look()

    def check_present(self, *, written: bool) -> None:
        """Check that the files which the next start will find are the ones that are, or were, written.

        Raises:
            StoreUnavailable: they are not.
        """
        if self.presence is not None:
            self.presence.check(contents=not written, ours=written)


def _rows(connection: sqlite3.Connection, statement: str, parameters: Sequence[SqlValue]) -> list[Row]:
    with closing(connection.cursor()) as cursor:
        cursor.row_factory = getattr(connection, "clear", None)
        return cursor.execute(statement, parameters).fetchall()
