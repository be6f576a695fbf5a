"""Calls of the queue's functions, on connections of their own: each statement is a transaction, and notifications are listened for."""

import threading
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg import Connection, sql
from psycopg.rows import TupleRow

from intersession_events.basics.errors import LogError, StoreUnavailable, WorkRefused, WriterSuperseded
from intersession_events.log.sql import Row
from intersession_events.log.work_queue import CallId
from intersession_events.stores.postgres.address import Address
from intersession_events.stores.postgres.connections import settle
from intersession_events.stores.postgres.cursor import OTHER_EPOCH
from intersession_events.stores.postgres.failures import PostgresFailures
from intersession_events.stores.postgres.queue.statements import REFUSED
from intersession_events.stores.postgres.readers import Readers

LOOK_S: Final = 1.0
"""How often is looked beside notifications: these are lost with their connection."""
_POLL_S: Final = 0.2
"""How often is looked without them."""
_STOP_S: Final = 0.1
_CONNECTIONS: Final = 8
_PATIENCE_S: Final = 5.0


class Asking:
    """Calls functions of a queue. They are made so that a call which is repeated does no harm."""

    def __init__(self, address: Address, channel: str) -> None:
        """Prepare connections to a log's schema; `hear` listens on a channel."""
        self.address = address
        self.is_closed = False
        self._failures = PostgresFailures(address)
        self._connections = Readers(self._connect, size=_CONNECTIONS, timeout=_PATIENCE_S)
        self._channel = channel
        self._listening = threading.Lock()
        self._listener: Connection[TupleRow] | None = None

    def rows(self, statement: str, *parameters: Any, epoch: int = 0) -> list[Row]:  # what a function takes
        """Return the rows of a statement, which is a transaction.

        Raises:
            WorkRefused: a worker may not call it so.
            WriterSuperseded: another writer than that of this epoch has the log.
            StoreUnavailable: the server can't be reached, or refuses.
        """
        failure: LogError
        try:
            return self._connections.query(statement, parameters)
        except psycopg.Error as error:
            if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
                self._connections.forget()  # the primary is another server now
            failure = self._typed(error, epoch)
        except LogError:
            raise
        except Exception as error:
            if not self._failures.is_known(error) and not isinstance(error, psycopg.Error):
                raise
            failure = self._failures.log_error(error)
        raise failure

    def hear(self, timeout: float) -> bool:
        """Wait for a notification, for `timeout` seconds at most and not for long; return whether there was one."""
        timeout = min(timeout, LOOK_S if self.address.notifies else _POLL_S)
        until = time.monotonic() + timeout
        if not self._listening.acquire(timeout=max(timeout, 0)):
            return False  # another caller listens, and looks
        try:
            if self.address.notifies:
                return self._heard(until)
        except psycopg.Error:
            self._stop_listening()
        finally:
            self._listening.release()
        while not self.is_closed and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _STOP_S))
        return False

    def close(self) -> None:
        """Close the connections, at once or when their callers are done."""
        self.is_closed = True
        self._connections.close()
        if self._listening.acquire(blocking=False):
            try:
                self._stop_listening()
            finally:
                self._listening.release()

    def _heard(self, until: float) -> bool:
        is_new = self._listener is None
        listener = self._listener or self._listen()
        try:
            while not self.is_closed:
                left = until - time.monotonic()
                # What came before anybody listened is looked for.
                if is_new or any(
                    True for _ in listener.notifies(timeout=max(0, min(left, _STOP_S)), stop_after=1)
                ):
                    return True
                if left <= 0:
                    return False
            return False
        finally:
            if self.is_closed:
                self._stop_listening()

    def _listen(self) -> Connection[TupleRow]:
        connection = psycopg.connect(self.address.conninfo, autocommit=True)
        try:
            connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        except BaseException:
            connection.close()
            raise
        self._listener = connection
        return connection

    def _stop_listening(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(psycopg.Error):
                listener.close()

    def _connect(self) -> Connection[TupleRow]:
        connection = psycopg.connect(self.address.conninfo, autocommit=True)
        try:
            settle(connection, self.address.schema, writes=True)
        except BaseException:
            connection.close()
            raise
        return connection

    def _typed(self, error: psycopg.Error, epoch: int) -> LogError:
        said = error.diag.message_primary or ""
        if error.sqlstate == OTHER_EPOCH:
            return WriterSuperseded(epoch, int(said or 0))
        if error.sqlstate == REFUSED:
            return WorkRefused(said)
        if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedFunction):
            return StoreUnavailable(
                f"{self.address.shown} has no queue of calls: its owner makes that when it opens the log with this version"
            )
        return self._failures.log_error(error)


def columns_of(calls: Collection[CallId]) -> tuple[list[str], list[str], list[int]]:
    """Return calls as functions take them."""
    return [call.kind for call in calls], [call.id for call in calls], [call.attempt for call in calls]
