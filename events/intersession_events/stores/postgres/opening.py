"""Opens a schema for the one writer of a log, or looks whether there is one to be read."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

import psycopg
from psycopg import Connection

from intersession_events.errors import LogError, NoSuchStore, NotALog, StoreUnavailable
from intersession_events.log import SHORT_FROM, Lineage, Row, SqlValue
from intersession_events.stores.database import Cursor, typed
from intersession_events.stores.portable import Holder, Identity, Opened, identity_of, recent_in
from intersession_events.stores.postgres.address import Address, address_of
from intersession_events.stores.postgres.application import WriterApplication
from intersession_events.stores.postgres.connections import PgCursor, settle
from intersession_events.stores.postgres.dialect import translated
from intersession_events.stores.postgres.failures import PostgresFailures
from intersession_events.stores.postgres.lease import Lease, holder_in, take
from intersession_events.stores.postgres.tables import create, make_functions
from intersession_events.stores.postgres.views import problems_of_log

T = TypeVar("T")

OLDEST: Final = 140_000

_LOGGER: Final = logging.getLogger("intersession.store")


@dataclass(frozen=True, kw_only=True)
class OpenedSchema(Opened):
    """What the writer of a schema has once it may write."""

    app: WriterApplication
    lease: Lease
    keeps_views: bool

    def check(self, cursor: Cursor) -> bool:
        """Return whether somebody else has written into a view. The epoch is looked at by each transaction itself."""
        if not self.keeps_views:
            return False
        own = cast("PgCursor", cursor)
        own.begin()
        return own.touched

    def erased(self) -> None:
        """Do nothing: what the server replaced is there until its next VACUUM."""

    def announce(self, gateway: str | None) -> None:
        """Say where this writer's gateway is, for commands in other processes."""
        self.lease.tell(gateway)

    def close(self) -> None:
        """Finish what waits to be written, and give up the lease last."""
        self.recorder.close()
        self.lease.release()
        self.app.close()


def open_for_writing(
    settings: Mapping[str, str],
    address: Address,
    *,
    clock: Callable[[], int],
    new_log_id: Callable[[], str],
    threads: bool,
    keeps_views: bool,
) -> OpenedSchema:
    """Take the lease, make or check the log, and begin a new epoch.

    Raises:
        StoreLocked: another process is the writer.
        NotALog: there are other tables in the schema.
        LogTooNew: a newer version wrote it.
        NoSuchStore: the server is none that a log can lie on.
        StoreUnavailable: the server can't be reached, or refuses.
    """
    known = inspect(address)
    if known is not None:
        known.check_writable(address.shown)
    app = WriterApplication(settings)
    try:
        with typed(app.reading.failures), app.datastore.writing(None) as cursor:
            _check_primary(cursor, address)
            # Two that open a new log at once: the second one finds what the first has made.
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (f"intersession {address.schema}",)
            )
            found = cursor.execute("SELECT to_regclass('log_identity') IS NOT NULL").fetchone()
            if found is not None and not found[0]:
                create(cursor, address.schema, log_id=new_log_id(), now_ms=clock())
            epoch = take(cursor, address.shown)
            make_functions(cursor, address.schema)
            log_id, head = _begun(cursor)
            recent = recent_in(cursor)
        app.chained.lineage = Lineage(log_id) if known is None else known.lineage
        app.chained.writes_short = known is None or known.format >= SHORT_FROM
        app.commits.epoch = epoch
        lease = Lease(app.datastore, epoch, threads=threads)
    except BaseException:
        app.close()
        raise
    return OpenedSchema(
        log_id=log_id,
        epoch=epoch,
        head=head,
        recent=recent,
        app=app,
        lease=lease,
        keeps_views=keeps_views,
    )


def inspect(address: Address, *, unfinished: bool = False) -> Identity | None:
    """Return whose log a schema is, without writing to it; None if there is nothing yet.

    With `unfinished` a log is taken as well that is still moved here from another store.

    Raises:
        NoSuchStore: the server is none that a log can lie on.
        NotALog: there are other tables in the schema.
        StoreUnavailable: the server can't be reached, or refuses.
    """
    return _asked(address, lambda connection: _looked_at(connection, address, unfinished=unfinished))


