"""The eventsourcing library's recorder of snapshots, whose rows ride on the commits of the log's one writer.

The table is the library's own. It is made with the first snapshot, so that a small log has none.
"""

import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteAggregateRecorder, SQLiteCursor, SQLiteDatastore

from intersession_events.errors import LogError, StoreUnavailable
from intersession_events.log import Row

TABLE: Final = "stored_snapshots"
"""As the library calls it."""

_LOGGER: Final = logging.getLogger("intersession.store")

Rows = Callable[[str, Sequence[str | int]], list[Row]]
"""Runs a reading statement on a connection that never waits for the writer."""


class SnapshotRecorder(SQLiteAggregateRecorder):
    """Keeps the snapshots of a log's streams. `rows` and, for the writer, `submit` are set by whoever opens the log."""

    def __init__(self, datastore: SQLiteDatastore, events_table_name: str = TABLE) -> None:
        super().__init__(datastore, events_table_name)
        self.insert_events_statement = f"INSERT OR REPLACE INTO {events_table_name} VALUES (?,?,?,?)"  # noqa: S608 - the name is the library's
        columns = "originator_id, originator_version, topic, state"
        self.select_events_statement = f"SELECT {columns} FROM {events_table_name} WHERE originator_id=? "  # noqa: S608 - the same
        self.rows: Rows = _no_rows
        self.submit: Callable[[OnTheWay], None] | None = None
        self.erasures = 0
        """How many erasures were committed since the log was opened."""
        self._erased: dict[str, int] = {}
        """The streams of them, each with the number of its last one."""

    def insert_events(self, stored_events: Sequence[StoredEvent], *, as_of: int = 0, **_: object) -> None:
        """Have snapshots written with the next commit. Nobody waits for that, and nobody hears of it when it fails.

        What was folded after so many erasures (`as_of`) may hold words that were erased since: then it is not written.

        Raises:
            StoreUnavailable: the log is open for reading only, is closed, or too much waits already.
        """
        if self.submit is None:
            raise StoreUnavailable("no snapshot was taken: the log is open for reading only")
        self.submit(OnTheWay(lambda cursor: self._write(cursor, stored_events, as_of)))

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Return the rows of a stream with `gt < version <= lte`, unproven; none where no snapshot was ever taken."""
        statement = self.select_events_statement
        parameters: list[str | int] = [str(originator_id)]
        if gt is not None:
            statement += "AND originator_version>? "
            parameters.append(gt)
        if lte is not None:
            statement += "AND originator_version<=? "
            parameters.append(lte)
        statement += f"ORDER BY originator_version {'DESC' if desc else 'ASC'} LIMIT ?"
        parameters.append(-1 if limit is None else limit)
        return [StoredEvent(*row) for row in self._read(statement, parameters)]

    def versions(self, stream: str, topic: str) -> list[int]:
        """Return the versions of a stream that have a snapshot of a shape, in order."""
        statement = (
            f"SELECT originator_version FROM {self.events_table_name} "  # noqa: S608 - the name is the library's
            "WHERE originator_id=? AND topic=? ORDER BY originator_version"
        )
        found = self._read(statement, (stream, topic))
        return [version for (version,) in found if isinstance(version, int)]  # others can write here

    def streams(self) -> list[str]:
        """Return the names of the streams that have snapshots, sorted."""
        return [
            name
            for (name,) in self._read(
                f"SELECT DISTINCT originator_id FROM {self.events_table_name} ORDER BY originator_id",  # noqa: S608 - the same
                (),
            )
        ]

    def problems(self) -> Iterator[str]:
        """Say whether the table is another than the library's."""
        (made,) = self.create_table_statements
        for (found,) in self.rows("SELECT sql FROM sqlite_master WHERE name=?", (self.events_table_name,)):
            if " ".join(str(found).split()) != made.replace(" IF NOT EXISTS", ""):
                yield f"the table {self.events_table_name} is not as it was made: {found}"

    def forget(self, stream: str, version: int, topic: str) -> None:
        """Have a snapshot dropped with the next commit, and those of its stream that have another shape than `topic`."""
        statement = (
            f"DELETE FROM {self.events_table_name} "  # noqa: S608 - the same
            "WHERE originator_id=? AND (originator_version=? OR topic<>?)"
        )
        if self.submit is not None:
            with suppress(LogError):
                self.submit(OnTheWay(lambda cursor: cursor.execute(statement, (stream, version, topic))))

    def erase(self, cursor: SQLiteCursor, streams: Sequence[str]) -> None:
        """Drop the snapshots of streams in which something is erased, inside the transaction that does it.

        They may hold words of what was under way then. So may what was folded before, and is only on its way here.
        """
        self._erased.update(dict.fromkeys(streams, self.erasures + 1))
        cursor.execute("SELECT 1 FROM sqlite_master WHERE type='table' AND name=?", (self.events_table_name,))
        if cursor.fetchone() is not None:
            cursor.executemany(
                f"DELETE FROM {self.events_table_name} WHERE originator_id=?",  # noqa: S608 - the same
                [(stream,) for stream in streams],
            )

    def erased(self) -> None:
        """Hear that an erasure is durable: what is folded from now on can't hold its words."""
        self.erasures += 1

    def clear(self, cursor: SQLiteCursor) -> int:
        """Drop all snapshots, inside a transaction; return how many there were."""
        cursor.execute("SELECT 1 FROM sqlite_master WHERE name=?", (self.events_table_name,))
        if cursor.fetchone() is None:
            return 0
        cursor.execute(f"SELECT COUNT(*) FROM {self.events_table_name}")  # noqa: S608 - the same
        count: int = cursor.fetchone()[0]
        cursor.execute(f"DROP TABLE {self.events_table_name}")
        return count

    def _write(self, cursor: SQLiteCursor, stored_events: Sequence[StoredEvent], as_of: int) -> None:
        fresh = [one for one in stored_events if self._erased.get(str(one.originator_id), 0) <= as_of]
        if fresh:
            self._create_table(cursor)
            self._insert_events(cursor, fresh)

    def _read(self, statement: str, parameters: Sequence[str | int]) -> list[Row]:
        """Return rows, or none: nobody needs a snapshot. A store that fails says so when the events are read."""
        try:
            return self.rows(statement, parameters)
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                if not self.rows("SELECT 1 FROM sqlite_master WHERE name=?", (self.events_table_name,)):
                    return []
            _LOGGER.warning("the snapshots can't be read: %s", error)
            return []


