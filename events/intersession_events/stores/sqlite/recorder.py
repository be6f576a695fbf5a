"""The eventsourcing library's SQLite recorders of a log: one that reads and can be followed, one that writes as well.

Named in the library's environment as `APPLICATION_RECORDER_TOPIC`; nothing of the library is changed. All rows of events
go in by `_insert_events`, and come out by `select_events` and `select_notifications`, which read as the library's own do,
on connections of ours and without a transaction round a single statement.
"""

import sqlite3
import threading
from collections.abc import Sequence
from functools import partial
from itertools import starmap
from typing import Final, Protocol, cast
from uuid import UUID

import msgspec
from eventsourcing.persistence import (
    ApplicationRecorder,
    IntegrityError,
    Notification,
    StoredEvent,
    Subscription,
)
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteCursor, SQLiteDatastore

from intersession_events.errors import StoreUnavailable
from intersession_events.log import SqlValue
from intersession_events.stores.file import Presence
from intersession_events.stores.library import Frontier, LogSubscription
from intersession_events.stores.sqlite.blocking import Transact
from intersession_events.stores.sqlite.connections import LogDatastore
from intersession_events.stores.sqlite.failures import attempt, is_input_output, is_of_the_store
from intersession_events.stores.sqlite.follower import Follower
from intersession_events.stores.sqlite.group_commit import GroupCommit, Work
from intersession_events.stores.sqlite.readers import MemoryReaders, Readers, event_rows, rows


class BatchObserver(Protocol):
    """Whoever has a say in each transaction."""

    def put(self, stored_events: Sequence[StoredEvent]) -> Sequence[int]:
        """Append events of the library's event store and wait; see `GroupCommitRecorder.insert_events`."""
        ...

    def begin(self, cursor: SQLiteCursor) -> None:
        """Look, before anything is written, whether it may be. An error fails the batch."""
        ...

    def finish(self, cursor: SQLiteCursor, written: Sequence[Work], *, carefully: bool) -> None:
        """Add to the transaction, last of all. An error has it tried again, `carefully`; then it fails the batch."""
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


Row = tuple[int, str, int, str, bytes]
"""Position, stream, version, topic and state, as they lie in the table."""

COLUMNS: Final = "SELECT rowid, originator_id, originator_version, topic, state FROM stored_events "
"""How each statement begins that reads a `Row`."""


class StoredRow(msgspec.Struct, frozen=True, gc=False):
    """A row with the fields of the library's `Notification`: made in a sixth of the time that its dataclass takes."""

    id: int
    originator_id: str
    originator_version: int
    topic: str
    state: bytes


def notification_of(row: Row) -> Notification:
    """Return a row as the library has it."""
    return cast("Notification", StoredRow(*row))


