"""What makes an SQLite file a log: its id, format and epoch, and a mark that is missing in a dump of the file."""

import logging
import sqlite3
import stat
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from intersession_events.basics.errors import AlteredLog, NotALog, StoreUnavailable, WriterSuperseded
from intersession_events.basics.machine import refused
from intersession_events.log.sql import Row, SqlValue
from intersession_events.log.tables import (
    APPLICATION_ID,
    FORMAT,
    LOG_TABLES,
    MADE_ANEW,
    missing_tables,
    place_problems,
    schema_problems,
    unreadable_tables,
)
from intersession_events.stores.database import Cursor
from intersession_events.stores.folding.fold import PlainSql
from intersession_events.stores.portable.identity import Identity, identity_of, only_one
from intersession_events.stores.sqlite.connections import connect_to_read, raw_of
from intersession_events.stores.sqlite.failures import FAILURES
from intersession_events.stores.sqlite.readers import text_or_none

_LOGGER: Final = logging.getLogger("intersession.store")


def inspect(path: str) -> Identity | None:
    """Return the identity of the log in a file, without writing to it; None if there is no log yet.

    Raises:
        NotALog: it is something else, or a copy that lost its identity.
        LogTooNew: it has a later format.
        StoreUnavailable: it can't be read.
    """
    # Only SQLite opens the file: closing a descriptor of our own would drop the locks it holds on a log that is open.
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refused(path, error) from error
    if not stat.S_ISREG(found.st_mode):
        raise StoreUnavailable(f"{path} is no file, so there is no log in it")
    if not found.st_size:
        return None
    try:
        with closing(connect_to_read(path)) as connection:
            return _read(connection, path)
    except sqlite3.OperationalError as error:
        raise FAILURES.log_error(error) from error
    except sqlite3.DatabaseError as error:
        raise NotALog(f"{path} is damaged or no SQLite file: {error}; nothing was written to it") from error


def create(cursor: Cursor, *, log_id: str, now_ms: int) -> None:
    """Make an empty file a log, inside a transaction."""
    cursor.execute(f"PRAGMA application_id={APPLICATION_ID}")
    for statement in LOG_TABLES.values():
        cursor.execute(statement)
    cursor.execute("INSERT INTO log_identity VALUES (?, ?, 0, ?)", (log_id, FORMAT, now_ms))


def take_epoch(cursor: Cursor) -> int:
    """Begin a new epoch, inside a transaction: every earlier writer is fenced off."""
    cursor.execute("UPDATE log_identity SET epoch=epoch+1 RETURNING epoch")
    epoch: int = cursor.fetchone()[0]
    return epoch


def begun(cursor: Cursor, mine: int) -> tuple[int, str]:
    """Check, as a transaction begins, that no other writer has taken over.

    Returned are the last position that was ever given, also to a row that somebody took away since, and the names of the views
    that nobody else has touched, in order.

    Raises:
        WriterSuperseded: somebody did.
    """
    cursor.execute(
        "SELECT epoch, (SELECT seq FROM sqlite_sequence WHERE name='stored_events'), "
        "(SELECT group_concat(name) FROM inline_views WHERE position>=0) FROM log_identity"
    )
    now, given, whole = cursor.fetchone()
    if now != mine:
        raise WriterSuperseded(mine, now)
    return int(given or 0), whole or ""


_NEEDED: Final = ("stored_events", "log_identity")
_MENDED: Final = frozenset(f"the table {name} is missing" for name in MADE_ANEW)


def make_anew(cursor: Cursor, path: str) -> None:
    """Make missing tables again that hold only what the events say, inside a transaction."""
    sql = PlainSql(raw_of(cursor))

    def query(statement: str) -> list[Row]:
        return sql.execute(statement).fetchall()

    for name in missing_tables(query):
        _LOGGER.warning("the table %s of %s is gone: it is made anew of the events", name, path)
        cursor.execute(LOG_TABLES[name])
        if (filled := MADE_ANEW[name]) is not None:
            cursor.execute(filled)


def _read(connection: sqlite3.Connection, path: str) -> Identity | None:
    # One look at all of it: a writer that makes the file a log just now must not be seen half way.
    connection.execute("BEGIN")
    connection.text_factory = text_or_none
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    if mark == 0 and not tables:
        return None  # made, but died before the first transaction
    if mark != APPLICATION_ID or "log_identity" not in tables:
        lost = (
            "a copy made by a dump, which does not keep a log's identity"
            if "log_identity" in tables
            else "no log"
        )
        raise NotALog(f"{path} is {lost}; nothing was written to it (copy a log with SQLite's backup)")

    def query(statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        return connection.execute(statement, parameters).fetchall()

    if queries := list(unreadable_tables(query, _NEEDED)):
        raise AlteredLog(
            f"{path} was altered from outside: {', '.join(queries)} is no table any more, so nothing of it is read or written"
        )
    found = only_one(query("SELECT log_id, format, epoch FROM log_identity"), path)
    problems = [one for one in schema_problems(query) if one not in _MENDED]
    if not problems:
        problems += place_problems(query)
    topics: set[str] = set()
    if not problems:
        kept = "log_topics" if "log_topics" in tables else "stored_events"
        topics = {str(row[0]) for row in query(f"SELECT DISTINCT topic FROM {kept}")}  # noqa: S608 - one of two names
    return identity_of(found, topics, query, problems)
