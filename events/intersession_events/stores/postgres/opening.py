"""Opens a schema for the one writer of a log, or checks whether it holds a log to read."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, TypeVar, cast

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from intersession_events.basics.errors import LogError, NoSuchStore, NotALog, StoreUnavailable
from intersession_events.log.lineage import Lineage
from intersession_events.log.sql import Question
from intersession_events.stores.database import Cursor, typed
from intersession_events.stores.keys.keyring import ENCRYPTED_ROWS
from intersession_events.stores.keys.opening import keys_at, keys_to_write, lost
from intersession_events.stores.keys.source import Encryption
from intersession_events.stores.portable.identity import Holder, Identity, identity_of, only_one
from intersession_events.stores.portable.recent import LAST_EVENTS, recent_of
from intersession_events.stores.portable.writer import Opened
from intersession_events.stores.postgres.address import Address, address_of
from intersession_events.stores.postgres.application import WriterApplication
from intersession_events.stores.postgres.connections import settle, settling
from intersession_events.stores.postgres.cursor import PgCursor
from intersession_events.stores.postgres.failures import PostgresFailures
from intersession_events.stores.postgres.lease import Lease, here, holder_in, take
from intersession_events.stores.postgres.readers import Reading
from intersession_events.stores.postgres.tables import (
    FUNCTIONS_OF,
    OWNER_OF,
    PLACES,
    are_all_there,
    asking_of_log,
    create,
    make_functions,
    place_problems,
    table_problems,
)
from intersession_events.stores.postgres.upkeep.vacuum import OF_WORDS, let_go

T = TypeVar("T")

OLDEST: Final = 140_000

_LOGGER: Final = logging.getLogger("intersession.store")

_WARNED_OF: Final[set[tuple[str, str]]] = set()
"""Which servers this process has warned of: a log is looked at some times until it is open."""


@dataclass(frozen=True, kw_only=True)
class OpenedSchema(Opened):
    """The resources of a writer that has opened a schema."""

    app: WriterApplication
    lease: Lease
    keeps_views: bool

    def check(self, cursor: Cursor, whole: str) -> bool:  # noqa: ARG002 - a row that is gone is not written again
        """Return whether another program has written into a view. Each transaction checks the epoch itself.

        A transaction whose statements go out ahead does not wait for that: it tells what the one before has seen.
        """
        if not self.keeps_views:
            return False
        own = cast("PgCursor", cursor)
        own.begin()
        if not own.is_ahead:
            own.wait()
        return own.touched or self.app.commits.saw_touch

    def erased(self) -> None:
        """Do nothing: the server keeps replaced rows until somebody has it let go of them."""

    def let_go(self, *, anew: bool = False) -> Sequence[str]:
        """Have it write the tables anew whose rows have words; large ones only `anew`."""
        return let_go(self.app.datastore.address, OF_WORDS, anew=anew)

    def announce(self, gateway: str | None, advertised: str | None) -> None:
        """Publish the address of this writer's gateway, for commands in other processes, mostly of other machines.

        Raises:
            StoreUnavailable: the server is gone.
        """
        with typed(self.recorder.failures):
            self.lease.tell(advertised or gateway)

    def close(self) -> None:
        """Finish the waiting work, and give up the lease last."""
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
    entropy: Callable[[int], bytes],
    encryption: Encryption | None,
) -> OpenedSchema:
    """Take the lease, make or check the log, and begin a new epoch.

    Raises:
        StoreLocked: another process is the writer.
        NotALog: there are other tables or functions in the schema.
        LogTooNew: a newer version wrote it.
        NoSuchStore: the server can't hold a log.
        StoreUnavailable: the server can't be reached, or refuses.
    """
    app = WriterApplication(settings)
    try:
        known = inspect(address, keep=app.datastore.readers.keep)
        if known is not None:
            known.check_writable(address.shown)
        keys = keys_at(
            app.wrapped,
            encryption,
            writes=True,
            entropy=entropy,
            has_encrypted=lambda: known is not None and bool(app.reading.rows(*ENCRYPTED_ROWS)),
        )
        with typed(app.reading.failures), app.datastore.writing(None) as cursor:
            # Two that open a new log at once: the second one finds what the first has made.
            lock = (f"intersession {address.schema}",)
            ((is_standby,),), _, ((is_there,),) = cursor.together(
                [
                    ("SELECT pg_is_in_recovery()", ()),
                    ("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", lock),
                    ("SELECT to_regclass('log_identity') IS NOT NULL", ()),
                ]
            )
            _check_primary(address, is_standby=is_standby)
            if not is_there:
                create(cursor, address.schema, log_id=new_log_id(), now_ms=clock())
            epoch = take(cursor, address.shown)
            app.encrypt(keys_to_write(app.wrapped, keys, encryption, entropy=entropy))
            ((made_of,),), ((log_id, head),), last = cursor.together([FUNCTIONS_OF, _BEGUN, LAST_EVENTS])
            make_functions(cursor, address.schema, made_of)
            app.commits.wrote_on = cursor.connection
        recent = recent_of(last)
        if recent.sealed and app.chained.keys is None:
            raise lost(app.wrapped)  # noqa: TRY301 - what was opened is closed below
        app.chained.lineage = Lineage(log_id) if known is None else known.lineage
        app.commits.epoch, app.commits.holder = epoch, here()
        lease = Lease(app.datastore, epoch, threads=threads, superseded=app.commits.superseded)
    except BaseException:
        app.close()
        raise
    return OpenedSchema(
        epoch=epoch,
        head=head,
        recent=recent,
        app=app,
        lease=lease,
        keeps_views=keeps_views,
    )


_BEGUN: Final[Question] = ("SELECT log_id, (SELECT position FROM log_head) FROM log_identity", ())


def inspect(
    address: Address,
    *,
    unfinished: bool = False,
    keep: Callable[[Connection[TupleRow]], object] = Connection.close,
) -> Identity | None:
    """Return the identity of the log in a schema, without writing to it; None if there is no log yet.

    With `unfinished` a log is taken as well that is still moved here from another store. `keep` gets the connection that has
    looked: it can only read.

    Raises:
        NoSuchStore: the server can't hold a log.
        NotALog: there are other tables or functions in the schema.
        LogTooNew: it has a later format.
        StoreUnavailable: the server can't be reached, or refuses.
    """
    return _asked(address, lambda connection: _looked_at(connection, address, unfinished=unfinished), keep)


def writer_at(url: str) -> Holder | None:
    """Return the process that writes a log now; None if there is no writer, or no log.

    Raises:
        NoSuchStore: the server can't hold a log, or the URL is invalid.
        StoreUnavailable: the server can't be reached, or refuses.
    """
    address = address_of(url)

    def look(connection: Connection[TupleRow]) -> Holder | None:
        settle(connection, address.schema, writes=False)
        there = connection.execute("SELECT to_regclass('log_writer') IS NOT NULL").fetchone()
        if there is None or not there[0]:
            return None
        return holder_in(lambda statement: connection.execute(statement.encode()).fetchall())

    return _asked(address, look)


def _asked(
    address: Address,
    look: Callable[[Connection[TupleRow]], T],
    keep: Callable[[Connection[TupleRow]], object] = Connection.close,
) -> T:
    # Nothing of psycopg's is raised from here: its errors may hold what it was given, and that is secret.
    failure: LogError | None = None
    try:
        connection = psycopg.connect(address.conninfo, autocommit=True)
        try:
            _check_server(connection, address)
            found = look(connection)
            keep(connection)
        except BaseException:
            connection.close()
            raise
        else:
            return found
    except psycopg.errors.InsufficientPrivilege as error:
        failure = PostgresFailures(address).log_error(error)
    except psycopg.ProgrammingError as error:
        failure = NoSuchStore(address.shown, address.said(error))
    except psycopg.Error as error:
        failure = PostgresFailures(address).log_error(error)
    raise failure


def _looked_at(
    connection: Connection[TupleRow],
    address: Address,
    *,
    unfinished: bool,
) -> Identity | None:
    reading = Reading(connection, settle=settling(connection, address.schema, writes=False))
    ((ours, filling, may_look, other),), *made = reading.together(
        [(_IS_THERE, (address.schema,)), *asking_of_log()]
    )
    if not may_look:
        # Who may not look into a schema finds no table there, and gets no error for it.
        raise psycopg.errors.InsufficientPrivilege(f"permission denied for schema {address.schema}")
    if not ours:
        if other is not None:
            raise NotALog(
                f"{address.shown} has other tables or functions ({other}), and nothing was written there; "
                "name another schema"
            )
        connection.execute("COMMIT")
        return None
    if filling and not unfinished:
        raise NotALog(
            f"{address.shown} is not whole: a log is moved there. If nobody is at it, run `intersession migrate` again, "
            "which goes on where it ended"
        )
    problems = [*table_problems(made)]
    found, topics, owner, *places, _ = reading.together(
        [
            ("SELECT log_id, format, epoch FROM log_identity", ()),
            ("SELECT topic FROM log_topics", ()),
            OWNER_OF,
            *(PLACES if are_all_there(made) else ()),
            # Nobody waits for the end of what only reads: it goes with the last question.
            ("COMMIT", ()),
        ]
    )
    identity = only_one(found, address.shown)
    problems += place_problems(places) if places else ()
    return identity_of(
        identity, {topic for (topic,) in topics}, reading, problems, *(name for (name,) in owner)
    )


# Views are dropped and made by their names, and functions replaced: where somebody else's could be, no log is made. What an
# extension has put into a schema is not anybody's.
_IS_THERE: Final = """SELECT ours, to_regclass('log_filling') IS NOT NULL, coalesce(has_schema_privilege(schema, 'USAGE'), true),
    CASE WHEN NOT ours THEN (
        SELECT min(name) FROM (
            SELECT 'pg_class'::regclass, oid, relname FROM pg_class
                WHERE relnamespace = schema AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
            UNION ALL SELECT 'pg_proc'::regclass, oid, proname FROM pg_proc WHERE pronamespace = schema
        ) AS one (kind, id, name)
        WHERE NOT EXISTS (SELECT 1 FROM pg_depend WHERE classid = kind AND objid = id AND deptype = 'e')
    ) END