class ReadingRecorder(SQLiteApplicationRecorder):
    """Reads the events of a log on connections of its own, which never wait for the writer, and can be subscribed to."""

    def __init__(self, datastore: SQLiteDatastore, events_table_name: str = "stored_events") -> None:
        super().__init__(datastore, events_table_name)
        self.readers: Readers = MemoryReaders(cast("LogDatastore", datastore).only_connection)
        """Set by whoever opens a file."""
        self.frontier: Frontier | None = None
        """How far the log has got, where that is known: the writer's. A reader makes one when it is followed."""
        self._follower: Follower | None = None
        self._following = threading.Lock()

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[Notification]:
        """Return rows of a stream with `gt < version <= lte`, unproven, each with its position."""
        statement = COLUMNS + "WHERE originator_id=? "
        parameters: list[SqlValue] = [cast("str", originator_id)]
        if gt is not None:
            statement += "AND originator_version>? "
            parameters.append(gt)
        if lte is not None:
            statement += "AND originator_version<=? "
            parameters.append(lte)
        statement += f"ORDER BY originator_version {'DESC' if desc else 'ASC'} LIMIT ?"
        parameters.append(-1 if limit is None else limit)
        return cast(
            "list[Notification]", list(starmap(StoredRow, event_rows(self.readers, statement, parameters)))
        )

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Return rows of the whole log by position, unproven."""
        statement = COLUMNS + f"WHERE rowid{'>=' if inclusive_of_start else '>'}? AND rowid<=? "
        parameters: list[SqlValue] = [-_ALL if start is None else start, _ALL if stop is None else stop]
        if topics:
            statement += f"AND topic IN ({', '.join('?' * len(topics))}) "
            parameters += topics
        statement += "ORDER BY rowid LIMIT ?"
        found = event_rows(self.readers, statement, (*parameters, limit))
        return cast("list[Notification]", list(starmap(StoredRow, found)))

    def max_notification_id(self) -> int | None:  # type: ignore[override]  # None for an empty log, as the library's tests want
        """Return the position of the last event; None if there is none."""
        last: int | None = rows(self.readers, "SELECT MAX(rowid) FROM stored_events")[0][0]
        return last

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """Return a subscription to all events behind a position."""
        with self._following:
            if self.frontier is None:
                frontier = self.frontier = Frontier(0)
                self._follower = Follower(
                    self.readers, lambda: frontier.advance(self.max_notification_id() or 0)
                )
        return LogSubscription(self, self.frontier, gt, topics)

    def insert_events(self, stored_events: Sequence[StoredEvent], **_: object) -> Sequence[int]:
        """Refuse: only the writer's recorder takes events.

        Raises:
            StoreUnavailable: always.
        """
        raise StoreUnavailable(
            f"{len(stored_events)} events were not taken: the log is open for reading only"
        )

    def close(self) -> None:
        """Stop following, and let subscriptions end."""
        with self._following:
            if self._follower is not None:
                self._follower.close()
                self._follower = None
        if self.frontier is not None:
            self.frontier.close()


class GroupCommitRecorder(ReadingRecorder):
    """Writes the work of many callers in one transaction with one sync; an error fails only the work it comes from."""

    def __init__(self, datastore: SQLiteDatastore, events_table_name: str = "stored_events") -> None:
        super().__init__(datastore, events_table_name)
        self.insert_events_statement = f"INSERT INTO {events_table_name} (rowid, originator_id, originator_version, topic, state) VALUES (?, ?, ?, ?, ?)"  # noqa: S608 - the name is ours
        self.commits = GroupCommit(self._commit)
        self.observer: BatchObserver = _Nobody(self)
        """The writer, which sets itself before it submits anything: the library's factory knows nothing of it."""
        self._queued: list[StoredEvent] = []
        """Rows of the transaction that goes on, to be inserted together."""
        self._given = 0
        """The last position that was given, in the transaction that goes on."""
        self.presence: Presence | None = None
        """The files that must still be there when a commit is acknowledged; None for a log in memory."""
        self._broken: Exception | None = None
        """Why nothing may be written any more, until the log is opened again."""

    def construct_create_table_statements(self) -> list[str]:
        """Return the table: positions that are never given twice, in a column of the name the library reads."""
        columns = (
            "rowid INTEGER PRIMARY KEY AUTOINCREMENT CHECK (rowid > 0)",
            "originator_id TEXT NOT NULL",
            "originator_version INTEGER NOT NULL",
            "topic TEXT NOT NULL",
            "state BLOB NOT NULL",
            "UNIQUE (originator_id, originator_version)",
        )
        return [f"CREATE TABLE IF NOT EXISTS {self.events_table_name} ({', '.join(columns)})"]

    def submit(self, work: Work, *, patient: bool = False) -> None:
        """Queue any work for the next transaction, `patient` work for that of other work; never blocks.

        Raises:
            StoreBusy: too many wait already.
            StoreUnavailable: the store is closed, or its device failed and it must be opened again.
        """
        self._check_whole()
        self.commits.submit(work, patient=patient)

    def insert_events(self, stored_events: Sequence[StoredEvent], **_: object) -> Sequence[int]:
        """Append sealed or pending events and wait until they are durable; return their positions.

        Raises:
            IntegrityError: a stream was not at the version that an event expects (`EventStore.put` asks for that).
            StoreUnavailable: the store could not take them.
        """
        return list(self.observer.put(stored_events))

    def queue(self, stored_events: Sequence[StoredEvent]) -> Sequence[int]:
        """Give events the next positions, inside a transaction; they are inserted with those of others by `flush`."""
        first = self._given + 1
        self._given += len(stored_events)
        self._queued += stored_events
        return range(first, self._given + 1)

    def insert(self, stored_events: Sequence[StoredEvent], cursor: SQLiteCursor) -> Sequence[int]:
        """Insert events as they are, inside a transaction."""
        return self._insert_events(cursor, stored_events)

    def flush(self, cursor: SQLiteCursor) -> None:
        """Insert what was queued: whoever reads events inside the transaction asks for it first."""
        if self._queued:
            queued, self._queued = self._queued, []
            self._insert_events(cursor, queued, first=self._given - len(queued) + 1)

    def _insert_events(
        self, c: SQLiteCursor, stored_events: Sequence[StoredEvent], *, first: int = 0, **_: object
    ) -> Sequence[int]:
        """Insert rows, the only place where that happens. `first` is the first one's position; 0: the next."""
        first = first or _last_given(c) + 1
        positions = range(first, first + len(stored_events))
        c.executemany(
            self.insert_events_statement,
            [
                (position, event.originator_id, event.originator_version, event.topic, event.state)
                for position, event in zip(positions, stored_events, strict=True)
            ],
        )
        return positions

    def close(self) -> None:
        """Finish what waits, and take nothing more."""
        self.commits.close()
        super().close()

    def _check_whole(self) -> None:
        if self._broken is not None:
            # A new error for each: one object would gather a traceback with every raise.
            raise StoreUnavailable(f"{self._broken}; open the log again to write") from self._broken

    def _commit(self, batch: Sequence[Work]) -> None:
        failed: dict[Work, Exception] = {}
        try:
            self._check_whole()  # what waited when it broke must not be written either
            try:
                self._transact(batch, failed, isolated=batch[0].alone)
            except _OneFailed:
                self.observer.undone()
                self._transact(batch, failed, isolated=True)
            self._check_present()
        except Exception as error:  # noqa: BLE001 - whatever it is, everybody who waits must hear of it
            self.observer.undone()
            if self._broken is None and is_input_output(error):
                self._broken = _without_frames(StoreUnavailable(f"the device failed ({error})"), error)
            self._read_back(batch, failed, error)
        written = [work for work in batch if work not in failed]
        if written:
            self.observer.committed(written)
        for work in batch:
            work.done(failed.get(work))
        if written:
            self.observer.acknowledged(written)

    def _check_present(self) -> None:
        """Make sure, after a commit, that it went into the files which the next start will find."""
        if self.presence is not None:
            try:
                self.presence.check()
            except StoreUnavailable as gone:
                self._broken = _without_frames(gone, gone.__cause__)
                raise

    def _transact(self, batch: Sequence[Work], failed: dict[Work, Exception], *, isolated: bool) -> None:
        with self.datastore.transaction(commit=True) as cursor:
            self.observer.begin(cursor)
            self._queued, self._given = [], _last_given(cursor)
            for work in batch:
                if not isolated:
                    # A savepoint each would cost more than it saves: nearly all batches go through whole.
                    try:
                        work.write(cursor)
                    except Exception as error:
                        if is_of_the_store(error):
                            raise
                        raise _OneFailed from error
                else:
                    before = self._given
                    if (refusal := attempt(cursor, partial(self._write_alone, cursor, work))) is not None:
                        failed[work] = refusal
                        self._queued, self._given = [], before
                        self.observer.undone()
                        work.undo()
            try:
                self.flush(cursor)
                written = [work for work in batch if work not in failed]
                self.observer.finish(cursor, written, carefully=isolated)
            except Exception as error:
                if isolated or is_of_the_store(error):
                    raise
                raise _OneFailed from error

    def _write_alone(self, cursor: SQLiteCursor, work: Work) -> None:
        work.write(cursor)
        self.flush(cursor)

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


