"""Stores whose commits fail as real ones do, named in the eventsourcing library's environment."""

import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from eventsourcing.sqlite import SQLiteConnection, SQLiteDatastore
from eventsourcing.utils import Environment, EnvType

from intersession_events.stores.postgres.application import LogFactory as PostgresFactory
from intersession_events.stores.postgres.connections import LogDatastore as PostgresDatastore
from intersession_events.stores.postgres.cursor import PgCursor
from intersession_events.stores.sqlite.application import LogFactory
from intersession_events.stores.sqlite.connections import (
    LogDatastore,
    PinnedConnection,
    PinnedPool,
)
from intersession_events.stores.url import is_postgres


class Fault:
    """What the commit of the n-th next transaction does; set by a test, used up by it.

    `down` lasts: no commit works until it is taken away.
    """

    def __init__(self) -> None:
        self.before: Exception | None = None
        self.after: Exception | None = None
        self.down: Exception | None = None
        self.down_next: Exception | None = None
        """What every commit meets behind the next one, which goes well."""
        self.skips = 0
        """How many commits go well before `before` or `after` counts."""
        self.refused = threading.Event()
        """Set when a commit met a store that is down."""

    def take(self, moment: str) -> None:
        if moment == "before" and self.down is not None:
            self.refused.set()
            raise self.down
        if moment == "after" and self.down_next is not None:
            self.down, self.down_next = self.down_next, None
        error: Exception | None = getattr(self, moment)
        if error is not None and self.skips:
            self.skips -= 1
            return
        setattr(self, moment, None)
        if error is not None:
            raise error


FAULT = Fault()


def sqlite_failure(message: str, code: int, name: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = code
    error.sqlite_errorname = name
    return error


def cut_off() -> sqlite3.OperationalError:
    """The error of a commit whose answer was lost; here, what is asked for happened all the same."""
    return sqlite_failure("the answer was lost", sqlite3.SQLITE_PROTOCOL, "SQLITE_PROTOCOL")


def disk_full() -> sqlite3.OperationalError:
    """The error of a store that takes nothing for now, and may take everything again later."""
    return sqlite_failure("database or disk is full", sqlite3.SQLITE_FULL, "SQLITE_FULL")


def sync_failed() -> sqlite3.OperationalError:
    return sqlite_failure("disk I/O error", sqlite3.SQLITE_IOERR_FSYNC, "SQLITE_IOERR_FSYNC")


class FaultyConnection(PinnedConnection):
    def commit(self) -> None:
        FAULT.take("before")
        super().commit()
        FAULT.take("after")


class FaultyPool(PinnedPool):
    def _create_connection(self) -> SQLiteConnection:
        good = super()._create_connection()
        assert isinstance(good, PinnedConnection)
        return FaultyConnection(sqlite_conn=good.raw, max_age=None)


class FaultyFactory(LogFactory):
    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        good: SQLiteDatastore = self.datastore
        self.datastore = LogDatastore(good.pool.db_name)
        self.datastore.pool = FaultyPool(db_name=good.pool.db_name)


class FaultyServer(PostgresDatastore):
    @contextmanager
    def writing(self, epoch: int | None) -> Generator[PgCursor]:
        with super().writing(epoch) as cursor:
            if epoch is not None:  # the log's writer, and not its lease
                commit = cursor.commit

                def faulty() -> None:
                    cursor.in_doubt = True
                    with _as_the_server_says_it():
                        FAULT.take("before")
                    commit()
                    cursor.in_doubt = True
                    with _as_the_server_says_it():
                        FAULT.take("after")
                    cursor.in_doubt = False

                cursor.commit = faulty  # type: ignore[method-assign]
            yield cursor


_SERVERS: dict[str, type[psycopg.Error]] = {
    "SQLITE_FULL": psycopg.errors.DiskFull,
    "SQLITE_IOERR_FSYNC": psycopg.errors.IoError,
    "SQLITE_PROTOCOL": psycopg.OperationalError,
}


@contextmanager
def _as_the_server_says_it() -> Generator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise _SERVERS[error.sqlite_errorname](str(error)) from None


class FaultyServerFactory(PostgresFactory):
    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        good = self.datastore
        assert isinstance(good, PostgresDatastore)
        self.datastore = FaultyServer(good.address)


def faulty(url: str) -> dict[str, str]:
    """Return the environment of a store whose commits may fail."""
    return {
        "PERSISTENCE_MODULE": f"support.faulty_store:{'FaultyServerFactory' if is_postgres(url) else 'FaultyFactory'}"
    }


FAULTY = faulty("")
