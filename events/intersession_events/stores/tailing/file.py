"""A tailed view in a database of its own, with the library's tracking table for its position."""

import logging
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from eventsourcing.persistence import PersistenceError, Tracking
from eventsourcing.sqlite import SQLiteCursor, SQLiteTrackingRecorder

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Row, SqlValue
from intersession_events.log.views import InlineView, take_in
from intersession_events.stores.database import MEMORY
from intersession_events.stores.folding.fold import PlainSql, layout_of, made_in, poison, schema_of
from intersession_events.stores.portable.application import NAME
from intersession_events.stores.sqlite.connections import LogDatastore, held_by_reader
from intersession_events.stores.tailing.view import QueryableView, place_of

_OF: Final = (
    "CREATE TABLE IF NOT EXISTS view_of (log_id TEXT NOT NULL, name TEXT NOT NULL, shape INTEGER NOT NULL)"
)
_TOUCHED: Final = "CREATE TABLE IF NOT EXISTS view_touched (is_so INTEGER NOT NULL, texts BLOB NOT NULL)"
_DAMAGED: Final = ("not a database", "malformed", "vtable constructor failed", "no such", "has no column")
"""SQLite's errors for a file that is not a database, or is damaged, and for tables that are not those of the view."""
_LOGGER: Final = logging.getLogger("intersession.views")


