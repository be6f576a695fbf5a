"""The writer's cursor: portable statements in a transaction, which is one call if possible, else few round trips."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, Self

import psycopg
from psycopg import Connection, sql
from psycopg.errors import Diagnostic
from psycopg.rows import TupleRow

from intersession_events.basics.errors import StoreUnavailable, WriterSuperseded
from intersession_events.log.sql import Question, Row, SqlValue
from intersession_events.stores.folding.fold import ClearRow
from intersession_events.stores.postgres.dialect import translated
from intersession_events.stores.postgres.wire import (
    BYTES,
    NUMBER,
    NUMBERS,
    TEXTS,
    TRUTH,
    Answer,
    Pipeline,
    forget,
)

OTHER_EPOCH: Final = "IS001"
OTHER_PLACE: Final = "IS002"
"""What `append_events` raises: another writer has taken over, or has written where these events should be."""

_WAITS_FOR_STANDBY: Final = "SyncRepWaitForLSN"
"""The function of the server's that warns when it waits no longer, and says in the same breath that the commit was made."""

_FORGETTING: Final = ("ROLLBACK", "DROP ", "ALTER ")
"""After these the server is to forget all that was prepared: it may be of tables that are others now."""
_MADE_ONCE: Final = (b"CREATE ", b"DROP ", b"ALTER ", b"DO ")
"""What is not worth preparing."""
_LOOK: Final = "SELECT epoch, EXISTS (SELECT 1 FROM inline_views WHERE position < 0){} FROM log_identity FOR SHARE OF log_identity"
_PLAN_EACH: Final = (
    "set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'on', true)"
)
"""The writer's connections plan each statement once, for ever, and not by how small a table is now. That is for appends: every
other transaction has its statements planned as they come, until it ends."""
_LOOK_ALONE: Final = _LOOK.format(f", {_PLAN_EACH}").encode()
_LOOK_AHEAD: Final = _LOOK.format("").encode()
_PLAN: Final = f"SELECT {_PLAN_EACH}".encode()


