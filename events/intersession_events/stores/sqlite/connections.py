"""The library's SQLite connections, with the settings that durability needs, checked on each connection."""

import os
import sqlite3
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, cast
from urllib.parse import quote

from eventsourcing.persistence import InterfaceError, OperationalError, PersistenceError
from eventsourcing.sqlite import (
    SQLiteConnection,
    SQLiteConnectionPool,
    SQLiteCursor,
    SQLiteDatastore,
    SQLiteTransaction,
)

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.machine import on_disk
from intersession_events.stores.database import MEMORY, Cursor
from intersession_events.stores.folding.fold import ClearRow, PlainSql

FULL: Final = 2
BUSY_TIMEOUT_MS: Final = 5000
"""How long a connection waits for a lock of another process: recovery after a crash takes time."""
WRITER_BUSY_MS: Final = 200
"""How long the log's writer waits for a foreign transaction. An append that arrives meanwhile waits for its own batch too, and
is told within half a second."""
CACHE_KIB: Final = 16_384
"""Of the writer: the ends of many streams and of their indexes stay at hand (SQLite's own 2 MB hold too few)."""
CHECKPOINT_PAGES: Final = 8_000
"""The write-ahead log is folded back at 16 MB: a page that is written often is folded once, not each time."""
PAGE_BYTES: Final = 2_048
"""A commit writes each page of which it changes a byte: half as large, a turn of an exchange writes 0.6 times as much."""


def database_uri(path: str, *, mode: Literal["rwc", "ro", "ro&immutable=1"]) -> str:
    """Return the URI by which SQLite opens a path; `:memory:` is itself."""
    return path if path == MEMORY else f"file:{quote(path)}?mode={mode}"


_LOOKS: Final = 1_000_000
"""The number of steps of SQLite's machine between two checks whether a statement may go on."""
_STEPS: Final = 50_000_000
_STEPS_A_BYTE: Final = 20
"""No statement of ours takes more steps than these together, some hundred times what the longest one does."""


class KeyedConnection(sqlite3.Connection):
    """A connection that knows the keys of its log. Cursors of plain rows ask it for `clear`."""

    clear: ClearRow | None = None
    """Returns a row with what is encrypted in clear; None where nothing is."""


class ReadConnection(KeyedConnection):
    """A connection that aborts statements with more steps than a file of its size can need: a table may have been replaced by a query."""

    _left = 0
    _most = 0

    def bound(self, path: str) -> None:
        """Bound the statements from now on by the size of the file."""
        with on_disk(path):
            try:
                found = Path(path).stat()
            except FileNotFoundError:
                return
        taken = min(found.st_size, found.st_blocks * 512) + _write_ahead_log(path)
        self._most = _STEPS // _LOOKS + taken * _STEPS_A_BYTE // _LOOKS
        self.begin()
        self.set_progress_handler(self._look, _LOOKS)

    def begin(self) -> None:
        """Reset the count of steps, for the next caller."""
        self._left = self._most

    def _look(self) -> int:
        self._left -= 1
        return self._left < 0