def writer_at(url: str) -> Holder | None:
    """Return who writes a log now; None if nobody does, or there is no log.

    Raises:
        NoSuchStore: the server is none that a log can lie on, or the URL is none.
        StoreUnavailable: the server can't be reached, or refuses.
    """
    address = address_of(url)

    def look(connection: Connection[Any]) -> Holder | None:  # as below
        settle(connection, address.schema, writes=False)
        there = connection.execute("SELECT to_regclass('log_writer') IS NOT NULL").fetchone()
        if there is None or not there[0]:
            return None
        return holder_in(lambda statement: connection.execute(statement.encode()).fetchall())

    return _asked(address, look)


def _asked(address: Address, look: Callable[[Connection[Any]], T]) -> T:  # rows of any shape
    # Nothing of psycopg's is raised from here: its errors may hold what it was given, and that is secret.
    failure: LogError | None = None
    try:
        with closing(psycopg.connect(address.conninfo, autocommit=True)) as connection:
            _check_server(connection, address)
            _check_pooler(connection, address)
            return look(connection)
    except psycopg.ProgrammingError as error:
        failure = NoSuchStore(address.shown, address.said(error))
    except psycopg.Error as error:
        failure = PostgresFailures(address).log_error(error)
    raise failure


def _looked_at(
    connection: Connection[Any],  # rows of any shape
    address: Address,
    *,
    unfinished: bool,
) -> Identity | None:
    settle(connection, address.schema, writes=False)
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def query(statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        cursor = connection.cursor(binary=True)
        ours = translated(statement)
        return cursor.execute(ours.statement, ours.arranged(parameters)).fetchall()

    ours, filling, others = query(
        "SELECT to_regclass('log_identity') IS NOT NULL, to_regclass('log_filling') IS NOT NULL, "
        "EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = ? AND tablename IN ('stored_events', 'log_head'))",
        (address.schema,),
    )[0]
    if not ours:
        if others:
            raise NotALog(
                f"{address.shown} has other tables, and nothing was written there; name another schema"
            )
        return None
    if filling and not unfinished:
        raise NotALog(
            f"{address.shown} is not whole: a log is moved there. If nobody is at it, run `intersession migrate` again, "
            "which goes on where it ended"
        )
    found = query("SELECT log_id, format, epoch FROM log_identity")
    if len(found) != 1:
        raise NotALog(
            f"{address.shown} has {len(found)} identities instead of one; nothing was written to it"
        )
    topics = {topic for (topic,) in query("SELECT topic FROM log_topics")}
    return identity_of(found[0], topics, query, [*problems_of_log(query)])


def _check_server(connection: Connection[Any], address: Address) -> None:  # as above
    row = connection.execute("SELECT version()").fetchone()
    says = str(row[0] if row else "")
    if "CockroachDB" in says:
        raise NoSuchStore(
            address.shown,
            "it is CockroachDB, which has no LISTEN and whose advisory locks lock nothing; a log needs PostgreSQL",
        )
    if connection.info.server_version < OLDEST:
        raise NoSuchStore(
            address.shown, f"it is {says.split(' on ', maxsplit=1)[0]}, a log needs PostgreSQL 14 or later"
        )
    if not says.startswith("PostgreSQL"):
        _LOGGER.warning(
            "%s is %s: nobody has tried a log on that", address.shown, says.split(" on ", maxsplit=1)[0]
        )


def _check_pooler(connection: Connection[Any], address: Address) -> None:  # as above
    """Make sure that a connection stays one: what is set for it is no longer there, or another's, where a pooler lends it."""
    pid = connection.info.backend_pid
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    if row == (pid,):
        return
    mark = f"{os.getpid()} {pid} {id(connection)}"
    connection.execute("SELECT set_config('intersession.mark', %s, false)", (mark,))
    try:
        # The connection that was lent last is lent first.
        with closing(psycopg.connect(address.conninfo, autocommit=True)) as another:
            found = another.execute("SELECT current_setting('intersession.mark', true)").fetchone()
    finally:
        connection.execute("SELECT set_config('intersession.mark', '', false)")
    if found == (mark,):
        raise NoSuchStore(
            address.shown,
            "a pooler is before it that lends a connection for one transaction; a log needs one that stays its own "
            "(PgBouncer: pool_mode=session), or the server itself",
        )


def _check_primary(cursor: PgCursor, address: Address) -> None:
    if cursor.execute("SELECT pg_is_in_recovery()").fetchall() == [(True,)]:
        raise StoreUnavailable(
            f"{address.shown} is a standby, which can only be read; name the primary, or both of them with "
            "target_session_attrs=read-write"
        )


def _begun(cursor: Cursor) -> tuple[str, int]:
    cursor.execute("SELECT log_id, (SELECT position FROM log_head) FROM log_identity")
    log_id, head = cursor.fetchone()
    return log_id, head
