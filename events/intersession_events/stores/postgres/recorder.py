"""The eventsourcing library's PostgreSQL recorders of a log: one that reads and can be followed, one that writes as well.

Named in the library's environment as `APPLICATION_RECORDER_TOPIC`; nothing of the library is changed. Events go in by one call of
`append_events` for each batch. The library's own function (`enable_db_functions`) takes no lock, so its subscribers miss events.
"""

import logging
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from typing import Final, cast

import psycopg
from eventsourcing.persistence import StoredEvent
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore
from psycopg import sql
from psycopg_pool import PoolTimeout

from intersession_events.basics.errors import LogError, NotStorable, StoreUnavailable, WriterSuperseded
from intersession_events.log.sql import Question, Row, SqlValue
from intersession_events.stores.database import Cursor
from intersession_events.stores.database import Row as EventRow
from intersession_events.stores.portable.committing import Committing
from intersession_events.stores.portable.reading.recorder import EVENTS, Following, ReadsLog
from intersession_events.stores.postgres.address import Address
from intersession_events.stores.postgres.connections import LogDatastore
from intersession_events.stores.postgres.cursor import PgCursor
from intersession_events.stores.postgres.failures import PostgresFailures
from intersession_events.stores.postgres.tables import channel_of
from intersession_events.stores.postgres.wire import byte_strings, number, numbers, texts, truth

_ENDS: Final = """SELECT ended.* FROM unnest(?::text[]) AS wanted (stream) CROSS JOIN LATERAL (
    SELECT rowid, originator_id, originator_version, topic, state FROM stored_events
    WHERE originator_id = wanted.stream ORDER BY originator_version DESC LIMIT 1) AS ended"""
"""The last row of each of many streams: one look into the index for each."""

_NEXT_TURN: Final = (
    "UPDATE log_head SET turn = turn + 1 RETURNING position, turn, (SELECT holder FROM log_writer) AS holder"
)
_WHOSE: Final = "SELECT epoch, (SELECT holder FROM log_writer) AS holder FROM log_identity FOR SHARE"

_NOBODY: Final = truth(False)
_LOOKING_BACK_S: Final = 15.0
"""How long a commit with an unknown outcome is looked for, while the server can't be reached."""
_AGAIN_S: Final = 0.2


_UNTOLD_S: Final = 10.0
"""How long commits are not announced after the server's queue was full; followers poll every second."""
_TELLS: Final = "PreCommit_Notify"
"""The function of the server's that refuses a commit for that."""

POLL_S: Final = 0.05
"""How often is looked without NOTIFY."""
NET_S: Final = 1.0
"""How often is looked beside it: a notification is lost with its connection."""
_STOP_S: Final = 0.1

_LOGGER: Final = logging.getLogger("intersession.store")


class Follower(Following):
    """A thread that notices when another process has committed, and calls back to catch up."""

    def __init__(self, address: Address, catch_up: Callable[[], int], given: Callable[[], int]) -> None:
        """Catch up, then follow. `given` returns the last position that the log has given."""
        self._address = address
        self._given = given
        self._is_out = False
        """Whether the log can't be reached, and that was said."""
        self._listens = address.notifies
        self._checks_at = 0.0
        self._is_behind = False
        """Whether the log went back, and that was said."""
        super().__init__(catch_up)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._listens:
                    self._listen()
                else:
                    self._look()
                    self._stopping.wait(POLL_S)
            except psycopg.errors.ReadOnlySqlTransaction:
                self._listens = False  # a standby tells nobody
            except (psycopg.Error, LogError) as error:
                if not self._is_out:
                    self._is_out = True
                    _LOGGER.warning("the log can't be followed now: %s", self._address.said(error))
                self._stopping.wait(NET_S)

    def _listen(self) -> None:
        with closing(psycopg.connect(self._address.conninfo, autocommit=True)) as connection:
            channel = sql.Identifier(channel_of(self._address.schema))
            connection.execute(sql.SQL("LISTEN {}").format(channel))
            self._look()  # what came before anybody listened
            quiet = 0.0
            while not self._stopping.is_set():
                heard = sum(1 for _ in connection.notifies(timeout=_STOP_S, stop_after=1))
                quiet = 0.0 if heard else quiet + _STOP_S
                if heard or quiet >= NET_S:
                    quiet = 0.0
                    self._look()

    def _look(self) -> None:
        reached = self._catch_up()
        self._is_out = False
        now = time.monotonic()
        if now >= self._checks_at:
            self._checks_at = now + NET_S
            self._check(reached)

    def _check(self, reached: int) -> None:
        """Report once that the log lacks events that were read."""
        given = self._given()
        if given < reached and not self._is_behind:
            _LOGGER.warning(
                "the log is at position %d, and was followed up to %d: the server that answers lacks what was read. What it gets up to "
                "there is not heard of; open the log again, and build anew what was made of it",
                given,
                reached,
            )
        self._is_behind = given < reached


