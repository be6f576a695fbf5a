"""Fills a new SQLite file with a log, under another name until it is complete."""

import os
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from intersession_events.basics.errors import LogError, MigrationFailed
from intersession_events.basics.machine import sync
from intersession_events.stores.database import Cursor, Row
from intersession_events.stores.folding.fold import PlainSql
from intersession_events.stores.keys.records import KeyFile, file_of
from intersession_events.stores.portable.filling import Filling, Moved
from intersession_events.stores.sqlite.connections import PAGE_BYTES
from intersession_events.stores.sqlite.identity import create
from intersession_events.stores.sqlite.log import SqliteLog

_MOVED_KIB: Final = 64 * 1024
_ANEW_KIB: Final = 8 * 1024
"""What the cache of pages may take. Bundles of large logs are made within it, beside all else that they hold."""


class FileFilling(Filling):
    """A file that becomes a log. Its name is `.NAME.migrating` until then, and an interrupted attempt is continued by the next one.

    One that is made `anew` is `.NAME.part` before, is taken away by `close`, and lets errors of the file and of SQLite out as they
    are. Nothing of it is durable before the end, so it takes less time.
    """

    _identity = "SELECT log_id, format FROM log_identity"
    _remedy = "delete the file"

    def __init__(self, path: str | os.PathLike[str], *, anew: bool = False) -> None:
        self._whole = Path(os.path.realpath(path))
        self.shown = os.fspath(self._whole)
        self._part = self._filled = self._whole.with_name(
            f".{self._whole.name}.{'part' if anew else 'migrating'}"
        )
        self._anew = anew
        self._wrapped = KeyFile(file_of(str(self._part)))
        self._connection: sqlite3.Connection | None = None

    def whole(self) -> SqliteLog | None:
        """Open the log that is there already, to read it.

        Raises:
            MigrationFailed: there is something else.
        """
        if not os.path.isdir(self._whole.parent):  # noqa: PTH112 - unlike a path's own, it raises nothing
            raise MigrationFailed(f"{self._whole.parent} is no directory, make it first")
        there = files_there(self._whole)
        if not there:
            return None
        try:
            return SqliteLog(self._whole, read_only=True)
        except LogError as error:
            raise MigrationFailed(
                f"{there[0]} is there already, and nothing is overwritten: name a new file ({error})"
            ) from error

    def begin(self, log: Moved) -> int:
        """Make the file, or continue an earlier attempt; return the last position that is there.

        Raises:
            MigrationFailed: another log was begun there, or it can't be written.
        """
        with self._typed():
            os.close(os.open(self._part, os.O_CREAT | os.O_RDWR | (os.O_EXCL if self._anew else 0), 0o600))
            made = self._connection = sqlite3.connect(self._part, isolation_level=None)
            made.execute(f"PRAGMA page_size={PAGE_BYTES}")
            # What the last moments before a power cut leave out is copied again by the next attempt.
            made.execute(f"PRAGMA journal_mode={'OFF' if self._anew else 'WAL'}")
            made.execute(f"PRAGMA synchronous={'OFF' if self._anew else 'NORMAL'}")
            # Without a journal, pages that leave the cache are written once more at most, and no sync waits for them.
            made.execute(f"PRAGMA cache_size=-{_ANEW_KIB if self._anew else _MOVED_KIB}")
            made.execute("PRAGMA secure_delete=ON")
        return super().begin(log)

    def reading(self) -> SqliteLog:
        """Open what has arrived so far, for reading."""
        return SqliteLog(self._part, read_only=True)

    def finish(self) -> None:
        """Give the file its name, once all of it is on disk.

        Raises:
            MigrationFailed: it can't be, or something has the name meanwhile.
        """
        with self._typed():
            assert self._connection is not None  # noqa: S101 - it was begun
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.close()
            if there := files_there(self._whole):
                raise MigrationFailed(f"{there[0]} is there now, and nothing is overwritten")
            # In this order, so that a power cut leaves the name without a file, or with all of the log.
            sync(self._part)
            if self._keys is not None:
                file_of(str(self._part)).rename(file_of(str(self._whole)))
            self._part.rename(self._whole)
            sync(self._whole.parent)

    def close(self) -> None:
        """Close the file; its content stays for the next attempt."""
        if self._connection is not None:
            self._connection.close()
            if self._anew:
                self._part.unlink(missing_ok=True)
                file_of(str(self._part)).unlink(missing_ok=True)

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """Lend the file in a transaction, to add more to it, such as views.

        Raises:
            MigrationFailed: it can't be written.
        """
        assert self._connection is not None  # noqa: S101 - it was begun
        with self._typed():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk has ended it
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _writing(self) -> Generator[Cursor]:
        with self.writing() as made:
            yield PlainSql(made)

    def _make_tables(self, cursor: Cursor, log: Moved) -> None:
        cursor.execute("SELECT count(*) FROM sqlite_master")
        if cursor.fetchone() == (0,):
            create(cursor, log_id=log.log_id, now_ms=log.created_ms)
        cursor.execute("DELETE FROM sqlite_sequence WHERE name='stored_events'")
        if log.given:
            cursor.execute("INSERT INTO sqlite_sequence VALUES ('stored_events', ?)", (log.given,))

    def _insert(self, cursor: Cursor, rows: Sequence[Row]) -> None:
        cursor.executemany("INSERT INTO stored_events VALUES (?, ?, ?, ?, ?)", rows)

    @contextmanager
    def _typed(self) -> Generator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            if self._anew:
                raise
            raise MigrationFailed(f"{self._part} can't be written: {error}") from error


def files_there(path: Path) -> list[Path]:
    """Return the files that exist of a database and SQLite's companions."""
    beside = (path.with_name(f"{path.name}{suffix}") for suffix in ("-wal", "-shm", "-journal"))
    return [one for one in (path, *beside) if os.path.lexists(one)]