class PgCursor:
    """A cursor of a transaction that begins with the first statement that needs one.

    An append on its own is one call and one statement: PostgreSQL makes that a transaction itself, in one round trip.
    """

    # Rows are tuples here, whatever the connection makes of them elsewhere.
    def __init__(
        self,
        connection: Connection[Any],  # the same
        epoch: int | None,
        *,
        clear: ClearRow | None = None,
    ) -> None:
        """Make a cursor for a writer of an epoch, checked as the transaction begins; None checks nothing."""
        self._connection = connection
        self._epoch = epoch
        self._pipeline = Pipeline(connection, clear)
        self._waits = True
        """Whether the answer to each statement is waited for."""
        # What the call of `append_events` takes:
        self._put_off: Sequence[bytes] | None = None
        self._begun = False
        self.is_ahead = False
        """Whether all its statements go out without waiting for the answer to each."""
        self._answer = Answer()
        self._rows: deque[TupleRow] | None = None
        self._looked: Answer | None = None
        self._forgets = False
        self._gave_up_waiting = False
        self.touched = False
        """Whether somebody else has written into a view, as the transaction began; known with the first rows, or at the end."""
        self.in_doubt = False
        """Whether it was to be made durable, and nobody said that it is."""
        self.is_over = False
        """Whether it is durable."""

    @property
    def connection(self) -> object:
        """The connection of the transaction, to tell it from another."""
        return self._connection

    def execute(self, statement: str, parameters: Sequence[SqlValue | list[str]] = (), /) -> Self:
        """Run a portable statement."""
        self.begin()
        self._forgets |= statement.startswith(_FORGETTING)
        ours = translated(statement)
        if ours.statement.startswith(_MADE_ONCE):
            return self._sent(self._pipeline.send_once(ours.statement.replace(b"%%", b"%")))
        return self._sent(self._pipeline.send(ours.statement, ours.arranged(parameters)))

    def executemany(self, statement: str, parameters: Sequence[Sequence[SqlValue]], /) -> Self:
        """Run a portable statement with each of many parameters."""
        self.begin()
        ours = translated(statement)
        for one in parameters:
            self._pipeline.send(ours.statement, ours.arranged(one))
        return self._sent(Answer())

    def together(self, questions: Sequence[Question]) -> list[list[Row]]:
        """Return the rows of several statements, which are sent at once."""
        with self.without_answers():
            answers = [self.later(*question) for question in questions]
            return [answer() for answer in answers]

    def later(self, statement: str, parameters: Sequence[SqlValue] = (), /) -> Callable[[], list[Row]]:
        """Run a portable statement, and return its rows when they are needed: other statements may run before."""
        self.execute(statement, parameters)
        return partial(self._rows_of, self._answer)

    def copy_in(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Put many rows into a table."""
        self.begin()
        self.wait()
        into = sql.SQL("COPY {} ({}) FROM STDIN").format(
            sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        with self._connection.cursor().copy(into) as copy:
            for row in rows:
                copy.write_row(row)

    def fetchone(self) -> TupleRow | None:
        """Return the next row, or None."""
        if self._rows is None:
            self._rows = deque(self._rows_of(self._answer))
        return self._rows.popleft() if self._rows else None

    def fetchall(self) -> list[TupleRow]:
        """Return all rows."""
        rows, self._rows = self._rows, deque()
        return self._rows_of(self._answer) if rows is None else list(rows)

    def run(self, statement: sql.Composed) -> Self:
        """Run a statement of PostgreSQL's own."""
        self.begin()
        return self._sent(self._pipeline.send_once(statement.as_bytes(self._connection)))

    def append(self, parameters: Sequence[bytes]) -> None:
        """Call the function that appends; if it is the whole transaction, commit with it."""
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
        self._pipeline.send(b"BEGIN")
        if self._epoch is not None:
            self._looked = self._pipeline.send(_LOOK_AHEAD if self.is_ahead else _LOOK_ALONE)
        elif not self.is_ahead:
            self._pipeline.send(_PLAN)
        if self._waits:
            self.wait()
        self._call()

    @contextmanager
    def without_answers(self) -> Generator[None]:
        """Send the statements of a block without waiting for each answer; an error is raised later, at the latest at the end of the block."""
        if not self._waits:
            yield
            return
        self._waits = False
        try:
            yield
            self.wait()
        except BaseException:
            with suppress(psycopg.Error):
                self._pipeline.leave()
            raise
        finally:
            self._waits = True

    def send_ahead(self) -> None:
        """Wait for answers only where rows are needed: an error is raised there, or by the commit.

        Only for a writer's transaction that has not begun, and whose statements find what they want by an index.
        """
        self._waits, self.is_ahead = False, True

    def commit(self) -> None:
        """Make it durable.

        Raises:
            StoreUnavailable: somebody ended the wait for a standby: the server has it, and may still lose it.
        """
        self.in_doubt = self._begun or self._put_off is not None
        self._connection.add_notice_handler(self._noticed)
        try:
            self._commit()
        finally:
            self._connection.remove_notice_handler(self._noticed)
        if self._gave_up_waiting:
            raise StoreUnavailable(
                "somebody ended a commit's wait for its standby (pg_cancel_backend): nothing is acknowledged before a standby has it"
            )
        self.in_doubt = False
        self.is_over = True

    def _commit(self) -> None:
        if not self._begun:
            self._call()
        else:
            self._commit_behind()
        if self._forgets:
            self._forget()

    def _noticed(self, said: Diagnostic) -> None:
        # Its words are in the server's language.
        self._gave_up_waiting |= said.source_function == _WAITS_FOR_STANDBY

    def rollback(self) -> None:
        """Undo all of it."""
        with suppress(psycopg.Error):  # a lost connection has rolled back
            self._pipeline.leave()
            if self._begun:
                self._pipeline.send_once(b"ROLLBACK")
                self._forget()

    def _commit_behind(self) -> None:
        last = self._pipeline.send(b"COMMIT")
        try:
            self.wait()
        except psycopg.Error as error:
            # What the server refused before it came to the commit is rolled back.
            if error.sqlstate is not None and self._pipeline.failed_at not in {None, last}:
                self.in_doubt = False
            raise

    def wait(self) -> None:
        """Wait for the answers to all sent statements.

        Raises:
            psycopg.Error: something of it was refused, or the connection is lost.
            WriterSuperseded: another writer has taken over.
        """
        try:
            self._pipeline.wait()
        except psycopg.Error as error:
            if error.sqlstate == OTHER_EPOCH and self._epoch is not None:
                raise WriterSuperseded(self._epoch, int(error.diag.message_primary or 0)) from None
            raise
        if self._looked is not None:
            looked, self._looked = self._looked, None
            rows = self._pipeline.rows(looked)
            epoch, touched = rows[0][:2] if rows else (None, False)
            if epoch != self._epoch:
                raise WriterSuperseded(self._epoch or 0, epoch or 0)
            self.touched = touched

    def _rows_of(self, answer: Answer) -> list[TupleRow]:
        if answer.result is None:
            self.wait()
        return self._pipeline.rows(answer)

    def _call(self) -> None:
        if self._put_off is not None:
            parameters, self._put_off = self._put_off, None
            self._append(parameters)

    def _forget(self) -> None:
        self._pipeline.send_once(b"DEALLOCATE ALL")
        self._pipeline.wait()
        forget(self._connection)
        self._forgets = False

    def _append(self, parameters: Sequence[bytes]) -> None:
        # On its own it is a transaction.
        self._pipeline.send_encoded(_APPEND, _TAKES, parameters, name=_CALLED)
        if self._waits or not self._begun:
            self.wait()

    def _sent(self, answer: Answer) -> Self:
        """Note the statement that was sent last."""
        self._answer, self._rows = answer, None
        if self._waits:
            self.wait()
        return self


_APPEND: Final = b"SELECT append_events(%s, %s, %s, %s, %s, %s, %s, %s)"
_CALLED: Final = b"append_events"
_TAKES: Final = (NUMBER, NUMBER, NUMBER, TEXTS, NUMBERS, TEXTS, BYTES, TRUTH)
