"""The store of a simulation: SQLite's own, in memory, that outlives a crash, and whose commits fail before or after they were made."""

import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from eventsourcing.sqlite import SQLiteConnection, SQLiteCursor, SQLiteDatastore
from eventsourcing.utils import Environment, EnvType

from intersession_actors.running.simulation.greenlets import BEGINNING_MS
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.stores.database import MEMORY
from intersession_events.stores.sqlite import identity
from intersession_events.stores.sqlite.application import LogFactory
from intersession_events.stores.sqlite.connections import (
    LogDatastore,
    PinnedConnection,
    PinnedPool,
)
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.sqlite.readers import MemoryReaders
from intersession_projections.views.inline_views import inline_views
from support.faulty_store import sqlite_failure

SIMULATED = {"PERSISTENCE_MODULE": "simulation.store:SimulatedFactory"}
"""What names this store in the library's environment."""


def cut_off() -> sqlite3.OperationalError:
    """The error of a commit that was made, and whose answer was lost."""
    return sqlite_failure("the answer was lost", sqlite3.SQLITE_BUSY, "SQLITE_BUSY")


class Store:
    """What all connections of a simulation share: the database, and the hook that each commit passes, before and after."""

    def __init__(self) -> None:
        self.memory: sqlite3.Connection | None = None
        self.hook: Callable[[str], None] = _nothing
        self._empty = b""
        """A log in which nothing has happened: to make its tables takes longer than to copy them."""
        self._log_id: str | None = None

    def begin(self, connection: sqlite3.Connection) -> None:
        """Be in this memory from now on: empty, or with a log in which nothing has happened."""
        self.memory = connection
        if self._log_id is not None:
            connection.deserialize(self._empty)
            connection.execute("UPDATE log_identity SET log_id=?, epoch=0", (self._log_id,))
            connection.commit()

    @contextmanager
    def of(self, hook: Callable[[str], None], log_id: str | None = None) -> Generator[None]:
        """Be the store of one simulation. With `log_id` there is a log already, in which nothing has happened."""
        if log_id is not None and not self._empty:
            self._empty = self._made()
        create = identity.create

        def unless_there(cursor: SQLiteCursor, *, log_id: str, now_ms: int) -> None:
            cursor.execute("SELECT 1 FROM sqlite_master WHERE name='log_identity'")
            if cursor.fetchone() is None:
                create(cursor, log_id=log_id, now_ms=now_ms)

        @contextmanager
        def as_it_is(readers: Any) -> Generator[sqlite3.Connection]:  # the readers in memory
            if readers._closed:
                raise StoreUnavailable("the log is closed")
            with readers._only() as connection:
                yield connection

        self.hook, self._log_id = hook, log_id
        try:
            with (
                # A log in memory is always a new one, outside of a simulation.
                patch.object(identity, "create", unless_there),
                # Forbidden to write for each question, and allowed again, SQLite compiles every statement anew.
                patch.object(MemoryReaders, "connection", as_it_is),
            ):
                yield
        finally:
            self.hook = _nothing
            if self.memory is not None:
                self.memory.close()
                self.memory = None

    def _made(self) -> bytes:
        with self.of(_nothing):
            made = SqliteLog(
                MEMORY,
                inline=inline_views(),
                threads=False,
                clock=lambda: BEGINNING_MS,
                environment=SIMULATED,
            )
            assert self.memory is not None
            empty = self.memory.serialize()
            made.crash()
            return empty


def _nothing(_: str) -> None:
    """Let a commit go its way."""


STORE = Store()
"""The library makes factories by their names and gives them nothing, so what they need is of the process."""


class SimulatedConnection(PinnedConnection):
    def commit(self) -> None:
        STORE.hook("before")
        super().commit()
        STORE.hook("after")

    def _close(self) -> None:
        if self.raw is STORE.memory:
            self.raw.rollback()
            self._closed = True
        else:
            super()._close()


class SimulatedPool(PinnedPool):
    def _create_connection(self) -> SQLiteConnection:
        if self.is_sqlite_memory_mode and STORE.memory is not None:
            return SimulatedConnection(sqlite_conn=STORE.memory, max_age=None)
        good = super()._create_connection()
        assert isinstance(good, PinnedConnection)
        if self.is_sqlite_memory_mode:
            STORE.begin(good.raw)
        return SimulatedConnection(sqlite_conn=good.raw, max_age=None)


class SimulatedFactory(LogFactory):
    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        good: SQLiteDatastore = self.datastore
        self.datastore = LogDatastore(good.pool.db_name)
        self.datastore.pool = SimulatedPool(db_name=good.pool.db_name)