FROM (SELECT (SELECT oid FROM pg_namespace WHERE nspname = ?) AS schema, EXISTS (
    SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('log_identity') AND attname = 'log_id'
) AS ours) AS here"""


def _check_server(connection: Connection[TupleRow], address: Address) -> None:
    row = connection.execute("SELECT version(), pg_backend_pid()").fetchone()
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
    untried = says.split(" on ", maxsplit=1)[0]
    if not says.startswith("PostgreSQL") and (address.shown, untried) not in _WARNED_OF:
        _WARNED_OF.add((address.shown, untried))
        _LOGGER.warning("%s is %s: nobody has tried a log on that", address.shown, untried)
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in {None, "UTF8"}:
        raise NoSuchStore(
            address.shown,
            f"its database keeps texts as {encoding}, a log needs UTF8: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
        )
    if row is not None and row[1] != connection.info.backend_pid:
        _check_pooler(connection, address)


def _check_pooler(connection: Connection[TupleRow], address: Address) -> None:
    """Check that a connection stays one client's: behind a transaction pooler its settings are lost, or another's."""
    pid = connection.info.backend_pid
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


def _check_primary(address: Address, *, is_standby: bool) -> None:
    if is_standby:
        raise StoreUnavailable(
            f"{address.shown} is a standby, which can only be read; name the primary, or both of them with "
            "target_session_attrs=read-write"
        )