class ReadingRecorder(ReadsLog, PostgresApplicationRecorder):
    """Reads the events of a log on connections that can only read, and can be subscribed to."""

    def __init__(self, datastore: PostgresDatastore, *, events_table_name: str = EVENTS) -> None:  # noqa: ARG002 - the library's
        super().__init__(datastore, events_table_name=EVENTS)
        self.store = cast("LogDatastore", datastore)
        self.failures = PostgresFailures(self.store.address)

    def rows(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Return all rows of a reading statement as tuples."""
        return self.store.readers.query(statement, parameters)

    is_remote = True

    def each(self, questions: Iterable[Question]) -> list[list[Row]]:
        """Return the rows of several reading statements, which are sent at once."""
        return self.store.readers.each(list(questions))

    event_rows = rows  # the server keeps no invalid text

    def positions_given(self) -> int:
        """Return the last position that was ever given to an event."""
        given: int = self.rows("SELECT position FROM log_head")[0][0]
        return given

    def follow(self, catch_up: Callable[[], int]) -> Follower:
        """Catch up, and then whenever another process has committed."""
        return Follower(self.store.address, catch_up, self.positions_given)

    def close_readers(self) -> None:
        """Close the reading connections, at once or when they are returned."""
        self.store.readers.close()


class GroupCommitRecorder(Committing, ReadingRecorder):
    """Writes the work of many callers in one transaction with one sync; an error fails only the work it comes from."""

    def __init__(self, datastore: PostgresDatastore, *, events_table_name: str = EVENTS) -> None:
        super().__init__(datastore, events_table_name=events_table_name)
        self.epoch = 0
        """The writer's, set by the log's opening."""
        self.holder = ""
        """Who the writer is. Two that began on servers that did not know of each other may have one epoch."""
        self.wrote_on: object = None
        """The connection of the last transaction. Another one may be to another server: an old primary that is back."""
        self.saw_touch = False
        """Whether the last transaction has seen that somebody else wrote into a view."""
        self._is_elsewhere = False
        self._in_doubt = False
        self._last: int | None = None
        """The last position, as long as it is known: nobody else writes in this epoch."""
        self._last_before: int | None = None
        """The same, as the transaction that goes on began."""
        self._turn = 0
        """What it was when the last position was read: appends of an earlier turn are refused."""
        self._wakes = truth(self.store.address.notifies)
        self._tells_from = 0.0
        """When commits are told again, where the server could tell nobody."""

    @contextmanager
    def transaction(self) -> Generator[Cursor]:
        """Run a writing transaction round a block; it fails if another writer has taken over."""
        self._last_before, self._last = self._last, None
        self._in_doubt = False
        with self.store.writing(self.epoch) as cursor:
            self._is_elsewhere = cursor.connection is not self.wrote_on
            if self._is_elsewhere:
                self._last_before = None
            try:
                yield cursor
                cursor.commit()
            finally:
                self._in_doubt = cursor.in_doubt
            self.wrote_on, self.saw_touch = cursor.connection, cursor.touched
        self._last = self._given

    def is_in_doubt(self) -> bool:
        """Return whether a failed transaction had reached its commit: before that, a lost connection undoes it."""
        return self._in_doubt

    def is_elsewhere(self) -> bool:
        """Return whether the present transaction is on another connection than the last one."""
        return self._is_elsewhere

    @contextmanager
    def looking_back(self) -> Generator[Cursor]:
        """Look at the log once the previous transaction is over, or can no longer begin.

        It has the order of positions locked; and the server may not even have taken it up yet, so it is another's turn first.
        """
        until = time.monotonic() + _LOOKING_BACK_S
        while True:
            try:
                self.store.check()
                with self.store.writing(None) as cursor:
                    cursor.execute(_WHOSE)
                    if cursor.fetchall() == [(self.epoch, self.holder)]:  # else the epoch keeps it out
                        cursor.execute(_NEXT_TURN)
                break
            except psycopg.Error as error:
                if not self.failures.is_of_the_store(error) or time.monotonic() > until:
                    raise
                time.sleep(_AGAIN_S)
        with self.store.writing(None) as cursor:
            yield cursor

    def last_given(self, cursor: Cursor) -> int:
        """Return the last position that was ever given."""
        if self._last_before is not None:
            return self._last_before
        position: int
        cursor.execute(_NEXT_TURN)
        found = cursor.fetchone()
        if found is None:
            raise StoreUnavailable(
                "log_head has no row: somebody emptied it; open the log again, which says what is wrong"
            )
        position, self._turn, holder = found
        if holder != self.holder:
            raise WriterSuperseded(self.epoch, self.epoch)
        return position

    def may_begin_again(self, error: Exception) -> bool:
        """Return whether a connection was lost before the commit, or the server refused the transaction because of its replicas."""
        if isinstance(error, psycopg.Error) and error.diag.source_function == _TELLS:
            self._tell_nobody(error)
            return True
        if (
            self._in_doubt
            or not isinstance(error, psycopg.OperationalError)
            or isinstance(error, PoolTimeout)
        ):
            return False
        self.store.check()
        return True

    def _tell_nobody(self, error: psycopg.Error) -> None:
        self._tells_from = time.monotonic() + _UNTOLD_S
        _LOGGER.warning(
            "the server can tell nobody of commits (%s): a session that listens is in a transaction that is long open, see "
            "pg_stat_activity; followers of the log poll every second meanwhile",
            self.store.address.said(error),
        )
        with suppress(psycopg.Error):
            self.rows("SELECT pg_notification_queue_usage()")  # has the server forget what all have heard

    def ends_of(self, cursor: Cursor, streams: Sequence[str]) -> Sequence[EventRow]:
        """Return the last rows of streams, by one statement."""
        cast("PgCursor", cursor).execute(_ENDS, (list(streams),))
        found: list[EventRow] = cursor.fetchall()
        return found

    def without_answers(self, cursor: Cursor) -> AbstractContextManager[object]:
        """Send the statements of a block one after the other: views mostly write."""
        return cast("PgCursor", cursor).without_answers()

    def send_ahead(self, cursor: Cursor) -> None:
        """Send the statements of a transaction one behind the other: most of them write."""
        cast("PgCursor", cursor).send_ahead()

    def check_nul(self, stream: str) -> None:
        """Refuse a name of a stream that holds a NUL.

        Raises:
            NotStorable: PostgreSQL has none in a text.
        """
        raise NotStorable(f"the stream's name {stream!r} holds a NUL, which PostgreSQL has in no text")

    def insert_rows(self, cursor: Cursor, stored_events: Sequence[StoredEvent], *, first: int) -> None:
        """Append rows from a position on."""
        own = cast("PgCursor", cursor)
        own.append(
            (
                number(self.epoch),
                number(self._turn),
                number(first),
                texts(cast("str", event.originator_id) for event in stored_events),
                numbers(event.originator_version for event in stored_events),
                texts(event.topic for event in stored_events),
                byte_strings([event.state for event in stored_events]),
                self._wakes if time.monotonic() >= self._tells_from else _NOBODY,
            )
        )