class OnTheWay:
    """Work on the table of snapshots, on its way to the next commit. Whatever becomes of it, the others there go on."""

    alone = False

    def __init__(self, write: Callable[[SQLiteCursor], None]) -> None:
        self._write = write

    def write(self, cursor: SQLiteCursor) -> None:
        """Do the work, or nothing of it."""
        cursor.execute("SAVEPOINT snapshot")
        try:
            self._write(cursor)
        except sqlite3.Error as error:
            # A table that somebody altered, or a disk that is full: what must be stored will find out about the disk.
            with suppress(sqlite3.Error):
                cursor.execute("ROLLBACK TO snapshot")
            _LOGGER.warning("a snapshot was not kept: %s", error)
        cursor.execute("RELEASE snapshot")

    def is_stored(self, cursor: SQLiteCursor) -> bool:  # noqa: ARG002 - nobody needs to know
        """Return False."""
        return False

    def undo(self) -> None:
        """Do nothing: there is no more of it than its rows."""

    def done(self, error: Exception | None) -> None:
        """Note that it failed."""
        if error is not None:
            _LOGGER.debug("a snapshot was not kept: %s", error)


def _no_rows(statement: str, parameters: Sequence[str | int]) -> list[Row]:
    raise StoreUnavailable(f"nobody reads yet: {statement} {parameters}")
