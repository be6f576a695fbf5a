"""Has the server write tables anew whose rows were replaced or deleted: until then their words lie in its files (ERASE-3)."""

import threading
from collections.abc import Iterable, Sequence
from typing import Final

import psycopg
from psycopg import Connection, sql
from psycopg.rows import TupleRow

from intersession_events.stores.postgres.address import Address
from intersession_events.stores.postgres.connections import settle

OF_WORDS: Final = ("stored_events", "stored_snapshots", "files", "agent_calls")
"""The tables of a log whose rows have words, but for those of views."""
MOST_BYTES: Final = 64 * 2**20
"""What is written anew at once: readers and the writer wait for it. A VACUUM that locks nobody out leaves the bytes in the pages."""
_PATIENCE: Final = "1s"
"""How long it waits for a table, since whoever comes later waits with it."""
_KNOWN: Final = "SELECT oid, relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname = ANY(%s)"
_SAMPLED: Final = """
SELECT format('%%s.%%s', tablename, a.attname) FROM pg_stats AS s JOIN pg_attribute AS a ON a.attname = s.attname AND attrelid = ANY(%s)
WHERE schemaname = current_schema() AND tablename = attrelid::regclass::text AND atttypid IN ('bytea'::regtype, 'tsvector'::regtype)
ORDER BY 1
"""
_TRIES: Final = 5
_PAUSE_S: Final = 0.1
_WHOLE: Final = "VACUUM (FULL, VERBOSE, ANALYZE) {table}"
_IN_PLACE: Final = "VACUUM (ANALYZE) {table}"


def let_go(address: Address, tables: Iterable[str], *, anew: bool = False) -> Sequence[str]:
    """Have the server let go of replaced and deleted rows of a log's tables, and return in words what it could not.

    Large ones are written `anew` only where nobody waits for them.
    """
    left: list[str] = []
    try:
        with psycopg.connect(address.conninfo, autocommit=True) as connection:
            settle(connection, address.schema, writes=True)
            connection.execute("SELECT set_config('lock_timeout', %s, false)", (_PATIENCE,))
            known, sampled = _looked_at(connection, tables)
            for table in known:
                left += _let_go(connection, address, table, anew=anew)
            if sampled:
                left.append(f"what the server sampled for its plans (pg_statistic) of {', '.join(sampled)}")
    except psycopg.Error as error:
        left.append(f"rows of the database that are dead: {address.said(error)}")
    return left


def _looked_at(connection: Connection[TupleRow], tables: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return which of the tables are there, and of which columns with words the server has sampled some: older logs let it."""
    known: dict[int, str] = dict(connection.execute(_KNOWN, ([*tables],)).fetchall())
    sampled = [name for (name,) in connection.execute(_SAMPLED, ([*known],)).fetchall()]
    return [*known.values()], sampled


class _Notices:
    """What the server says while it works."""

    def __init__(self) -> None:
        self.warned: list[str] = []
        self.still_seen = 0
        """Dead rows that a transaction may still read."""

    def __call__(self, said: psycopg.errors.Diagnostic) -> None:
        if said.severity_nonlocalized == "WARNING":
            self.warned.append(said.message_primary or "")
        # `3 dead row versions cannot be removed yet.`, in the language of the server
        elif (number := (said.message_detail or "").split(" ", 1)[0]).isdigit():
            self.still_seen += int(number)


def _let_go(connection: Connection[TupleRow], address: Address, table: str, *, anew: bool) -> list[str]:
    """Write one table anew; one that is large, or that somebody reads for long, is cleared in place."""
    named, notices = sql.Identifier(address.schema, table), _Notices()
    ((size,),) = connection.execute("SELECT pg_total_relation_size(%s::regclass)", (table,)).fetchall()
    connection.add_notice_handler(notices)
    is_large = size > MOST_BYTES and not anew
    is_held = not is_large and not _is_made_anew(connection, named, notices)
    if is_large or is_held:
        connection.execute(sql.SQL(_IN_PLACE).format(table=named))
    connection.remove_notice_handler(notices)
    statement = f"VACUUM FULL {address.schema}.{table}"
    if notices.warned:
        return [f"dead rows of {table}, have their owner run `{statement}`: {'; '.join(notices.warned)}"]
    if is_large:
        return [f"the pages of {table}: run `{statement}` in a quiet hour, it locks the table"]
    if is_held:
        return [
            f"the pages of {table}, which somebody reads for long: erase once more, or run `{statement}` later"
        ]
    if notices.still_seen:
        return [
            f"{notices.still_seen} dead rows of {table} that an older transaction may still read: run `{statement}` later"
        ]
    return []


def _is_made_anew(connection: Connection[TupleRow], table: sql.Identifier, notices: _Notices) -> bool:
    """Write a table anew; return False if somebody holds it for long. A short transaction of a reader only keeps dead rows there."""
    for _ in range(_TRIES):
        notices.still_seen = 0
        try:
            connection.execute(sql.SQL(_WHOLE).format(table=table))
        except psycopg.errors.LockNotAvailable:
            return False
        if notices.warned or not notices.still_seen:
            break
        threading.Event().wait(_PAUSE_S)
    return True