class ViewFile(QueryableView, SQLiteTrackingRecorder):
    """The tables of one view in `<store>.views`: rows and position in one transaction.

    A file that is damaged, of another log or shape, or ahead of the log is made anew. So may anybody delete it.
    """

    def __init__(self, view: InlineView, log: Log, place: str | None = None) -> None:
        """Open the database of a view of a log.

        Raises:
            StoreUnavailable: it can't be made or written.
        """
        QueryableView.__init__(self, view)
        self._view = view
        self._log = log
        self._place = place_of(log.place, view.name) if place is None else place
        try:
            try:
                self._open()
            except (PersistenceError, sqlite3.DatabaseError, _ChangedError) as error:
                if not (isinstance(error, _ChangedError) or any(said in str(error) for said in _DAMAGED)):
                    raise
                _LOGGER.warning("%s is damaged (%s); it is built anew", self._place, error)
                self._remove()
                self._open()
        except (OSError, PersistenceError, sqlite3.Error) as error:
            raise StoreUnavailable(f"{self.said} can't be kept in {self._place}: {error}") from error

    def reached(self) -> int:
        """Read its position: another process may keep the same file current."""
        with self.datastore.transaction(commit=False) as cursor:
            return self._max_tracking_id(NAME, cursor) or 0

    def max_tracking_id(self, application_name: str) -> int | None:
        """Return the position in the library's tracking table; the library's own migrations have a row in it as well."""
        return SQLiteTrackingRecorder.max_tracking_id(self, application_name)

    def take(self, events: Sequence[Recorded], position: int) -> None:
        """Take events in and store the position, in one transaction; an event that fails is left out and logged."""
        with self.datastore.transaction(commit=True) as cursor:
            if self._is_touched(cursor):
                _LOGGER.warning("somebody else has written into %s; it is built anew", self._place)
                self._empty(cursor)
                return
            reached = self._max_tracking_id(NAME, cursor) or 0
            fresh = [event for event in events if event.position > reached]
            if position > reached:
                self._apply(cursor, fresh)
                self._insert_tracking(cursor, Tracking(NAME, position))
                cursor.execute("UPDATE view_touched SET is_so=0, texts=?", (self._texts(cursor),))
        self._position = max(reached, position)

    def query(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Run a reading statement on the view's tables; rows are tuples."""
        with self.datastore.transaction(commit=False) as cursor:
            return PlainSql(cursor.sqlite_cursor.connection).execute(statement, parameters).fetchall()

    def begin_anew(self) -> None:
        """Empty it."""
        with self.datastore.transaction(commit=True) as cursor:
            self._empty(cursor)

    def forget(self) -> Sequence[str]:
        """Rewrite the file, and empty its write-ahead log: no removed text is left there."""
        if isinstance(self.datastore, LogDatastore) and not self.datastore.write_anew():
            return [held_by_reader(f"{self._place}-wal")]
        return []

    def close(self) -> None:
        """Close the database."""
        self.datastore.close()

    def _open(self) -> None:
        if self._place != MEMORY:
            Path(self._place).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        SQLiteTrackingRecorder.__init__(self, LogDatastore(self._place))
        try:
            self.create_table()
            with self.datastore.transaction(commit=True) as cursor:
                self._begin(cursor)
        except BaseException:
            self.datastore.close()
            raise

    def _begin(self, cursor: SQLiteCursor) -> None:
        connection = cursor.sqlite_cursor.connection
        sql = PlainSql(connection)
        if any(one.kind == "view" for one in made_in(connection)):
            raise _ChangedError("a query stands where a table should")  # before anything is asked of it
        sql.execute(_OF)
        sql.execute(_TOUCHED)
        mine = (self._log.log_id, self._view.name, self._view.shape)
        self._position = self._max_tracking_id(NAME, cursor) or 0
        if sql.execute("SELECT log_id, name, shape FROM view_of").fetchall() != [mine] or (
            self._position > self._log.head()
        ):
            self._empty(cursor)
        elif self._is_changed(cursor):
            raise _ChangedError("its tables are not as they were left")

    def _is_changed(self, cursor: SQLiteCursor) -> bool:
        """Return whether another program has written into its tables, or replaced them."""
        layout, made = layout_of(self._view), made_in(cursor.sqlite_cursor.connection)
        marks = {one.name: one.sql for one in made if one.kind == "trigger"}
        return (
            schema_of(made, layout.all_tables) != layout.schema
            or marks != _marks(layout.tables)
            or self._is_touched(cursor)
        )

    def _is_touched(self, cursor: SQLiteCursor) -> bool:
        cursor.execute("SELECT is_so, texts FROM view_touched")
        return [tuple(row) for row in cursor.fetchall()] != [(0, self._texts(cursor))]

    def _texts(self, cursor: SQLiteCursor) -> bytes:
        """Return the state of the text indexes: SQLite allows no triggers on them, but counts their changes."""
        said = b""
        for index in layout_of(self._view).text_indexes:
            cursor.execute(
                f"SELECT COUNT(*), (SELECT COUNT(*) FROM {index}_idx), MAX(iif(id=10, block, x'')) FROM {index}_data"  # noqa: S608 - the view's own
            )
            blocks, terms, structure = cursor.fetchone()
            said += f"{blocks} {terms} ".encode() + (structure or b"")
        return said

    def _empty(self, cursor: SQLiteCursor) -> None:
        sql = PlainSql(cursor.sqlite_cursor.connection)
        self._view.drop(sql)
        sql.execute("DELETE FROM view_of")
        sql.execute(
            "INSERT INTO view_of VALUES (?, ?, ?)", (self._log.log_id, self._view.name, self._view.shape)
        )
        sql.execute("DELETE FROM tracking WHERE application_name=?", (NAME,))
        self._view.create(sql)
        for trigger in _marks(layout_of(self._view).tables).values():
            sql.execute(trigger)
        sql.execute("DELETE FROM view_touched")
        cursor.execute("INSERT INTO view_touched VALUES (0, ?)", (self._texts(cursor),))
        self._position = 0

    def _apply(self, cursor: SQLiteCursor, events: Sequence[Recorded]) -> None:
        for event, error in poison(partial(self._attempt, cursor), events):
            _LOGGER.error(
                "%s leaves out position %d (%s): %s: %s",
                self.said,
                event.position,
                event.topic,
                type(error).__name__,
                error,
            )

    def _attempt(self, cursor: SQLiteCursor, events: Sequence[Recorded]) -> Exception | None:
        cursor.execute("SAVEPOINT taken")
        try:
            take_in(self._view, PlainSql(cursor.sqlite_cursor.connection), events)
        except sqlite3.OperationalError:
            raise  # of the disk, and of no event
        except Exception as error:  # noqa: BLE001 - as with inline views: whatever it is, the event is left out
            cursor.execute("ROLLBACK TO taken")
            return error
        finally:
            with suppress(sqlite3.Error):
                cursor.execute("RELEASE taken")
        return None

    def _remove(self) -> None:
        for name in (self._place, f"{self._place}-wal", f"{self._place}-shm"):
            Path(name).unlink(missing_ok=True)


class _ChangedError(Exception):
    """The tables are not those that this view made, or another program has written into them."""


def _marks(tables: Sequence[str]) -> dict[str, str]:
    """Return the triggers that mark a write; the view's own writer removes the mark in each transaction."""
    return {
        f"touched_{table}_{change.lower()}": (
            f"CREATE TRIGGER touched_{table}_{change.lower()} AFTER {change} ON {table} "  # noqa: S608 - a view's own tables
            "WHEN (SELECT is_so FROM view_touched)=0 BEGIN UPDATE view_touched SET is_so=1; END"
        )
        for table in tables
        for change in ("INSERT", "UPDATE", "DELETE")
    }
