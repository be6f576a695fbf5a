"""The eventsourcing library's PostgreSQL recorder of snapshots, in the table that is made with the log."""

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from eventsourcing.persistence import StoredEvent
from eventsourcing.postgres import PostgresAggregateRecorder, PostgresDatastore

from intersession_events.log import Row
from intersession_events.stores.database import Cursor
from intersession_events.stores.snapshots import TABLE, KeepsSnapshots


class SnapshotRecorder(KeepsSnapshots, PostgresAggregateRecorder):
    """Keeps the snapshots of a log's streams in its schema."""

    def __init__(self, datastore: PostgresDatastore, *, events_table_name: str = TABLE) -> None:
        super().__init__(datastore, events_table_name=events_table_name)

    def create_table(self) -> None:
        """Do nothing: who makes the log makes it."""

    def is_there(self, query: Callable[[str, Sequence[str | int]], list[Row]]) -> bool:  # noqa: ARG002 - as others have it
        """Return True."""
        return True

    def insert_rows(self, cursor: Cursor, stored_events: Sequence[StoredEvent]) -> None:
        """Write rows over those of the same version, inside a transaction."""
        cursor.executemany(
            f"INSERT INTO {TABLE} VALUES (?, ?, ?, ?) ON CONFLICT (originator_id, originator_version) "  # noqa: S608 - ours
            "DO UPDATE SET topic = EXCLUDED.topic, state = EXCLUDED.state",
            [
                (cast("str", one.originator_id), one.originator_version, one.topic, one.state)
                for one in stored_events
            ],
        )

    def drop_table(self, cursor: Cursor) -> None:
        """Leave no row, inside a transaction."""
        cursor.execute(f"DELETE FROM {TABLE}")  # noqa: S608 - the same

    def problems(self) -> Iterator[str]:
        """Say nothing: the server keeps the table."""
        return iter(())
