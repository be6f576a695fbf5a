"""Read-only connections, so that readers never wait for the writer."""

import sqlite3
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.machine import on_disk
from intersession_events.stores.folding.fold import ClearRow
from intersession_events.stores.sqlite.connections import ReadConnection, connect_to_read, is_at_rest
from intersession_events.stores.sqlite.held import FileUse
from intersession_events.stores.sqlite.names import inode_of
from intersession_events.stores.sqlite.presence import Presence

KEPT: Final = 16
"""The most idle connections that stay open, each with up to 2 MB of pages."""


class FileReaders:
    """Read-only connections to a file: one for each thread that reads at the time, and up to `KEPT` idle ones.

    With `alone`, for a log that is open for reading only, each loan looks whether the file is still there; else its
    writer does. `clear` is as its connections have it.
    """

    def __init__(self, path: str, *, alone: bool, clear: ClearRow | None = None) -> None:
        """Begin to use a file.

        Raises:
            StoreUnavailable: there is no such file.
        """
        self._path = path
        self._presence = Presence(path)
        self._alone = alone
        self._clear = clear
        self._use = FileUse(inode_of(path))
        self._free: list[_Reader] = []
        self._lent = 0
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def connection(self) -> Generator[sqlite3.Connection]:
        """Lend a connection for a block.

        Raises:
            StoreUnavailable: the log is closed, or its file is not the one that was opened.
        """
        if self._alone:
            self._presence.check()
        with self._lock:
            if self._closed:
                raise StoreUnavailable("the log is closed")
            reader = self._free.pop() if self._free else None
            self._lent += 1
        try:
            if reader is not None and reader.is_outdated(self._path):
                reader.connection.close()
                reader = None
            if reader is None:
                reader = self._connect()
            reader.connection.begin()
            yield reader.connection
        finally:
            with self._lock:
                self._lent -= 1
                kept = reader is not None and len(self._free) < KEPT
                if reader is not None and kept:
                    self._free.append(reader)
                self._let_go()
            if reader is not None and not kept:
                reader.connection.close()

    def close(self) -> None:
        """Close all, at once or when they are returned."""
        with self._lock:
            self._closed = True
            self._let_go()

    def _connect(self) -> "_Reader":
        resting = _resting(self._path)
        connection = connect_to_read(self._path)
        connection.clear = self._clear
        try:
            self._presence.check()
        except StoreUnavailable:
            connection.close()  # it is one to another file
            raise
        return _Reader(connection, resting)

    def _let_go(self) -> None:
        if self._closed:
            while self._free:
                self._free.pop().connection.close()
            if not self._lent:
                self._use.end()


class _Reader(NamedTuple):
    """A connection, and how the file was if it is read as immutable: a writer may come after all."""

    connection: ReadConnection
    resting: tuple[int, int] | None

    def is_outdated(self, path: str) -> bool:
        return self.resting is not None and self.resting != _resting(path)


def _resting(path: str) -> tuple[int, int] | None:
    """Return when a log at rest was written last, and its size; None for one that is not at rest."""
    if not is_at_rest(path):
        return None
    with on_disk(path):
        found = Path(path).stat()
    return found.st_mtime_ns, found.st_size


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


Readers = FileReaders | MemoryReaders
"""Lends connections that can only read."""


class NoText(bytes):
    """Bytes in the place of a text, to tell them from bytes that were stored as such: those may be genuine."""


def text_or_none(stored: bytes) -> str | NoText:
    """Return text as it is stored, for `text_factory`; `NoText` if it is invalid."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return NoText(stored)


@contextmanager
def legible(connection: sqlite3.Connection) -> Generator[None]:
    """Read invalid texts as bytes, for a block: one such row must not hide the others."""
    factory, connection.text_factory = connection.text_factory, text_or_none
    try:
        yield
    finally:
        connection.text_factory = factory
