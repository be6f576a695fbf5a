"""The eventsourcing library's SQLite recorder of snapshots, in its own table: that is made with the first one.

So a small log has none.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteAggregateRecorder, SQLiteCursor, SQLiteDatastore

from intersession_events.log.sql import Row
from intersession_events.log.tables import unreadable_tables
from intersession_events.stores.database import Cursor
from intersession_events.stores.portable.snapshots.recorder import TABLE, KeepsSnapshots
from intersession_events.stores.sqlite.failures import FAILURES


class SnapshotRecorder(KeepsSnapshots, SQLiteAggregateRecorder):
    """Keeps the snapshots of a log's streams in its file."""

    failures = FAILURES

    def __init__(self, datastore: SQLiteDatastore, events_table_name: str = TABLE) -> None:
        super().__init__(datastore, events_table_name)
        self.insert_events_statement = f"INSERT OR REPLACE INTO {TABLE} VALUES (?,?,?,?)"  # noqa: S608 - the name is the library's

    def is_there(self, query: Callable[[str, Sequence[str | int]], list[Row]]) -> bool:
        """Return whether there is a table of snapshots from which something may be read, as a query says."""
        there = bool(query("SELECT 1 FROM sqlite_master WHERE type='table' AND name=?", (TABLE,)))
        return there and not any(unreadable_tables(lambda statement: query(statement, ()), (TABLE,)))

    def insert_rows(self, cursor: Cursor, stored_events: Sequence[StoredEvent]) -> None:
        """Write rows over those of the same version, inside a transaction; the table is made if there is none."""
        own = cast("SQLiteCursor", cursor)
        self._create_table(own)
        self._insert_events(own, stored_events)

    def drop_table(self, cursor: Cursor) -> None:
        """Leave no row, inside a transaction."""
        cursor.execute(f"DROP TABLE {TABLE}")

    def problems(self) -> Iterator[str]:
        """Say whether the table is another than the library's, or has an index: one can refuse rows, or take others away."""
        (made,) = self.create_table_statements
        asked = "SELECT CAST(name AS BLOB), CAST(sql AS BLOB) FROM sqlite_master WHERE tbl_name=? AND type<>'trigger'"
        for name, sql in self._read(asked, (TABLE,)):
            called, found = (bytes(told or b"").decode(errors="replace") for told in (name, sql))
            if called != TABLE and found:
                yield f"an index {called!r} on {TABLE}: it has none (DROP INDEX takes it away)"
            elif called == TABLE and " ".join(found.split()) != made.replace(" IF NOT EXISTS", ""):
                yield f"the table {TABLE} is not as it was made: {found}"
