"""Fills a new SQLite file with a log that is moved from another store: under another name until it is whole."""

import os
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from intersession_events.errors import LogError, MigrationFailed
from intersession_events.log import APPLICATION_ID, FORMAT, LOG_TABLES
from intersession_events.machine import sync
from intersession_events.stores.database import Row
from intersession_events.stores.portable import Moved
from intersession_events.stores.sqlite.connections import PAGE_BYTES
from intersession_events.stores.sqlite.log import SqliteLog

_BESIDE: Final = ("-wal", "-shm", "-journal")


class FileFilling:
    """A file that becomes a log. It is `.NAME.migrating` before, and what is in it then is taken up by the next attempt."""

    def __init__(self, path: str) -> None:
        self._whole = Path(os.path.realpath(path))
        self._part = self._whole.with_name(f".{self._whole.name}.migrating")
        self._connection: sqlite3.Connection | None = None

    @property
    def shown(self) -> str:
        """The file."""
        return os.fspath(self._whole)

    def whole(self) -> SqliteLog | None:
        """Open the log that is there already, to read it.

        Raises:
            MigrationFailed: there is something else.
        """
        if not os.path.isdir(self._whole.parent):  # noqa: PTH112 - unlike a path's own, it raises nothing
            raise MigrationFailed(f"{self._whole.parent} is no directory, make it first")
        there = [path for path in self._names(self._whole) if os.path.lexists(path)]
        if not there:
            return None
        try:
            return SqliteLog(self._whole, read_only=True)
        except LogError as error:
            raise MigrationFailed(
                f"{there[0]} is there already, and nothing is overwritten: name a new file ({error})"
            ) from error

    def begin(self, log: Moved) -> int:
        """Make the file, or take up what was begun; return the last position that is there.

        Raises:
            MigrationFailed: another log was begun there, or it can't be written.
        """
        with self._typed():
            os.close(os.open(self._part, os.O_CREAT | os.O_RDWR, 0o600))
            made = self._connection = sqlite3.connect(self._part, isolation_level=None)
            made.execute(f"PRAGMA page_size={PAGE_BYTES}")
            made.execute("PRAGMA journal_mode=WAL")
            # What the last moments before a power cut leave out is copied again by the next attempt.
            made.execute("PRAGMA synchronous=NORMAL")
            made.execute("PRAGMA secure_delete=ON")
            made.execute("BEGIN IMMEDIATE")
            if made.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
                made.execute(f"PRAGMA application_id={APPLICATION_ID}")
                for statement in LOG_TABLES.values():
                    made.execute(statement)
                made.execute(
                    "INSERT INTO log_identity VALUES (?, ?, ?, ?)",
                    (log.log_id, FORMAT, log.epoch, log.created_ms),
                )
            found = made.execute("SELECT log_id, format FROM log_identity").fetchall()
            made.execute("COMMIT")
            if found != [(log.log_id, FORMAT)]:
                raise MigrationFailed(
                    f"{self._part} is another log, whose move was begun and not ended: end that, or delete the file"
                )
            return self._last(made)

    def put(self, rows: Sequence[Row], *, after: int | None) -> None:
        """Take rows behind a position; None takes them in whatever order they come.

        Raises:
            MigrationFailed: it can't be written, or somebody else does.
        """
        with self._writing() as made:
            if after is not None and self._last(made) != after:
                raise MigrationFailed(f"somebody else writes into {self._part}")
            made.executemany("INSERT INTO stored_events VALUES (?, ?, ?, ?, ?)", rows)

    def cut(self, after: int) -> None:
        """Take away the rows behind a position.

        Raises:
            MigrationFailed: it can't be written.
        """
        with self._writing() as made:
            made.execute("DELETE FROM stored_events WHERE rowid > ?", (after,))

    def complete(self, log: Moved) -> None:
        """Write what is known beside the events.

        Raises:
            MigrationFailed: it can't be written.
        """
        with self._writing() as made:
            made.execute("UPDATE log_identity SET epoch=?, created_ms=?", (log.epoch, log.created_ms))
            made.execute("DELETE FROM sqlite_sequence WHERE name='stored_events'")
            if log.given:
                made.execute("INSERT INTO sqlite_sequence VALUES ('stored_events', ?)", (log.given,))
            made.execute("DELETE FROM log_topics")
            made.executemany("INSERT INTO log_topics VALUES (?)", [(topic,) for topic in sorted(log.topics)])

    def reading(self) -> SqliteLog:
        """Open what is there by now, to read it."""
        return SqliteLog(self._part, read_only=True)

    def finish(self) -> None:
        """Give the file its name, once all of it is on the disk.

        Raises:
            MigrationFailed: it can't be, or something has the name meanwhile.
        """
        with self._typed():
            assert self._connection is not None  # noqa: S101 - it was begun
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self.close()
            if there := [path for path in self._names(self._whole) if os.path.lexists(path)]:
                raise MigrationFailed(f"{there[0]} is there now, and nothing is overwritten")
            sync(self._part)
            self._part.rename(self._whole)
            sync(self._whole.parent)

    def close(self) -> None:
        """Close the file; what is in it stays."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @staticmethod
    def _names(path: Path) -> list[Path]:
        return [path, *(path.with_name(f"{path.name}{suffix}") for suffix in _BESIDE)]

    @staticmethod
    def _last(made: sqlite3.Connection) -> int:
        last: int = made.execute("SELECT coalesce(max(rowid), 0) FROM stored_events").fetchone()[0]
        return last

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        assert self._connection is not None  # noqa: S101 - it was begun
        with self._typed():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _typed(self) -> Generator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise MigrationFailed(f"{self._part} can't be written: {error}") from error
