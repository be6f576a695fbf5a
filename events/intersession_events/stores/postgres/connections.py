"""The library's datastore with connections of ours: some that only read, and transactions that are one call if they can be."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from typing import Any, Final, Self
from weakref import WeakSet

import psycopg
from eventsourcing.postgres import ConnectionPool, PostgresDatastore
from psycopg import Connection, Cursor, sql
from psycopg.pq import DiagnosticField, ExecStatus, Format, PipelineStatus
from psycopg.pq.abc import PGresult
from psycopg.rows import DictRow, TupleRow, tuple_row

from intersession_events.errors import WriterSuperseded
from intersession_events.log import Question, Row, SqlValue
from intersession_events.stores.postgres.address import Address
from intersession_events.stores.postgres.dialect import translated
from intersession_events.stores.postgres.readers import Readers
from intersession_events.stores.postgres.values import BYTES, NUMBER, NUMBERS, TEXTS, TRUTH, adapt

URL: Final = "POSTGRES_URL"
"""The setting of the library's environment that names the log, as a URL."""

OTHER_EPOCH: Final = "IS001"
OTHER_PLACE: Final = "IS002"
"""What `append_events` raises: another writer has taken over, or has written where these events should be."""

WRITES: Final = "intersession.writes"
"""A setting of the writer's connections, by which the triggers of views know it."""

WRITERS: Final = 6
"""So many connections write at most: the writer's one, its lease's, one that looks back, and those of views that follow the log."""
READERS: Final = 16
PATIENCE_S: Final = 5.0
"""Who waits longer for a connection is told that the store is busy."""
_FORGETTING: Final = ("ROLLBACK", "DROP ", "ALTER ")
"""After these psycopg has the server forget all that was prepared, ours as well, if it had prepared anything itself."""
_FORGOTTEN: Final = count(1)
"""How often that was done: each time by another statement."""
_BEGIN: Final = "BEGIN; SELECT epoch, EXISTS (SELECT 1 FROM inline_views WHERE position < 0) FROM log_identity FOR SHARE OF log_identity"
IDLE_MS: Final = 10_000
"""The server gives up a transaction whose client says nothing for so long: a paused writer keeps nobody waiting."""