def connect_to_read(path: str) -> ReadConnection:
    """Open a connection for reading, with the same pinned settings as all others.

    Readers of a write-ahead log share memory in a file beside it. Where none can be made (on media that can't be
    written, in somebody else's directory) a log at rest is read as the immutable file that it is.

    Raises:
        StoreUnavailable: there is a write-ahead log that can't be read here.
        sqlite3.Error: SQLite can't open it; no SQLite file, for example.
    """
    at_rest = is_at_rest(path)
    connection = sqlite3.connect(
        database_uri(path, mode="ro&immutable=1" if at_rest else "ro"),
        uri=True,
        check_same_thread=False,
        isolation_level=None,
        factory=ReadConnection,
    )
    connection.bound(path)
    try:
        with _legible():
            pin(connection, journal=None)
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # now it opens the files
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode == sqlite3.SQLITE_READONLY_ROLLBACK:
            raise StoreUnavailable(
                f"{path}-journal lies beside {path}: somebody wrote to it with other tools, and did not finish. If it is "
                f"this log's, `sqlite3 {path} .schema` takes back what was begun; another one's would damage it: keep a "
                "copy of both files, and verify the log then"
            ) from error
        left = _write_ahead_log(path)
        if left and error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
            raise StoreUnavailable(
                f"{path}-wal holds {left} bytes that were never folded into {path}, and here they can't be read: SQLite "
                f"refused ({error}). Copy both files to a directory that can be written, and read the log there"
            ) from error
        raise
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def _legible() -> Generator[None]:
    """Make SQLite's message about a damaged schema readable: it quotes the schema, which may be invalid text.

    Raises:
        sqlite3.DatabaseError: it did.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        raise sqlite3.DatabaseError("malformed database schema: its words are no text") from error


def is_at_rest(path: str) -> bool:
    """Return whether a log must be read as an immutable file: it has no write-ahead log, and no file can be made beside it."""
    return _write_ahead_log(path) == 0 and not os.access(
        Path(path).parent, os.W_OK, effective_ids=os.access in os.supports_effective_ids
    )


def _write_ahead_log(path: str) -> int:
    """Return the size of the write-ahead log in bytes; 0 if there is none."""
    with on_disk(f"{path}-wal"):
        try:
            return Path(f"{path}-wal").stat().st_size
        except FileNotFoundError:
            return 0


def pin(
    connection: sqlite3.Connection,
    *,
    journal: Literal["wal", "memory"] | None,
    busy_ms: int = BUSY_TIMEOUT_MS,
) -> None:
    """Set the pragmas that acknowledgements rest on, and check that they took effect.

    What is erased or replaced is overwritten (`secure_delete`), so that no page keeps it.

    With `synchronous` at NORMAL an acknowledged event is lost in half of all power cuts, and the library leaves
    it to how SQLite was built. A reader leaves the journal as it is (None): nothing rests on it, and a copy that was made
    with `VACUUM INTO` has no write-ahead log until somebody writes to it.

    Raises:
        OperationalError: SQLite kept another value.
    """
    connection.execute(f"PRAGMA busy_timeout={busy_ms}")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA secure_delete=ON")
    settings: list[tuple[str, int | str]] = [
        ("busy_timeout", busy_ms),
        ("synchronous", FULL),
        ("secure_delete", 1),
    ]
    if journal is not None:
        settings.append(("journal_mode", journal))
    for pragma, wanted in settings:
        value = connection.execute(f"PRAGMA {pragma}").fetchone()[0]
        if value != wanted:
            raise OperationalError(f"PRAGMA {pragma} is {value!r} and can't be made {wanted!r}")


class ImmediateTransaction(SQLiteTransaction):
    """A transaction that takes the write lock at once if it will commit: its reads stay true."""

    def __enter__(self) -> SQLiteCursor:
        cursor = self.connection.cursor()
        cursor.execute("BEGIN IMMEDIATE" if self.commit else "BEGIN")
        return cursor

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        try:
            super().__exit__(exc_type, exc_val, exc_tb)
        except BaseException:
            # A commit that failed may leave its transaction open, and the next one could not begin.
            with suppress(sqlite3.Error):
                self.connection.rollback()
            raise


class PinnedConnection(SQLiteConnection):
    """A connection whose writing transactions are immediate."""

    @contextmanager
    def transaction(self, *, commit: bool) -> Generator[SQLiteCursor]:
        """Run a transaction round a block."""
        with ImmediateTransaction(self, commit=commit) as cursor, cursor:
            yield cursor

    @property
    def raw(self) -> sqlite3.Connection:
        """SQLite's own connection."""
        return self._sqlite_conn


class WritingTransaction(ImmediateTransaction):
    """A transaction of the log's writer, directly on SQLite's own cursor."""

    def __enter__(self) -> PlainSql:  # type: ignore[override]  # the library's cursor only hands on
        cursor = PlainSql(cast("PinnedConnection", self.connection).raw)
        cursor.execute("BEGIN IMMEDIATE")
        return cursor


def raw_of(cursor: Cursor) -> sqlite3.Connection:
    """Return SQLite's own connection of a cursor in a transaction."""
    own = cursor if isinstance(cursor, PlainSql) else cast("SQLiteCursor", cursor).sqlite_cursor
    return own.connection


