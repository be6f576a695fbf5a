"""Connections that only read, so that no reader waits for the writer."""

import sqlite3
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol

from intersession_events.errors import StoreUnavailable
from intersession_events.stores.sqlite.connections import database_uri, pin


class Readers(Protocol):
    """Lends connections that can only read."""

    def connection(self) -> AbstractContextManager[sqlite3.Connection]:
        """Lend a connection for a block; nobody else has it meanwhile."""
        ...

    def close(self) -> None:
        """Close all, at once or when they come back."""
        ...


class FileReaders:
    """Read-only connections to a file: as many as threads read at the same time."""

    def __init__(self, path: str) -> None:
        self._uri = database_uri(path, mode="ro")
        self._free: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def connection(self) -> Generator[sqlite3.Connection]:
        """Lend a connection for a block."""
        with self._lock:
            if self._closed:
                raise StoreUnavailable("the log is closed")
            connection = self._free.pop() if self._free else None
        if connection is None:
            connection = connect(self._uri)
        try:
            yield connection
        finally:
            with self._lock:
                if self._closed:
                    connection.close()
                else:
                    self._free.append(connection)

    def close(self) -> None:
        """Close all, at once or when they come back."""
        with self._lock:
            self._closed = True
            while self._free:
                self._free.pop().close()


class MemoryReaders:
    """In memory there is one connection for all: readers take turns with the writer."""

    def __init__(self, only: Callable[[], AbstractContextManager[sqlite3.Connection]]) -> None:
        self._only = only
        self._closed = False

    @contextmanager
    def connection(self) -> Generator[sqlite3.Connection]:
        """Lend the connection for a block."""
        if self._closed:
            raise StoreUnavailable("the log is closed")
        with self._only() as connection:
            connection.execute("PRAGMA query_only=ON")
            try:
                yield connection
            finally:
                with suppress(sqlite3.Error):
                    connection.execute("PRAGMA query_only=OFF")

    def close(self) -> None:
        """Refuse further reading."""
        self._closed = True


def connect(uri: str) -> sqlite3.Connection:
    """Open a connection for reading, its settings pinned as those of every other."""
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
    try:
        pin(connection, journal=None)
    except BaseException:
        connection.close()
        raise
    return connection


def rows(readers: Readers, statement: str, parameters: Any = ()) -> list[Any]:
    """Return all rows of a statement as tuples."""
    with readers.connection() as connection:
        cursor = connection.cursor()
        cursor.row_factory = None
        try:
            return cursor.execute(statement, parameters).fetchall()
        finally:
            cursor.close()