class _Nobody:
    """Stands in for a writer: events are inserted as they are, as by the library's own recorder."""

    def __init__(self, recorder: GroupCommitRecorder) -> None:
        self._recorder = recorder

    def put(self, stored_events: Sequence[StoredEvent]) -> Sequence[int]:
        work = Transact(partial(self._recorder.insert, stored_events), lambda: None)
        self._recorder.submit(work)
        try:
            return work.result(_PUT_S)
        except sqlite3.IntegrityError as error:
            raise IntegrityError(error) from error

    def begin(self, cursor: SQLiteCursor) -> None:
        pass

    def finish(self, cursor: SQLiteCursor, written: Sequence[Work], *, carefully: bool) -> None:
        pass

    def committed(self, written: Sequence[Work]) -> None:
        pass

    def acknowledged(self, written: Sequence[Work]) -> None:
        pass

    def undone(self) -> None:
        pass


def _without_frames(error: Exception, cause: BaseException | None) -> Exception:
    """Return an error to be kept: frames would keep what they had at hand."""
    error.__cause__ = None if cause is None else cause.with_traceback(None)
    return error.with_traceback(None)


def _last_given(cursor: SQLiteCursor) -> int:
    """Return the last position that was ever given, also to a row that somebody took away since."""
    cursor.execute("SELECT seq FROM sqlite_sequence WHERE name='stored_events'")
    row = cursor.fetchone()
    return 0 if row is None else int(row[0])


class _OneFailed(Exception):
    """A piece of work failed, or what was added to it: the batch is rolled back, and each tried under a savepoint of its own."""


_ALL: Final = 2**63 - 1
_PUT_S: Final = 30.0
