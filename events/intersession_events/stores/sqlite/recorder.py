"""The library's SQLite recorder with group commit, gapless positions and a subscription.

Named in the library's environment as `APPLICATION_RECORDER_TOPIC`; nothing of the library is changed.
"""

import sqlite3
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from eventsourcing.persistence import (
    ApplicationRecorder,
    DatabaseError,
    IntegrityError,
    ListenNotifySubscription,
    StoredEvent,
    Subscription,
)
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteCursor, SQLiteDatastore

from intersession_events.errors import StoreUnavailable
from intersession_events.stores.sqlite.failures import is_input_output, is_of_the_store
from intersession_events.stores.sqlite.group_commit import GroupCommit, Work

OnAck = Callable[[Sequence[int] | Exception], None]
"""Hears the positions of the events once they are durable, or why they are not."""

INSERT_TIMEOUT_S: Final = 30.0


class BatchObserver(Protocol):
    """Whoever has a say in each transaction."""

    def begin(self, cursor: SQLiteCursor) -> None:
        """Look, before anything is written, whether it may be. An error fails the batch."""
        ...

    def finish(self, cursor: SQLiteCursor, written: Sequence[Work]) -> None:
        """Add to the transaction, last of all. An error fails the batch."""
        ...

    def committed(self, written: Sequence[Work]) -> None:
        """Hear that the transaction is durable, before those who wait do."""
        ...

    def acknowledged(self, written: Sequence[Work]) -> None:
        """Hear that all who waited were told."""
        ...

    def undone(self) -> None:
        """Hear that a transaction was rolled back, or may have been: what was seen in it is void."""
        ...