class PgCursor:
    """A cursor of a transaction that begins with the first statement which needs one.

    An append on its own is one call and one statement: PostgreSQL makes that a transaction itself, in one round trip.
    """

    # Rows are tuples here, whatever the connection makes of them elsewhere.
    def __init__(self, connection: Connection[Any], epoch: int | None) -> None:
        """Make a cursor for a writer of an epoch, checked as the transaction begins; None checks nothing."""
        self._cursor = connection.cursor(row_factory=tuple_row, binary=True)
        self._epoch = epoch
        # What the call of `append_events` takes:
        self._put_off: Sequence[bytes] | None = None
        self._begun = False
        # Whether nobody waits for what a statement comes to; it holds the pipeline once there is one.
        self._sending: ExitStack | None = None
        self._forgets = False
        self.touched = False
        """Whether somebody else has written into a view, as the transaction began."""
        self.in_doubt = False
        """Whether it was to be made durable, and nobody said that it is."""
        self.is_over = False
        """Whether it is durable."""

    def execute(self, statement: str, parameters: Sequence[SqlValue | list[str]] = (), /) -> Self:
        """Run a portable statement."""
        self.begin()
        self._forgets |= statement.startswith(_FORGETTING)
        ours = translated(statement)
        return self._execute(ours.statement, ours.arranged(parameters))

    def executemany(self, statement: str, parameters: Sequence[Sequence[SqlValue]], /) -> Self:
        """Run a portable statement with each of many parameters."""
        self.begin()
        ours = translated(statement)
        self._send()
        self._cursor.executemany(ours.statement, [ours.arranged(one) for one in parameters])
        return self

    def together(self, questions: Sequence[Question]) -> list[list[Row]]:
        """Return the rows of several statements, which are sent at once."""
        answers: list[Cursor[TupleRow]] = []
        with self.without_answers():
            for statement, parameters in questions:
                self.execute(statement, parameters)
                answers.append(self._cursor)
        return [answer.fetchall() if answer.description else [] for answer in answers]

    def copy_in(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Put many rows into a table."""
        self.begin()
        into = sql.SQL("COPY {} ({}) FROM STDIN").format(
            sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        with self._cursor.copy(into) as copy:
            for row in rows:
                copy.write_row(row)

    def fetchone(self) -> TupleRow | None:
        """Return the next row, or None."""
        return self._cursor.fetchone()

    def fetchall(self) -> list[TupleRow]:
        """Return all rows."""
        return self._cursor.fetchall()

    def run(self, statement: sql.Composed) -> Self:
        """Run a statement of PostgreSQL's own."""
        self.begin()
        return self._execute(statement, None)

    def append(self, parameters: Sequence[bytes]) -> None:
        """Call the function that appends; alone in its transaction, at the end of it."""
        if self._begun or self._put_off is not None:
            self.begin()
            self._append(parameters)
        else:
            self._put_off = parameters

    def begin(self) -> None:
        """Have a transaction."""
        if self._begun:
            return
        self._begun = True
        if self._epoch is None:
            self._send()
            self._cursor.execute("BEGIN")
        else:
            # As text, PostgreSQL takes several statements at once.
            looking = self._cursor.connection.cursor(row_factory=tuple_row)
            looking.execute(_BEGIN)
            looking.nextset()
            found = looking.fetchone()
            if found is None or found[0] != self._epoch:
                raise WriterSuperseded(self._epoch, 0 if found is None else found[0])
            self.touched = found[1]
        self._call()

    @contextmanager
    def without_answers(self) -> Generator[None]:
        """Send the statements of a block without waiting for the answer to each; an error is raised later, or at its end."""
        with ExitStack() as sending:
            self._sending = sending
            try:
                yield
            finally:
                self._sending = None

    def commit(self) -> None:
        """Make it durable."""
        self.in_doubt = self._begun or self._put_off is not None
        if self._begun:
            self._cursor.execute("COMMIT")
            if self._forgets:
                self._forget()
        else:
            self._call()
        self.in_doubt = False
        self.is_over = True

    def rollback(self) -> None:
        """Leave nothing of it."""
        if self._begun:
            with suppress(psycopg.Error):  # a lost connection has rolled back
                self._cursor.execute("ROLLBACK")
                self._forget()

    def _send(self) -> None:
        """Wait for no answer to the next statement, if that is wanted: each has a cursor of its own then."""
        if self._sending is not None:
            connection = self._cursor.connection
            if connection.info.pipeline_status == PipelineStatus.OFF:
                self._sending.enter_context(connection.pipeline())
            self._cursor = connection.cursor(row_factory=tuple_row, binary=True)

    def _call(self) -> None:
        if self._put_off is not None:
            parameters, self._put_off = self._put_off, None
            self._append(parameters)

    def _forget(self) -> None:
        # psycopg looks at what came of a statement only when that is new to it: else it would go on to name what it had
        # prepared, and the server knows none of it.
        self._cursor.execute(b"DEALLOCATE ALL -- %d" % next(_FORGOTTEN), prepare=False)
        _PREPARED.discard(self._cursor.connection)
        self._forgets = False

    def _append(self, parameters: Sequence[bytes]) -> None:
        if self._forgets:
            self._forget()
        try:
            append_events(self._cursor.connection, parameters)
        except psycopg.Error as error:
            self._refused(error)
            raise

    # psycopg adapts what it knows; a statement's parameters are known where the statement is.
    def _execute(self, statement: Any, parameters: Sequence[Any] | None) -> Self:
        self._send()
        try:
            self._cursor.execute(statement, parameters)
        except psycopg.Error as error:
            self._refused(error)
            raise
        return self

    def _refused(self, error: psycopg.Error) -> None:
        if error.sqlstate == OTHER_EPOCH and self._epoch is not None:
            raise WriterSuperseded(self._epoch, int(error.diag.message_primary or 0)) from None


_APPEND: Final = b"SELECT append_events($1, $2, $3, $4, $5, $6, $7, $8)"
_TAKES: Final = (NUMBER, NUMBER, NUMBER, TEXTS, NUMBERS, TEXTS, BYTES, TRUTH)
_NAME: Final = b"append_events"
_PREPARED: Final[WeakSet[Connection[Any]]] = WeakSet()  # of any rows


def append_events(connection: Connection[Any], parameters: Sequence[bytes]) -> None:  # whatever its rows are
    """Call the function that appends, by libpq itself: psycopg's own way takes 0.1 ms of the processor for the arrays alone.

    Raises:
        psycopg.Error: it was refused, or the connection is lost.
    """
    to = connection.pgconn
    if connection not in _PREPARED:
        _check(to.prepare(_NAME, _APPEND, _TAKES))
        _PREPARED.add(connection)
    _check(to.exec_prepared(_NAME, parameters, [Format.BINARY] * len(_TAKES), Format.BINARY))


def _check(result: PGresult) -> None:
    if result.status not in {ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK}:
        if (
            result.error_field(DiagnosticField.SQLSTATE) is None
        ):  # libpq's own words: the server says nothing any more
            raise psycopg.OperationalError(result.get_error_message())
        raise psycopg.errors.error_from_result(result)


class LogDatastore(PostgresDatastore):
    """Connections to the schema of one log: for its writer, and others that can only read."""

    def __init__(self, address: Address) -> None:
        super().__init__("", "", "", "", "", originator_id_type="text", schema=address.schema)
        self.address = address
        self.pool = self._pool(address)
        self.readers = Readers(self._reader, size=READERS, timeout=PATIENCE_S)

    def register_type_adapters(self) -> None:
        """Do nothing: no composite type is used."""

    @contextmanager
    def writing(self, epoch: int | None) -> Generator[PgCursor]:
        """Run a transaction round a block; it fails if the log has another epoch."""
        self.pool.open()
        with self.pool.connection() as connection:
            cursor = PgCursor(connection, epoch)
            try:
                yield cursor
                if not cursor.is_over:
                    cursor.commit()
            except BaseException:
                cursor.rollback()
                raise

    def close(self) -> None:
        """Close every connection, at once or when it comes back."""
        with suppress(AttributeError):  # the library closes also what could not be made
            self.readers.close()
        super().close()

    def _reader(self) -> Connection[TupleRow]:
        connection = psycopg.connect(self.address.conninfo, autocommit=True)
        try:
            settle(connection, self.address.schema, writes=False)
        except BaseException:
            connection.close()
            raise
        return connection

    @staticmethod
    def _pool(address: Address) -> ConnectionPool[Connection[DictRow]]:
        def configure(connection: Connection[DictRow]) -> None:
            settle(connection, address.schema, writes=True)

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
            # Given up soon, and begun anew by whoever needs a connection next: else it waits ever longer.
            reconnect_timeout=2.0,
        )


def settle(connection: Connection[Any], schema: str, *, writes: bool) -> None:  # whatever its rows are
    """Set what an acknowledgement rests on, and where tables are looked for."""
    if not connection.autocommit:
        connection.autocommit = True
    settings = {
        "search_path": schema,
        "default_transaction_isolation": "read committed",
        "default_transaction_read_only": "off" if writes else "on",
        "idle_in_transaction_session_timeout": str(IDLE_MS),
        "lock_timeout": str(IDLE_MS),
        "standard_conforming_strings": "on",
        "client_encoding": "UTF8",
        # A plan that was made when a table was empty reads all of it for ever after.
        "plan_cache_mode": "force_custom_plan",
        WRITES: "on" if writes else "off",
    }
    adapt(connection)
    calls = sql.SQL(", ").join(
        sql.SQL("set_config({}, {}, false)").format(name, value) for name, value in settings.items()
    )
    # Whoever waits for a replica as well has said so; nobody is told of what the server may still lose.
    durable = sql.SQL(
        "CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END"
    )
    connection.execute(sql.SQL("SELECT {}, {}").format(calls, durable))
