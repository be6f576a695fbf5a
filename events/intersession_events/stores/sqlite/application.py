"""The log in a file as an application of the eventsourcing library."""

import os
from collections.abc import Iterator, Sequence
from typing import ClassVar, cast

from eventsourcing.persistence import ApplicationRecorder, StoredEvent
from eventsourcing.sqlite import SQLiteAggregateRecorder, SQLiteCursor, SQLiteDatastore, SQLiteFactory
from eventsourcing.utils import Environment, EnvType, get_topic

from intersession_events.basics.errors import NoSuchStore, StoreUnavailable
from intersession_events.log.sql import Query
from intersession_events.log.tables import unreadable_tables
from intersession_events.stores.database import Cursor
from intersession_events.stores.keys.keyring import Keyring
from intersession_events.stores.keys.opening import keys_at
from intersession_events.stores.keys.records import KeyFile, file_of
from intersession_events.stores.portable.application import NAME, PREFIX, LogApplication
from intersession_events.stores.portable.snapshots.recorder import TABLE, KeepsSnapshots
from intersession_events.stores.sqlite import identity
from intersession_events.stores.sqlite.ahead import damage_of, describe_damage
from intersession_events.stores.sqlite.connections import WRITER_BUSY_MS, LogDatastore, database_uri
from intersession_events.stores.sqlite.failures import FAILURES
from intersession_events.stores.sqlite.names import check_one_name
from intersession_events.stores.sqlite.readers import FileReaders
from intersession_events.stores.sqlite.recorder import GroupCommitRecorder, ReadingRecorder


class SnapshotRecorder(KeepsSnapshots, SQLiteAggregateRecorder):
    """Stores the snapshots of a log's streams in its file."""

    failures = FAILURES

    def __init__(self, datastore: SQLiteDatastore, events_table_name: str = TABLE) -> None:
        super().__init__(datastore, events_table_name)
        self.insert_events_statement = f"INSERT OR REPLACE INTO {TABLE} VALUES (?,?,?,?)"  # noqa: S608 - the name is the library's

    def is_there(self, query: Query) -> bool:
        """Return whether there is a readable table of snapshots, by a query."""
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
        """Report a table that is not as the library makes it, or that has an index: one can refuse rows, or remove others."""
        (made,) = self.create_table_statements
        asked = "SELECT CAST(name AS BLOB), CAST(sql AS BLOB) FROM sqlite_master WHERE tbl_name=? AND type<>'trigger'"
        for name, sql in self._read(asked, (TABLE,)):
            called, found = (bytes(told or b"").decode(errors="replace") for told in (name, sql))
            if called != TABLE and found:
                yield f"an index {called!r} on {TABLE}: it has none (DROP INDEX takes it away)"
            elif called == TABLE and " ".join(found.split()) != made.replace(" IF NOT EXISTS", ""):
                yield f"the table {TABLE} is not as it was made: {found}"


class LogFactory(SQLiteFactory):
    """The library's factory, with pinned connections."""

    aggregate_recorder_class = SnapshotRecorder

    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        loose = self.datastore
        self.datastore = LogDatastore(
            loose.pool.db_name, lock_timeout=loose.pool.lock_timeout, busy_ms=WRITER_BUSY_MS
        )


class SqliteApplication(LogApplication):
    """What a log's reader and its writer have in common."""

    name = NAME
    env: ClassVar[dict[str, str]] = {
        **LogApplication.env,
        f"{PREFIX}PERSISTENCE_MODULE": get_topic(LogFactory),
        f"{PREFIX}APPLICATION_RECORDER_TOPIC": get_topic(ReadingRecorder),
    }

    @property
    def reading(self) -> ReadingRecorder:
        """The recorder, by its own type."""
        return cast("ReadingRecorder", self.recorder)

    @property
    def datastore(self) -> LogDatastore:
        """The connections."""
        return cast("LogFactory", self.factory).datastore  # type: ignore[return-value]  # the factory sets its own


class WriterApplication(SqliteApplication):
    """Composes a log for its one writer, which `opening.py` opens."""

    name = NAME
    env: ClassVar[dict[str, str]] = {
        **SqliteApplication.env,
        f"{PREFIX}APPLICATION_RECORDER_TOPIC": get_topic(GroupCommitRecorder),
    }

    def encrypt(self, keys: Keyring | None) -> None:
        """Keep it encrypted with these keys, if there are some; before anything is read of it."""
        if keys is not None:
            self.chained.keys, self.datastore.pool.clear = keys, keys.clear_row

    @property
    def commits(self) -> GroupCommitRecorder:
        """The recorder, by its own type."""
        return cast("GroupCommitRecorder", self.recorder)


class SessionLog(SqliteApplication):
    """A log that is open for reading, with or without a writer: for the library's own projections and tools.

    `env` names the file: `SQLITE_DBNAME`, or `INTERSESSION_SQLITE_DBNAME` where a view's database is named as well.

    Raises:
        NoSuchStore: there is no log.
        NotALog: the file is something else.
        StoreUnavailable: it can't be read.
    """

    name = NAME

    def construct_env(self, name: str, env: EnvType | None = None) -> Environment:
        """Return settings that never open the file for writing."""
        settings = super().construct_env(name, env)
        place = settings.get("SQLITE_DBNAME")
        if place is None:
            raise NoSuchStore("", f"SQLITE_DBNAME or {PREFIX}SQLITE_DBNAME names the log's file")
        self._path = os.path.realpath(place)
        settings[f"{PREFIX}SQLITE_DBNAME"] = database_uri(self._path, mode="ro")
        return settings

    def construct_recorder(self) -> ApplicationRecorder:
        """Open the file; called by the library."""
        path = self._path
        check_one_name(path)
        known = identity.inspect(path)
        if known is None:
            damage = damage_of(path) if os.path.isfile(path) else None  # noqa: PTH113 - as SQLite has its name
            if damage is not None:  # all that there is of the log is in a file of which SQLite reads nothing
                raise StoreUnavailable(describe_damage(path, damage, head=0))
            raise NoSuchStore(path, "there is no log to be read")
        self.chained.lineage = known.lineage
        recorder = super().construct_recorder()
        keys = self.chained.keys = keys_at(KeyFile(file_of(path)), writes=False)
        clear = None if keys is None else keys.clear_row
        cast("ReadingRecorder", recorder).readers = FileReaders(path, alone=True, clear=clear)
        return recorder

    @property
    def log_id(self) -> str:
        """The log's identity."""
        return self.chained.log_id

    def close(self) -> None:
        """Let subscriptions end, and close everything; may be called again."""
        recorder = cast("ReadingRecorder | None", getattr(self, "recorder", None))
        if recorder is not None:  # the library closes also what could not be opened
            recorder.close()
            recorder.readers.close()
        super().close()
