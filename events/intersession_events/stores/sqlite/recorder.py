"""The eventsourcing library's SQLite recorders of a log: one that reads and can be followed, one that writes as well.

Named in the library's environment as `APPLICATION_RECORDER_TOPIC`; nothing of the library is changed. All rows of events
go in by `_insert_events`, and come out by `select_events` and `select_notifications`.
"""

import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import cast

from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteCursor, SQLiteDatastore

from intersession_events.log.sql import Row, SqlValue
from intersession_events.stores.database import Cursor
from intersession_events.stores.file.presence import Presence
from intersession_events.stores.portable.committing import Committing
from intersession_events.stores.portable.reading.recorder import ReadsLog
from intersession_events.stores.sqlite import identity
from intersession_events.stores.sqlite.connections import LogDatastore
from intersession_events.stores.sqlite.failures import FAILURES
from intersession_events.stores.sqlite.follower import Follower
from intersession_events.stores.sqlite.readers import MemoryReaders, Readers, event_rows, rows


class ReadingRecorder(ReadsLog, SQLiteApplicationRecorder):
    """Reads the events of a log on connections of its own, which never wait for the writer, and can be subscribed to."""

    failures = FAILURES

    def __init__(self, datastore: SQLiteDatastore, events_table_name: str = "stored_events") -> None:
        super().__init__(datastore, events_table_name)
        self.readers: Readers = MemoryReaders(cast("LogDatastore", datastore).only_connection)
        """Set by whoever opens a file."""

    def rows(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Return all rows of a reading statement as tuples."""
        return rows(self.readers, statement, parameters)

    def event_rows(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Return rows of events, what is no text as bytes."""
        return event_rows(self.readers, statement, parameters)

    def positions_given(self) -> int:
        """Return the last position that was ever given to an event."""
        found = self.rows("SELECT seq FROM sqlite_sequence WHERE name='stored_events'")
        # Others can write into this table: what is no number is told by verification.
        return max((seq for (seq,) in found if isinstance(seq, int)), default=0)

    def follow(self, catch_up: Callable[[], int]) -> Follower:
        """Catch up, and then whenever another process has committed."""
        return Follower(self.readers, catch_up)

    def close_readers(self) -> None:
        """Close what reads, at once or when it comes back."""
        self.readers.close()


class GroupCommitRecorder(Committing, ReadingRecorder):
    """Writes the work of many callers in one transaction with one sync; an error fails only the work it comes from."""

    datastore: LogDatastore

    def __init__(self, datastore: SQLiteDatastore, events_table_name: str = "stored_events") -> None:
        super().__init__(datastore, events_table_name)
        self.insert_events_statement = f"INSERT INTO {events_table_name} (rowid, originator_id, originator_version, topic, state) VALUES (?, ?, ?, ?, ?)"  # noqa: S608 - the name is ours
        self.epoch: int | None = None
        """The writer's, set by whoever opens the log; the library has none."""
        self.whole_views = ""
        """The views that nobody else had written into, as the last transaction began: their names in order."""
        self.presence: Presence | None = None
        """The files that must still be there when a commit is acknowledged; None for a log in memory."""

    def construct_create_table_statements(self) -> list[str]:
        """Return the table: positions that are never given twice, in a column of the name the library reads."""
        columns = (
            "rowid INTEGER PRIMARY KEY AUTOINCREMENT CHECK (rowid > 0)",
            "originator_id TEXT NOT NULL",
            "originator_version INTEGER NOT NULL",
            "topic TEXT NOT NULL",
            "state BLOB NOT NULL",
            "UNIQUE (originator_id, originator_version)",
        )
        return [f"CREATE TABLE IF NOT EXISTS {self.events_table_name} ({', '.join(columns)})"]

    def transaction(self) -> AbstractContextManager[Cursor]:
        """Run a writing transaction round a block."""
        return self.datastore.writing()

    def close(self) -> None:
        """Finish what waits, and take nothing more."""
        super().close()
        self.datastore.close_writing()

    @contextmanager
    def looking_back(self) -> Generator[Cursor]:
        """Look at what is in the file."""
        with self.datastore.transaction(commit=False) as cursor:
            yield cursor

    def last_given(self, cursor: Cursor) -> int:
        """Return the last position that was ever given; it fails if another writer has taken over."""
        if self.epoch is not None:
            given, self.whole_views = identity.begun(cursor, self.epoch)
            return given
        cursor.execute("SELECT seq FROM sqlite_sequence WHERE name='stored_events'")
        row = cursor.fetchone()
        return 0 if row is None else int(row[0])

    def insert_rows(
        self, cursor: Cursor, stored_events: Sequence[StoredEvent], *, first: int
    ) -> Sequence[int]:
        """Insert rows from a position on, and return their positions."""
        return self._insert_events(cast("SQLiteCursor", cursor), stored_events, first=first)

    def _insert_events(
        self, c: SQLiteCursor, stored_events: Sequence[StoredEvent], *, first: int = 0, **_: object
    ) -> Sequence[int]:
        positions = range(first, first + len(stored_events))
        c.executemany(
            self.insert_events_statement,
            [
                (position, event.originator_id, event.originator_version, event.topic, event.state)
                for position, event in zip(positions, stored_events, strict=True)
            ],
        )
        return positions

    def is_taken(self, error: Exception) -> bool:
        """Return whether an error says that a stream has an event of that version already."""
        return isinstance(error, sqlite3.IntegrityError)

    def look(self) -> None:
        """Make sure, from any thread, that the files are where they were.

        Raises:
            StoreUnavailable: they are not.
        """
        if self.presence is not None:
            self.presence.look()

    def check_present(self, *, written: bool) -> None:
        """Make sure that the files which the next start will find are those that are, or were, written.

        Raises:
            StoreUnavailable: they are not.
        """
        if self.presence is not None:
            if written:
                self.presence.check_written()
            else:
                self.presence.check_contents()
