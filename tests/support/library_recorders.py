"""Our recorders as the library has them by itself: tables of events alone, no epoch, and no writer that has a say in a transaction."""

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Any

import psycopg
from eventsourcing.persistence import IntegrityError, StoredEvent

from intersession_events.stores.database import Cursor
from intersession_events.stores.portable.committing import BatchObserver, Committing
from intersession_events.stores.portable.group_commit import Transact
from intersession_events.stores.postgres.recorder import GroupCommitRecorder as PostgresRecorder
from intersession_events.stores.postgres.tables import create
from intersession_events.stores.sqlite.recorder import GroupCommitRecorder

PUT_S = 30.0


class Alone(BatchObserver):
    """Inserts events as they are."""

    def __init__(self, recorder: Committing) -> None:
        self._recorder = recorder

    def put(self, stored_events: Sequence[StoredEvent]) -> Sequence[int]:
        work = Transact(partial(self._insert, stored_events), lambda: None, self._recorder.failures)
        self._recorder.submit(work)
        try:
            return work.result(PUT_S)
        except (sqlite3.IntegrityError, psycopg.IntegrityError) as error:
            raise IntegrityError(error) from error

    def _insert(self, stored_events: Sequence[StoredEvent], cursor: Cursor) -> Sequence[int]:
        positions = self._recorder.queue(stored_events)
        self._recorder.flush(cursor)
        return positions


class FileRecorder(GroupCommitRecorder):
    def __init__(self, *args: Any, **kwargs: Any) -> None:  # what the library gives
        super().__init__(*args, **kwargs)
        self.observer = Alone(self)

    def construct_create_table_statements(self) -> list[str]:
        columns = (
            "rowid INTEGER PRIMARY KEY AUTOINCREMENT CHECK (rowid > 0)",
            "originator_id TEXT NOT NULL",
            "originator_version INTEGER NOT NULL",
            "topic TEXT NOT NULL",
            "state BLOB NOT NULL",
            "UNIQUE (originator_id, originator_version)",
        )
        return [f"CREATE TABLE IF NOT EXISTS {self.events_table_name} ({', '.join(columns)})"]

    def last_given(self, cursor: Cursor) -> int:
        cursor.execute("SELECT seq FROM sqlite_sequence WHERE name='stored_events'")
        row = cursor.fetchone()
        return 0 if row is None else int(row[0])


class ServerRecorder(PostgresRecorder):
    def __init__(self, *args: Any, **kwargs: Any) -> None:  # the same
        super().__init__(*args, **kwargs)
        self.observer = Alone(self)

    def create_table(self) -> None:
        with self.store.writing(None) as cursor:
            found = cursor.execute("SELECT to_regclass('log_identity')").fetchone()
            if found is None or found[0] is None:
                create(cursor, self.store.schema, log_id="", now_ms=0)
