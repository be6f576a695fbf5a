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
from intersession_events.stores.keys.keyring import Keyring
from intersession_events.stores.postgres.address import Address
from intersession_events.stores.postgres.connections import settling
from intersession_events.stores.postgres.cursor import OTHER_EPOCH
from intersession_events.stores.postgres.failures import PostgresFailures
from intersession_events.stores.postgres.queue.statements import HAS_KEYS, REFUSED
from intersession_events.stores.postgres.readers import Readers

LOOK_S: Final = 1.0
"""How often is looked beside notifications: these are lost with their connection."""
_POLL_S: Final = 0.2
"""How often is looked without them."""
_STOP_S: Final = 0.1
_CONNECTIONS: Final = 4
_PATIENCE_S: Final = 5.0


class Asking:
    """Calls functions of a queue. They are made so that a call which is repeated does no harm."""

    def __init__(self, address: Address, channel: str, keys: Keyring | None = None) -> None:
        """Prepare connections to a log's schema; `hear` listens on a channel. With keys, what is encrypted comes in clear."""
        self.address = address
        self.keys = keys
        self.is_closed = False
        self._failures = PostgresFailures(address)
        self._connections = Readers(self._connect, size=_CONNECTIONS, timeout=_PATIENCE_S)
        self._connections.clear = None if keys is None else keys.clear_row
        self._channel = channel
        self._hearing = threading.Condition()
        self._heard = 0
        """Counts notifications."""
        self._is_listened_for = False
        """Whether a caller listens for all."""
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
        """Wait for a notification, for `timeout` seconds at most and not for long; return whether there was one.

        Of several that wait, one listens for all.
        """
        until = time.monotonic() + min(timeout, LOOK_S if self.address.notifies else _POLL_S)
        with self._hearing:
            seen = self._heard
            while self._is_listened_for and self._heard == seen and (left := until - time.monotonic()) > 0:
                self._hearing.wait(left)
            if self._heard != seen or self._is_listened_for:
                return self._heard != seen
            self._is_listened_for = True
        was_heard = False
        try:
            was_heard = self._listens(until)
        finally:
            with self._hearing:
                self._is_listened_for = False
                self._heard += was_heard
                self._hearing.notify_all()
        return was_heard

    def close(self) -> None:
        """Close the connections, at once or when their callers are done."""
        self.is_closed = True
        self._connections.close()
        with self._hearing:
            if not self._is_listened_for:
                self._stop_listening()

    def _listens(self, until: float) -> bool:
        try:
            while not self.is_closed:
                left = until - time.monotonic()
                if self._is_told(max(0.0, min(left, _STOP_S))):
                    return True
                if left <= 0:
                    break
        finally:
            if self.is_closed:
                self._stop_listening()
        return False

    def _is_told(self, seconds: float) -> bool:
        """Wait a moment; return whether there was a notification in it, or may have been one before anybody listened."""
        try:
            if self._listener is not None:
                return any(True for _ in self._listener.notifies(timeout=seconds, stop_after=1))
            if self.address.notifies:
                self._listen()
                return True
        except psycopg.Error:
            self._stop_listening()
        time.sleep(seconds)
        return False

    def _listen(self) -> None:
        connection = psycopg.connect(self.address.conninfo, autocommit=True)
        try:
            connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        except BaseException:
            connection.close()
            raise
        self._listener = connection

    def _stop_listening(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(psycopg.Error):
                listener.close()

    def _connect(self) -> Connection[TupleRow]:
        connection = psycopg.connect(self.address.conninfo, autocommit=True)
        try:
            # Planned once, and by indexes: nearly all rows of a table that was empty a moment ago may be waiting ones.
            connection.execute(settling(connection, self.address.schema, writes=True, appends=True))
            if self.keys is not None:
                connection.execute(HAS_KEYS)
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
                f"{self.address.shown} has no queue of calls, or this role may not look for it: the log's owner makes that when it opens "
                "the log with this version, and docs/howto/postgresql-worker.sql gives a worker its rights"
            )
        if self._failures.is_forbidden(error):
            return StoreUnavailable(
                f"the role of {self.address.shown} lacks a right ({self.address.said(error)}): docs/howto/postgresql-worker.sql gives it "
                "to that of a worker, postgresql-roles.sql to that of a writer"
            )
        return self._failures.log_error(error)


def columns_of(calls: Collection[CallId]) -> tuple[list[str], list[str], list[int]]:
    """Return calls as functions take them."""
    return [call.kind for call in calls], [call.id for call in calls], [call.attempt for call in calls]
