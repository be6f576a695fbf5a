"""The library's datastore with connections of ours: some that only read, and transactions that are one call if they can be."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import Any, Final, Self

import psycopg
from eventsourcing.postgres import ConnectionPool, PostgresDatastore
from psycopg import Connection, sql
from psycopg.rows import DictRow, TupleRow, tuple_row

from intersession_events.errors import WriterSuperseded
from intersession_events.log import Question, Row, SqlValue
from intersession_events.stores.postgres.address import Address
from intersession_events.stores.postgres.dialect import translated
from intersession_events.stores.postgres.readers import Readers
from intersession_events.stores.postgres.wire import (
    BYTES,
    NUMBER,
    NUMBERS,
    TEXTS,
    TRUTH,
    Answer,
    Pipeline,
    adapt,
    forget,
)

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
_MADE_ONCE: Final = (b"CREATE ", b"DROP ", b"ALTER ", b"DO ")
"""What is not worth preparing."""
_FORGOTTEN: Final = count(1)
"""How often that was done: each time by another statement."""
_LOOK: Final = "SELECT epoch, EXISTS (SELECT 1 FROM inline_views WHERE position < 0){} FROM log_identity FOR SHARE OF log_identity"
_BEGIN: Final = f"BEGIN; {_LOOK.format('')}"
_LOOK_ALONE: Final = _LOOK.format("").encode()
_LOOK_AND_PLAN_ONCE: Final = _LOOK.format(
    ", set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)"
).encode()
"""Until the transaction ends, plans are made once for each statement, and not of how small a table is now."""
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
        # Takes the statements once nobody waits for the answer to each.
        self._pipeline: Pipeline | None = None
        self._is_ahead = False
        self._answer = Answer()
        self._rows: deque[TupleRow] | None = None
        self._looked: Answer | None = None
        self._forgets = False
        self.touched = False
        """Whether somebody else has written into a view, as the transaction began; known with the first rows."""
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
        if self._pipeline is not None:
            for one in parameters:
                self._pipeline.send(ours.statement, ours.arranged(one))
        else:
            self._cursor.executemany(ours.statement, [ours.arranged(one) for one in parameters])
        return self

    def together(self, questions: Sequence[Question]) -> list[list[Row]]:
        """Return the rows of several statements, which are sent at once."""
        with self.without_answers():
            answers = [self.later(*question) for question in questions]
            return [answer() for answer in answers]

    def later(self, statement: str, parameters: Sequence[SqlValue] = (), /) -> Callable[[], list[Row]]:
        """Run a portable statement, and return its rows when they are asked for: other statements may be run before."""
        self.execute(statement, parameters)
        if self._pipeline is None:
            rows = self.fetchall()
            return lambda: rows
        return partial(self._rows_of, self._pipeline, self._answer)

    def copy_in(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Put many rows into a table."""
        self.begin()
        self.wait()
        into = sql.SQL("COPY {} ({}) FROM STDIN").format(
            sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        with self._cursor.copy(into) as copy:
            for row in rows:
                copy.write_row(row)

    def fetchone(self) -> TupleRow | None:
        """Return the next row, or None."""
        if self._pipeline is None:
            return self._cursor.fetchone()
        if self._rows is None:
            self._rows = deque(self._rows_of(self._pipeline, self._answer))
        return self._rows.popleft() if self._rows else None

    def fetchall(self) -> list[TupleRow]:
        """Return all rows."""
        if self._pipeline is None:
            return self._cursor.fetchall()
        rows, self._rows = self._rows, deque()
        return self._rows_of(self._pipeline, self._answer) if rows is None else list(rows)

    def run(self, statement: sql.Composed) -> Self:
        """Run a statement of PostgreSQL's own."""
        self.begin()
        if self._pipeline is not None:
            self._pipeline.send_once(statement.as_bytes(self._cursor))
            return self
        try:
            self._cursor.execute(statement)
        except psycopg.Error as error:
            self._refused(error)
            raise
        return self

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
        if self._pipeline is not None:
            self._pipeline.send(b"BEGIN")
            if self._epoch is not None:
                self._looked = self._pipeline.send(_LOOK_AND_PLAN_ONCE if self._is_ahead else _LOOK_ALONE)
        elif self._epoch is None:
            self._cursor.execute("BEGIN")
        else:
            # As text, PostgreSQL takes several statements at once.
            looking = self._cursor.connection.cursor(row_factory=tuple_row)
            looking.execute(_BEGIN)
            looking.nextset()
            self._saw(looking.fetchone())
        self._call()

    @contextmanager
    def without_answers(self) -> Generator[None]:
        """Send the statements of a block without waiting for the answer to each; an error is raised later, or at its end."""
        if self._pipeline is not None:
            yield
            return
        self._pipeline = Pipeline(self._cursor.connection)
        try:
            yield
            self.wait()
        except BaseException:
            with suppress(psycopg.Error):
                self._pipeline.leave()
            raise
        finally:
            self._pipeline = None

    def send_ahead(self) -> None:
        """Wait for no further answer but where rows are asked for: an error is raised with these, or by the commit.

        Only for a writer's transaction that has not begun, and whose statements find what they want by an index.
        """
        self._pipeline, self._is_ahead = Pipeline(self._cursor.connection), True

    def commit(self) -> None:
        """Make it durable."""
        self.in_doubt = self._begun or self._put_off is not None
        if not self._begun:
            self._call()
        elif self._pipeline is None:
            self._cursor.execute("COMMIT")
        else:
            self._commit_behind(self._pipeline)
        if self._forgets:
            self._forget()
        self.in_doubt = False
        self.is_over = True

    def rollback(self) -> None:
        """Leave nothing of it."""
        with suppress(psycopg.Error):  # a lost connection has rolled back
            if self._pipeline is not None:
                self._pipeline.leave()
            if self._begun:
                self._cursor.execute("ROLLBACK")
                self._forget()

    def _commit_behind(self, pipeline: Pipeline) -> None:
        last = pipeline.send(b"COMMIT")
        try:
            self.wait()
        except psycopg.Error as error:
            # What the server refused before it came to the commit is rolled back.
            if error.sqlstate is not None and pipeline.failed_at not in {None, last}:
                self.in_doubt = False
            raise

    def wait(self) -> None:
        """Wait for the answers to all that was sent.

        Raises:
            psycopg.Error: something of it was refused, or the connection is lost.
            WriterSuperseded: another writer has taken over.
        """
        if self._pipeline is None:
            return
        try:
            self._pipeline.wait()
        except psycopg.Error as error:
            self._refused(error)
            raise
        if self._looked is not None:
            looked, self._looked = self._looked, None
            rows = self._pipeline.rows(looked)
            self._saw(rows[0] if rows else None)

    def _rows_of(self, pipeline: Pipeline, answer: Answer) -> list[TupleRow]:
        if answer.result is None:
            self.wait()
        return pipeline.rows(answer)

    def _saw(self, found: TupleRow | None) -> None:
        if found is None or found[0] != self._epoch:
            raise WriterSuperseded(self._epoch or 0, 0 if found is None else found[0])
        self.touched = found[1]

    def _call(self) -> None:
        if self._put_off is not None:
            parameters, self._put_off = self._put_off, None
            self._append(parameters)

    def _forget(self) -> None:
        # psycopg looks at what came of a statement only when that is new to it: else it would go on to name what it had
        # prepared, and the server knows none of it.
        self._cursor.execute(b"DEALLOCATE ALL -- %d" % next(_FORGOTTEN), prepare=False)
        forget(self._cursor.connection)
        self._forgets = False

    def _append(self, parameters: Sequence[bytes]) -> None:
        if self._forgets:
            self.wait()
            self._forget()
        if self._pipeline is not None and self._begun:
            self._pipeline.send_encoded(_APPEND, _TAKES, parameters, name=_CALLED)
            return
        # On its own it is a transaction, or it is a part of that which was begun.
        alone = Pipeline(self._cursor.connection)
        alone.send_encoded(_APPEND, _TAKES, parameters, name=_CALLED)
        try:
            alone.wait()
        except psycopg.Error as error:
            alone.leave()
            self._refused(error)
            raise

    # psycopg adapts what it knows; a statement's parameters are known where the statement is.
    def _execute(self, statement: bytes, parameters: Sequence[Any]) -> Self:
        if self._pipeline is not None:
            if statement.startswith(_MADE_ONCE):
                self._answer = self._pipeline.send_once(statement.replace(b"%%", b"%"))
            else:
                self._answer = self._pipeline.send(statement, parameters)
            self._rows = None
            return self
        try:
            self._cursor.execute(statement, parameters)
        except psycopg.Error as error:
            self._refused(error)
            raise
        return self

    def _refused(self, error: psycopg.Error) -> None:
        if error.sqlstate == OTHER_EPOCH and self._epoch is not None:
            raise WriterSuperseded(self._epoch, int(error.diag.message_primary or 0)) from None


_APPEND: Final = b"SELECT append_events(%s, %s, %s, %s, %s, %s, %s, %s)"
_CALLED: Final = b"append_events"
_TAKES: Final = (NUMBER, NUMBER, NUMBER, TEXTS, NUMBERS, TEXTS, BYTES, TRUTH)


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
    connection.execute(settling(connection, schema, writes=writes))


def settling(connection: Connection[Any], schema: str, *, writes: bool) -> bytes:  # the same
    """Return the statement by which the server is told what a connection is for; the connection itself knows it then."""
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
    return sql.SQL("SELECT {}, {}").format(calls, durable).as_bytes(connection)
