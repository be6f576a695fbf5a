"""Read-only connections, with as few round trips as possible, since each costs a network delay.

A transaction begins with the first statement that it is for, and nobody waits for the answer to its end.
"""

import select
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

import psycopg
from psycopg import Connection
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow
from psycopg_pool import PoolTimeout

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.log.sql import Question, Row, SqlValue
from intersession_events.stores.folding.fold import ClearRow
from intersession_events.stores.postgres.dialect import translated
from intersession_events.stores.postgres.wire import Answer, Pipeline

IDLE_S: Final = 600.0
"""A connection that nobody has asked for so long is closed."""
_KEPT: Final = 4
"""The most connections that stay open while the answer to their last statement is on its way."""
_BEGIN: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_END: Final = b"ROLLBACK"
_IN_TRANSACTION: Final = frozenset({TransactionStatus.INTRANS, TransactionStatus.INERROR})


class _Free(NamedTuple):
    """An idle connection, and since when. The answer to its last statement may still be on its way."""

    connection: Connection[TupleRow]
    since: float


class Readers:
    """Lends read-only connections up to a limit, in the order of the requests: the one that was returned last comes first."""

    def __init__(self, connect: Callable[[], Connection[TupleRow]], *, size: int, timeout: float) -> None:
        """Make connections by `connect`. A wait of more than `timeout` seconds is refused."""
        self.timeout = timeout
        self._connect = connect
        self._size = size
        self._free: list[_Free] = []
        self._lent = 0
        self._waiting = deque[threading.Event]()
        self._changing = threading.Lock()
        self._closed = False
        self.clear: ClearRow | None = None
        """Returns a row with what is encrypted in clear; None where nothing is."""

    @property
    def waiting(self) -> int:
        """How many callers wait for a free connection."""
        return len(self._waiting)

    @contextmanager
    def connection(self) -> Generator[Connection[TupleRow]]:
        """Lend a connection for a block, outside of any transaction.

        Raises:
            StoreUnavailable: the log is closed.
            PoolTimeout: all are lent.
            OperationalError: the server can't be reached.
        """
        self._take_turn()
        connection: Connection[TupleRow] | None = None
        try:
            connection = self._kept() or self._connect()
            yield connection
        finally:
            self._take_back(connection)

    def query(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Return all rows of a portable reading statement."""
        return self.each([(statement, parameters)])[0]

    def each(self, questions: Sequence[Question]) -> list[list[Row]]:
        """Return the rows of several statements, sent at once; each sees the log as it is when it runs."""
        for last_try in (False, True):
            with self.connection() as connection:
                try:
                    return Reading(connection, clear=self.clear).apart(questions)
                except psycopg.OperationalError:
                    if last_try or not connection.broken:
                        raise
            # The server was started anew: the connections that were kept are all dead.
            self.forget()
        raise AssertionError

    @contextmanager
    def moment(self) -> Generator["Reading"]:
        """Lend a way to query the log as of the first statement, for a block."""
        with self.connection() as connection:
            yield Reading(connection, clear=self.clear)

    def keep(self, connection: Connection[TupleRow]) -> None:
        """Lend from now on one more connection, which the caller has made like these."""
        with self._changing:
            self._lent += 1
        self._take_back(connection)

    def forget(self) -> None:
        """Close the idle connections."""
        with self._changing:
            dead, self._free = self._free, []
        for one in dead:
            one.connection.close()

    def close(self) -> None:
        """Close all connections, at once or when they are returned."""
        with self._changing:
            self._closed = True
            self._lent += len(self._waiting)  # each gives back the place that it is woken with
            for turn in self._waiting:
                turn.set()
            self._waiting.clear()
        self.forget()

    def _take_turn(self) -> None:
        with self._changing:
            if self._closed:
                raise StoreUnavailable("the log is closed")
            if self._lent < self._size:
                self._lent += 1
                return
            turn = threading.Event()
            self._waiting.append(turn)
        came = False
        try:
            came = turn.wait(self.timeout)
        finally:
            if not came:
                self._leave(turn)
        if not came:
            raise PoolTimeout(
                f"all {self._size} are lent, {self.waiting} more wait, and none came free within {self.timeout} seconds"
            )
        if self._closed:
            self._give_turn()
            raise StoreUnavailable("the log is closed")

    def _leave(self, turn: threading.Event) -> None:
        """Wait for a place no longer; one that has come meanwhile is given on."""
        with self._changing:
            is_waiting = turn in self._waiting
            if is_waiting:
                self._waiting.remove(turn)
        if not is_waiting:
            self._give_turn()

    def _give_turn(self) -> None:
        """Give a connection's place to the caller that has waited longest: a new one could take it first."""
        with self._changing:
            if self._waiting and self._lent <= self._size:
                self._waiting.popleft().set()
            else:
                self._lent -= 1

    def _kept(self) -> Connection[TupleRow] | None:
        """Return an idle connection; None to open another one. One with an answer on its way is used only in need."""
        while True:
            with self._changing:
                # The one that came back last first.
                at = next((at for at in reversed(range(len(self._free))) if _is_here(self._free[at])), None)
                if at is None:
                    if len(self._free) < _KEPT and self._lent + len(self._free) <= self._size:
                        return None
                    at = 0
                connection = self._free.pop(at).connection
            if _is_ready(connection, self.timeout):
                return connection
            connection.close()

    def _take_back(self, connection: Connection[TupleRow] | None) -> None:
        with suppress(psycopg.Error):
            if connection is not None and connection.info.transaction_status in _IN_TRANSACTION:
                # psycopg would wait for the answer, and have the server forget all that was prepared.
                connection.pgconn.send_query(_END)
                connection.pgconn.flush()
        late: list[Connection[TupleRow]] = []
        now = time.monotonic()
        with self._changing:
            if connection is not None:
                if self._closed or not _is_sound(connection):
                    late.append(connection)
                else:
                    self._free.append(_Free(connection, now))
            while self._free and now - self._free[0].since > IDLE_S:
                late.append(self._free.pop(0).connection)
        self._give_turn()
        for one in late:
            one.close()


class Reading:
    """Queries in one transaction, which begins with the first of them."""

    def __init__(
        self, connection: Connection[TupleRow], *, settle: bytes | None = None, clear: ClearRow | None = None
    ) -> None:
        """Ask on a connection. A new one is settled with the first question by a statement; that stays if it ends by a COMMIT."""
        self._pipeline = Pipeline(connection, clear)
        self._settle = settle
        self._begun = False

    def __call__(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Return all rows of a portable reading statement."""
        return self.together([(statement, parameters)])[0]

    def together(self, questions: Sequence[Question]) -> list[list[Row]]:
        """Return the rows of several statements, sent at once."""
        if not self._begun:
            self._pipeline.send_once(_BEGIN)
            if self._settle is not None:
                self._pipeline.send_once(self._settle)
            self._begun = True
        return self.apart(questions)

    def apart(self, questions: Sequence[Question]) -> list[list[Row]]:
        """Return the rows of statements that need not see the same state."""
        if not questions:
            return []
        answers: list[Answer] = []
        try:
            for statement, parameters in questions:
                ours = translated(statement)
                answers.append(self._pipeline.send(ours.statement, ours.arranged(parameters)))
            self._pipeline.wait()
        except BaseException:
            with suppress(psycopg.Error):
                self._pipeline.leave()
            raise
        return [self._pipeline.rows(answer) for answer in answers]


def _is_sound(connection: Connection[TupleRow]) -> bool:
    """Return whether a connection is out of any transaction, or will be with the answer that is on its way."""
    status = connection.info.transaction_status
    return not connection.closed and status in {TransactionStatus.IDLE, TransactionStatus.ACTIVE}


def _is_here(one: _Free) -> bool:
    """Return whether nothing of a connection is on its way to us any more, or it is lost."""
    to = one.connection.pgconn
    try:
        to.consume_input()
        return not to.is_busy()
    except psycopg.Error:
        return True


def _is_ready(connection: Connection[TupleRow], timeout: float) -> bool:
    """Take the answer that is on its way, if one is; return whether the connection is out of any transaction."""
    to = connection.pgconn
    try:
        while connection.info.transaction_status == TransactionStatus.ACTIVE:
            while to.is_busy():
                looking = select.poll()
                looking.register(to.socket, select.POLLIN)
                if not looking.poll(timeout * 1000):
                    return False
                to.consume_input()
            to.get_result()
    except psycopg.Error:
        return False
    return connection.info.transaction_status == TransactionStatus.IDLE
