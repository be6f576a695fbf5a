"""Fills a schema with a log that is moved from another store, by COPY: it can't be opened before it is complete."""

from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from typing import cast

import psycopg
from psycopg import sql

from intersession_events.basics.errors import LogError, MigrationFailed, NotALog
from intersession_events.stores.database import Cursor, Row
from intersession_events.stores.keys.records import KeyFile, file_of
from intersession_events.stores.portable.filling import Filling, Moved
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.connections import settle
from intersession_events.stores.postgres.cursor import PgCursor
from intersession_events.stores.postgres.failures import PostgresFailures
from intersession_events.stores.postgres.log import PostgresLog
from intersession_events.stores.postgres.opening import inspect
from intersession_events.stores.postgres.tables import FILLING, FUNCTIONS_OF, create, make_functions

_COLUMNS = ("notification_id", "originator_id", "originator_version", "topic", "state")


class _Unfinished(PostgresLog):
    """The state of a log that is being moved."""

    _may_be_unfinished = True


class SchemaFilling(Filling):
    """A schema that becomes a log. An interrupted attempt is continued by the next one."""

    _identity = "SELECT log_filling.log_id, format FROM log_filling, log_identity FOR UPDATE OF log_filling"
    _remedy = "drop the schema"

    def __init__(self, url: str) -> None:
        self._url = url
        self._address = address_of(url)
        self.shown = self._filled = self._address.shown
        self._failures = PostgresFailures(self._address)
        self._wrapped = KeyFile(file_of(self._address.place))

    def whole(self) -> PostgresLog | None:
        """Open the log that is there already, to read it.

        Raises:
            MigrationFailed: there is something else.
            StoreUnavailable: the server can't be reached, or refuses.
        """
        try:
            known = inspect(self._address, unfinished=True)
        except NotALog as error:
            raise MigrationFailed(str(error)) from error
        if known is None or self._is_begun():
            return None
        return PostgresLog(self._url, read_only=True)

    def reading(self) -> PostgresLog:
        """Open what has arrived so far, for reading."""
        return _Unfinished(self._url, read_only=True)

    def finish(self) -> None:
        """Let all programs open it.

        Raises:
            MigrationFailed: it can't be written.
        """
        with self._writing() as cursor:
            cursor.execute("DROP TABLE log_filling")
            # Else the server thinks until its next look that the table is empty.
            cursor.execute("ANALYZE stored_events")

    def _is_begun(self) -> bool:
        with self._writing() as cursor:
            cursor.execute("SELECT to_regclass('log_filling') IS NOT NULL")
            return cursor.fetchall() == [(True,)]

    def _make_tables(self, cursor: Cursor, log: Moved) -> None:
        own, schema = cast("PgCursor", cursor), self._address.schema
        own.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (f"intersession {schema}",))
        own.execute("SELECT to_regclass('log_identity') IS NULL")
        if own.fetchall() == [(True,)]:
            create(own, schema, log_id=log.log_id, now_ms=log.created_ms)
            own.run(sql.SQL(FILLING).format(schema=sql.Identifier(schema)))
            own.execute("INSERT INTO log_filling VALUES (?)", (log.log_id,))
        (((made_of,),),) = own.together([FUNCTIONS_OF])
        make_functions(own, schema, made_of)
        own.execute("UPDATE log_head SET position = ?", (log.given,))

    def _insert(self, cursor: Cursor, rows: Sequence[Row]) -> None:
        for position, stream, *_ in rows:
            if "\0" in stream:
                raise MigrationFailed(
                    f"position {position}: the stream's name {stream!r} holds a NUL, which PostgreSQL has in no text"
                )
        cast("PgCursor", cursor).copy_in("stored_events", _COLUMNS, rows)

    @contextmanager
    def _writing(self) -> Generator[PgCursor]:
        failure: LogError | None = None
        is_away = False
        try:
            with closing(psycopg.connect(self._address.conninfo)) as connection:
                settle(connection, self._address.schema, writes=True)
                cursor = PgCursor(connection, None)
                try:
                    yield cursor
                    cursor.commit()
                except BaseException:
                    cursor.rollback()
                    raise
        except psycopg.Error as error:
            failure, is_away = self._failures.log_error(error), self._failures.is_of_the_store(error)
        # Nothing of psycopg's is raised from here: its errors may hold what it was given, and that is secret.
        if failure is not None and is_away:
            raise failure
        if failure is not None:
            raise MigrationFailed(f"{self.shown} can't be written: {failure}")