class PinnedPool(SQLiteConnectionPool):
    """A pool that pins and checks the settings of every connection. In memory it has only one."""

    busy_ms: int = BUSY_TIMEOUT_MS
    clear: ClearRow | None = None
    """As its connections have it."""

    def _create_connection(self) -> SQLiteConnection:
        try:
            raw = sqlite3.connect(
                self.db_name,
                uri=True,
                check_same_thread=False,
                isolation_level=None,
                timeout=self.busy_ms / 1000,
                factory=KeyedConnection,
            )
            raw.clear = self.clear
        except sqlite3.Error as error:
            raise InterfaceError(error) from error
        try:
            with _legible():
                if not self.is_sqlite_memory_mode:
                    # Of a file that is made now; others keep theirs.
                    raw.execute(f"PRAGMA page_size={PAGE_BYTES}")
                    raw.execute("PRAGMA journal_mode=WAL")
                pin(
                    raw,
                    journal="memory" if self.is_sqlite_memory_mode else "wal",
                    busy_ms=self.busy_ms,
                )
            if not self.is_sqlite_memory_mode:
                raw.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
                raw.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")
        except BaseException:
            raw.close()
            raise
        raw.row_factory = sqlite3.Row  # the library reads columns by name
        return PinnedConnection(sqlite_conn=raw, max_age=self.max_age)

    def connect(self) -> SQLiteConnection:
        """Return a connection of the caller's own, which the caller closes."""
        return self._create_connection()

    def put_connection(self, conn: SQLiteConnection) -> None:
        """Take a connection back, and close it if the pool was closed meanwhile."""
        with self._put_condition:
            if not self._closed:
                super().put_connection(conn)
            elif self._in_use.pop(id(conn), None) is not None:
                conn.close()

    def close(self) -> None:
        """Close idle connections only. The library closes those in use as well, which can crash the process."""
        with self._put_condition:
            in_use, self._in_use = self._in_use, {}
            super().close()
            self._in_use = in_use


def held_by_reader(path: str) -> str:
    """Say in words that a write-ahead log was not emptied."""
    return f"{path}, which a reader holds: it is emptied behind the next erasure, or when the host ends"


class LogDatastore(SQLiteDatastore):
    """Pinned connections to one file; in memory one connection for all, which a thread may take recursively."""

    pool: PinnedPool

    def __init__(
        self,
        db_name: str,
        *,
        lock_timeout: int | None = None,
        busy_ms: int = BUSY_TIMEOUT_MS,
    ) -> None:
        self.is_held = False
        """Whether a reader kept the write-ahead log from being emptied when that was last tried."""
        self._turn = threading.RLock()
        self._only: SQLiteConnection | None = None
        self._writers: SQLiteConnection | None = None
        """The connection of the log's writer, once it has written."""
        super().__init__(db_name, lock_timeout=lock_timeout, originator_id_type="text")
        self.pool = PinnedPool(db_name=db_name, lock_timeout=lock_timeout)
        self.pool.busy_ms = busy_ms

    def writing(self) -> AbstractContextManager[Cursor]:
        """Run a transaction of the log's writer round a block, on the writer's own connection."""
        if self.pool.is_sqlite_memory_mode:
            return self._writing_in_memory()
        if self._writers is None:
            self._writers = self.pool.connect()
        return WritingTransaction(self._writers, commit=True)

    @contextmanager
    def _writing_in_memory(self) -> Generator[Cursor]:
        with self.get_connection(commit=True) as only, WritingTransaction(only, commit=True) as cursor:
            yield cursor

    @contextmanager
    def get_connection(self, *, commit: bool) -> Generator[SQLiteConnection]:
        """Lend a connection for a block."""
        if not self.pool.is_sqlite_memory_mode:
            with super().get_connection(commit=commit) as connection:
                yield connection
            return
        with self._turn:
            if self._only is None or self.pool.closed:
                self._only = self.pool.get_connection()
            yield self._only

    def close(self) -> None:
        """Close idle connections; the others close when they are returned."""
        with self._turn:
            if self._only is not None and not self.pool.closed:
                self.pool.put_connection(self._only)
            self.pool.close()

    def close_writing(self) -> None:
        """Close the connection of the log's writer, which has stopped writing."""
        writers, self._writers = self._writers, None
        if writers is not None:
            writers.close()

    def fold(self) -> bool:
        """Checkpoint the write-ahead log into the file that was opened, under whatever name, and empty it; return whether it is empty.

        SQLite leaves it as it is when the file was moved. Beside another file it would be taken for that one's.
        """
        with suppress(PersistenceError, sqlite3.Error), self.get_connection(commit=True) as connection:
            raw = cast("PinnedConnection", connection).raw
            self.is_held = bool(raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            return not self.is_held
        return False

    def write_anew(self) -> bool:
        """Rewrite the whole file (VACUUM), and checkpoint the write-ahead log into it; return whether both were done.

        What is deleted is overwritten (`secure_delete`), but not what is left of a row in the unused part of a page when SQLite
        moves it to another one.
        """
        is_anew = False
        with suppress(PersistenceError, sqlite3.Error), self.get_connection(commit=True) as connection:
            cast("PinnedConnection", connection).raw.execute("VACUUM")
            is_anew = True
        return self.fold() and is_anew

    @contextmanager
    def only_connection(self) -> Generator[sqlite3.Connection]:
        """Lend SQLite's own connection of a log in memory, between the writer's transactions."""
        with self.get_connection(commit=False) as connection:
            yield cast("PinnedConnection", connection).raw
