"""The library's datastore with our connections: those of the writer, of which one is ready, and some that only read."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, NamedTuple
from weakref import WeakSet

import psycopg
from eventsourcing.postgres import ConnectionPool, PostgresDatastore
from psycopg import Connection, sql
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, TupleRow

from intersession_events.basics.errors import LogRewound, WriterSuperseded
from intersession_events.stores.hosts.table import Table
from intersession_events.stores.postgres.address import Address
from intersession_events.stores.postgres.cursor import PgCursor
from intersession_events.stores.postgres.failures import PostgresFailures
from intersession_events.stores.postgres.readers import Readers
from intersession_events.stores.postgres.wire import adapt

URL: Final = "POSTGRES_URL"
"""The setting of the library's environment that names the log, as a URL."""

WRITES: Final = "intersession.writes"
"""A setting of the writer's connections, by which the triggers of views know it."""

WRITERS: Final = 6
"""The most connections that write: the writer's one, its lease's, one that looks back, and those of views that follow the log."""
READERS: Final = 16
KEPT_S: Final = 60.0
"""The connection that writes is given back to the pool now and then."""
PATIENCE_S: Final = 5.0
"""After a longer wait for a connection, the caller is told that the store is busy."""
IDLE_MS: Final = 10_000
"""The server gives up a transaction whose client says nothing for so long: a paused writer keeps nobody waiting."""


_ELSEWHERE: Final = (LogRewound, WriterSuperseded, psycopg.errors.ReadOnlySqlTransaction)
"""What says that a connection leads to another server than the primary, perhaps since names or addresses have moved meanwhile."""


class _IdleConnection(NamedTuple):
    """A connection of the pool's that is at hand for the next transaction, and until when: the pool renews its own."""

    connection: Connection[DictRow]
    until: float


class LogDatastore(PostgresDatastore):
    """Connections to the schema of one log: for its writer, and read-only ones."""

    def __init__(self, address: Address) -> None:
        super().__init__("", "", "", "", "", originator_id_type="text", schema=address.schema)
        self.address = address
        self._made: WeakSet[Connection[DictRow]] = WeakSet()
        """Those that write and may be lent: none of a server that was left."""
        self.pool = self._pool(address)
        self.readers = Readers(self._reader, size=READERS, timeout=PATIENCE_S)
        self._keeping = threading.Lock()
        self._kept: _IdleConnection | None = None
        self._is_closed = False

    def register_type_adapters(self) -> None:
        """Do nothing: no composite type is used."""

    @contextmanager
    def writing(self, epoch: int | None) -> Generator[PgCursor]:
        """Run a transaction round a block; it fails if the log has another epoch."""
        taken = self._take()
        try:
            cursor = PgCursor(taken.connection, epoch, clear=self.readers.clear)
            try:
                yield cursor
                if not cursor.is_over:
                    cursor.commit()
            except BaseException as error:
                cursor.rollback()
                if isinstance(error, _ELSEWHERE):
                    self._leave()
                raise
        finally:
            self._give_back(taken)

    @property
    def hosts(self) -> Table:
        """The hosts beside the writer of the log."""
        failures = PostgresFailures(self.address)
        return Table(partial(self.writing, None), self.readers.query, failures)

    def check(self) -> None:
        """Replace connections that were lost while idle."""
        self._let_go()
        self.pool.check()

    def close(self) -> None:
        """Close every connection, at once or when it is returned."""
        with suppress(AttributeError):  # the library closes also what could not be made
            self.readers.close()
            self._is_closed = True
            self._let_go()
        super().close()

    def _take(self) -> "_IdleConnection":
        """Return the connection that is at hand, else one of the pool's, which takes a tenth of an append to lend it."""
        with self._keeping:
            kept, self._kept = self._kept, None
        if kept is not None:
            if time.monotonic() < kept.until:
                return kept
            self.pool.putconn(kept.connection)
        self.pool.open()
        while (connection := self.pool.getconn()) not in self._made:
            connection.close()
            self.pool.putconn(connection)
        return _IdleConnection(connection, time.monotonic() + KEPT_S)

    def _leave(self) -> None:
        """Lend no connection again that was made up to now: all would stay open for as long as that server is up."""
        with self._keeping:
            self._made = WeakSet()
        self._let_go()
        self.readers.forget()

    def _give_back(self, taken: "_IdleConnection") -> None:
        is_sound = taken.connection.pgconn.transaction_status == TransactionStatus.IDLE
        with self._keeping:
            is_ours = taken.connection in self._made
            if is_sound and is_ours and self._kept is None and not self._is_closed:
                self._kept = taken
                return
        self.pool.putconn(taken.connection)

    def _let_go(self) -> None:
        with self._keeping:
            kept, self._kept = self._kept, None
        if kept is not None:
            self.pool.putconn(kept.connection)

    def _reader(self) -> Connection[TupleRow]:
        connection = psycopg.connect(self.address.conninfo, autocommit=True)
        try:
            settle(connection, self.address.schema, writes=False)
        except BaseException:
            connection.close()
            raise
        return connection

    def _pool(self, address: Address) -> ConnectionPool[Connection[DictRow]]:
        def configure(connection: Connection[DictRow]) -> None:
            connection.execute(settling(connection, address.schema, writes=True, appends=True))
            self._made.add(connection)

        return ConnectionPool(
            address.conninfo,
            connection_class=Connection[DictRow],
            min_size=0,  # made when they are needed: else a second one is begun while the first is on its way
            max_size=WRITERS,
            open=False,
            configure=configure,
            timeout=PATIENCE_S,
            max_waiting=0,
            num_workers=1,
            # Given up soon, and retried for the next caller that needs a connection: else it waits ever longer.
            reconnect_timeout=2.0,
        )


def settle(connection: Connection[Any], schema: str, *, writes: bool) -> None:  # whatever its rows are
    """Set which replicas a commit waits for, and the search path of tables."""
    connection.execute(settling(connection, schema, writes=writes))


def settling(
    connection: Connection[Any],  # the same
    schema: str,
    *,
    writes: bool,
    appends: bool = False,
) -> bytes:
    """Return the statement that tells the server what a connection is for; the connection then knows it."""
    if not connection.autocommit:
        connection.autocommit = True
    connection.prepare_threshold = None  # what is prepared is ours, and is forgotten when we say so
    settings = {
        "search_path": schema,
        "default_transaction_isolation": "read committed",
        "default_transaction_read_only": "off" if writes else "on",
        "idle_in_transaction_session_timeout": str(IDLE_MS),
        "lock_timeout": str(IDLE_MS),
        "standard_conforming_strings": "on",
        "client_encoding": "UTF8",
        # A plan that was made when a table was empty reads all of it for ever after, unless it has to use an index.
        "plan_cache_mode": "force_generic_plan" if appends else "force_custom_plan",
        "enable_seqscan": "off" if appends else "on",
        # Before PostgreSQL 18 a plan that reads a table without an index all the same counts as one of the dearest, and is
        # compiled for each call: that takes a hundred times as long as an append.
        "jit": "off",
        WRITES: "on" if writes else "off",
    }
    adapt(connection)
    calls = sql.SQL(", ").join(
        sql.SQL("set_config({}, {}, false)").format(name, value) for name, value in settings.items()
    )
    # Waiting for a replica as well is the host's setting; without any wait, an acknowledged commit could be lost.
    durable = sql.SQL(
        "CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END"
    )
    return sql.SQL("SELECT {}, {}").format(calls, durable).as_bytes(connection)