class GroupCommitRecorder(SQLiteApplicationRecorder):
    """Inserts of many callers in one transaction with one sync; a conflict fails only whose it is."""

    def __init__(self, datastore: SQLiteDatastore, events_table_name: str = "stored_events") -> None:
        super().__init__(datastore, events_table_name)
        self.insert_events_statement = f"INSERT INTO {events_table_name} (originator_id, originator_version, topic, state) VALUES (?, ?, ?, ?)"  # noqa: S608 - the name is ours
        self.commits = GroupCommit(self._commit)
        self.observer: BatchObserver = _Unobserved()
        self._broken: StoreUnavailable | None = None
        self._subscriptions: weakref.WeakSet[_LogSubscription] = weakref.WeakSet()

    def construct_create_table_statements(self) -> list[str]:
        """Return the table: positions that are never given twice, in a column of the name the library reads."""
        columns = (
            "rowid INTEGER PRIMARY KEY AUTOINCREMENT",
            "originator_id TEXT NOT NULL",
            "originator_version INTEGER NOT NULL",
            "topic TEXT NOT NULL",
            "state BLOB NOT NULL",
            "UNIQUE (originator_id, originator_version)",
        )
        return [f"CREATE TABLE IF NOT EXISTS {self.events_table_name} ({', '.join(columns)})"]

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int]:
        """Insert and wait until it is durable.

        Raises:
            IntegrityError: one of the versions is there already; nothing was inserted.
            StoreUnavailable: the store could not take it.
        """
        told = threading.Event()
        answer: list[Sequence[int] | Exception] = []

        def on_ack(positions: Sequence[int] | Exception) -> None:
            answer.append(positions)
            told.set()

        self.append(stored_events, on_ack, **kwargs)
        while self.commits.by_hand and not told.is_set() and self.commits.step():
            pass
        if not told.wait(INSERT_TIMEOUT_S):
            raise StoreUnavailable(f"not durable after {INSERT_TIMEOUT_S:.0f} s; it may still become so")
        if isinstance(answer[0], Exception):
            raise answer[0]
        return answer[0]

    def append(self, stored_events: Sequence[StoredEvent], on_ack: OnAck, **kwargs: Any) -> None:
        """Queue an insert and return; `on_ack` is called once it is durable, or has failed."""
        self.submit(_Insert(self, stored_events, on_ack, kwargs))

    def submit(self, work: Work, *, patient: bool = False) -> None:
        """Queue any work for the next transaction, `patient` work for that of other work; never blocks.

        Raises:
            StoreBusy: too many wait already.
            StoreUnavailable: the store is closed, or its device failed and it must be opened again.
        """
        if self._broken is not None:
            raise self._broken
        self.commits.submit(work, patient=patient)

    def insert(self, cursor: SQLiteCursor, rows: Sequence[tuple[str, int, str, bytes]]) -> list[int]:
        """Insert rows inside a transaction and return their positions."""
        positions: list[int] = []
        for row in rows:
            cursor.execute(self.insert_events_statement, row)
            positions.append(cursor.lastrowid)
        return positions

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """Follow all events after a position, in order; the library's SQLite recorder can't."""
        subscription = _LogSubscription(self, gt=gt, topics=topics)
        self._subscriptions.add(subscription)
        subscription.notify()
        return subscription

    def close(self) -> None:
        """Finish what waits, and take nothing more."""
        self.commits.close()

    def _commit(self, batch: Sequence[Work]) -> None:
        failed: dict[Work, Exception] = {}
        try:
            try:
                self._transact(batch, failed, isolated=batch[0].alone)
            except _OneFailed:
                self.observer.undone()
                self._transact(batch, failed, isolated=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, everybody who waits must hear of it
            self.observer.undone()
            if is_input_output(error):
                self._broken = StoreUnavailable(f"the device failed ({error}); open the log again to write")
                self._broken.__cause__ = error
            self._read_back(batch, failed, error)
        written = [work for work in batch if work not in failed]
        if written:
            self.observer.committed(written)
        for work in batch:
            work.done(failed.get(work))
        if written:
            self.observer.acknowledged(written)
        for subscription in list(self._subscriptions):
            subscription.notify()

    def _transact(self, batch: Sequence[Work], failed: dict[Work, Exception], *, isolated: bool) -> None:
        with self.datastore.transaction(commit=True) as cursor:
            self.observer.begin(cursor)
            for work in batch:
                if not isolated:
                    # A savepoint each would cost more than it saves: nearly all batches go through whole.
                    try:
                        work.write(cursor)
                    except Exception as error:
                        if is_of_the_store(error):
                            raise
                        raise _OneFailed from error
                elif (refusal := self._write_isolated(cursor, work)) is not None:
                    failed[work] = refusal
            self.observer.finish(cursor, [work for work in batch if work not in failed])

    @staticmethod
    def _write_isolated(cursor: SQLiteCursor, work: Work) -> Exception | None:
        cursor.execute("SAVEPOINT work")
        try:
            work.write(cursor)
        except Exception as error:
            if is_of_the_store(error):
                raise
            cursor.execute("ROLLBACK TO work")
            cursor.execute("RELEASE work")
            return error
        cursor.execute("RELEASE work")
        return None

    def _read_back(self, batch: Sequence[Work], failed: dict[Work, Exception], error: Exception) -> None:
        """Find out whose work is in the file after all: a commit may raise and have happened."""
        for work in batch:
            if work in failed:
                continue
            stored = False
            if self._broken is None:
                try:
                    with self.datastore.transaction(commit=False) as cursor:
                        stored = work.is_stored(cursor)
                except Exception as unreadable:  # noqa: BLE001 - then it is as unknown as before
                    unreadable.__context__ = error
            if not stored:
                failed[work] = error


class _Insert:
    """An insert of the library's own events."""

    alone = False

    def __init__(
        self,
        recorder: GroupCommitRecorder,
        events: Sequence[StoredEvent],
        on_ack: OnAck,
        kwargs: dict[str, Any],
    ) -> None:
        self._recorder = recorder
        self._events = events
        self._on_ack = on_ack
        self._kwargs = kwargs
        self._positions: Sequence[int] = ()

    def write(self, cursor: SQLiteCursor) -> None:
        self._positions = ()
        self._positions = self._recorder._insert_events(cursor, self._events, **self._kwargs) or ()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - the library's hook

    def is_stored(self, cursor: SQLiteCursor) -> bool:
        for event, position in zip(self._events, self._positions, strict=False):
            cursor.execute(
                f"SELECT originator_version, topic, state FROM {self._recorder.events_table_name} WHERE rowid=?",  # noqa: S608 - the name is ours
                (position,),
            )
            row = cursor.fetchone()
            if row is None or tuple(row) != (event.originator_version, event.topic, event.state):
                return False
        return len(self._positions) == len(self._events) > 0

    def done(self, error: Exception | None) -> None:
        self._on_ack(self._positions if error is None else _in_the_librarys_words(error))


def _in_the_librarys_words(error: Exception) -> Exception:
    if not isinstance(error, sqlite3.Error):
        return error
    found = IntegrityError(error) if isinstance(error, sqlite3.IntegrityError) else DatabaseError(error)
    found.__cause__ = error
    return found


class _LogSubscription(ListenNotifySubscription[ApplicationRecorder]):
    """The library's subscription, woken by commits."""

    def notify(self) -> None:
        self._has_been_notified.set()


class _OneFailed(Exception):
    """A piece of work failed: the batch is rolled back, and each tried under a savepoint of its own."""


class _Unobserved:
    def begin(self, cursor: SQLiteCursor) -> None:
        pass

    def finish(self, cursor: SQLiteCursor, written: Sequence[Work]) -> None:
        pass

    def committed(self, written: Sequence[Work]) -> None:
        pass

    def acknowledged(self, written: Sequence[Work]) -> None:
        pass

    def undone(self) -> None:
        pass
