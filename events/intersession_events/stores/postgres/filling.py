"""Fills a schema with a log that is moved from another store, by COPY: it can't be opened before it is complete."""

from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager

import psycopg
from psycopg import sql

from intersession_events.basics.errors import LogError, MigrationFailed, NotALog
from intersession_events.log.tables import FORMAT
from intersession_events.stores.database import Row
from intersession_events.stores.portable.filling import Moved
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.connections import settle
from intersession_events.stores.postgres.cursor import PgCursor
from intersession_events.stores.postgres.failures import PostgresFailures
from intersession_events.stores.postgres.log import PostgresLog
from intersession_events.stores.postgres.opening import inspect
from intersession_events.stores.postgres.tables import FILLING, FUNCTIONS_OF, create, make_functions

_COLUMNS = ("notification_id", "originator_id", "originator_version", "topic", "state")
_LAST = "SELECT coalesce(max(notification_id), 0) FROM stored_events"


class _Unfinished(PostgresLog):
    """What is there of a log that is moved."""

    _may_be_unfinished = True


class SchemaFilling:
    """A schema that becomes a log. An interrupted attempt is continued by the next one."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._address = address_of(url)
        self._failures = PostgresFailures(self._address)

    @property
    def shown(self) -> str:
        """The URL without its password."""
        return self._address.shown

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

    def begin(self, log: Moved) -> int:
        """Make the schema and its tables, or continue an earlier attempt; return the last position that is there.

        Raises:
            MigrationFailed: another log was begun there, or it can't be written.
            StoreUnavailable: the server is gone; so in all that writes here.
        """
        schema = self._address.schema
        with self._writing() as cursor:
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (f"intersession {schema}",)
            )
            cursor.execute("SELECT to_regclass('log_identity') IS NULL")
            if cursor.fetchall() == [(True,)]:
                create(cursor, schema, log_id=log.log_id, now_ms=log.created_ms)
                cursor.run(sql.SQL(FILLING).format(schema=sql.Identifier(schema)))
                cursor.execute("INSERT INTO log_filling VALUES (?)", (log.log_id,))
            cursor.execute("SELECT log_filling.log_id, format FROM log_filling, log_identity")
            if cursor.fetchall() != [(log.log_id, FORMAT)]:
                raise MigrationFailed(
                    f"{self.shown} is another log, whose move was begun and not ended: end that, or drop the schema"
                )
            cursor.execute("UPDATE log_identity SET epoch = ?, created_ms = ?", (log.epoch, log.created_ms))
            cursor.execute("UPDATE log_head SET position = ?", (log.given,))
            cursor.execute("DELETE FROM log_topics")
            cursor.executemany(
                "INSERT INTO log_topics VALUES (?)", [(topic,) for topic in sorted(log.topics)]
            )
            (((made_of,),),) = cursor.together([FUNCTIONS_OF])
            make_functions(cursor, schema, made_of)
            return _last(cursor)

    def put(self, rows: Sequence[Row], *, after: int) -> None:
        """Take rows behind a position.

        Raises:
            MigrationFailed: PostgreSQL can't hold one of them, it can't be written, or somebody else does.
        """
        for position, stream, *_ in rows:
            if "\0" in stream:
                raise MigrationFailed(
                    f"position {position}: the stream's name {stream!r} holds a NUL, which PostgreSQL has in no text"
                )
        with self._writing() as cursor:
            cursor.execute("SELECT log_id FROM log_filling FOR UPDATE")
            if _last(cursor) != after:
                raise MigrationFailed(f"somebody else writes into {self.shown}")
            cursor.copy_in("stored_events", _COLUMNS, rows)

    def cut(self, after: int) -> None:
        """Take away the rows behind a position.

        Raises:
            MigrationFailed: it can't be written.
        """
        with self._writing() as cursor:
            cursor.execute("DELETE FROM stored_events WHERE notification_id > ?", (after,))

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

    def close(self) -> None:
        """Do nothing: each step has a connection of its own."""

    def _is_begun(self) -> bool:
        with self._writing() as cursor:
            cursor.execute("SELECT to_regclass('log_filling') IS NOT NULL")
            return cursor.fetchall() == [(True,)]

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


def _last(cursor: PgCursor) -> int:
    cursor.execute(_LAST)
    last: int = cursor.fetchall()[0][0]
    return last
