"""The eventsourcing library's SQLite recorder with group commit and gapless positions, for the writer of a log.

Named in the library's environment as `APPLICATION_RECORDER_TOPIC`; nothing of the library is changed.
"""

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteCursor, SQLiteDatastore

from intersession_events.errors import StoreUnavailable
from intersession_events.stores.file import Presence
from intersession_events.stores.sqlite.failures import attempt, is_input_output, is_of_the_store
from intersession_events.stores.sqlite.group_commit import GroupCommit, Work


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
    """Writes the work of many callers in one transaction with one sync; an error fails only the work it comes from."""

    def __init__(self, datastore: SQLiteDatastore, events_table_name: str = "stored_events") -> None:
        super().__init__(datastore, events_table_name)
        self.insert_events_statement = f"INSERT INTO {events_table_name} (originator_id, originator_version, topic, state) VALUES (?, ?, ?, ?)"  # noqa: S608 - the name is ours
        self.commits = GroupCommit(self._commit)
        self.observer: BatchObserver
        """The writer, which sets itself before it submits anything: the library's factory knows nothing of it."""
        self.presence: Presence | None = None
        """The files that must still be there when a commit is acknowledged; None for a log in memory."""
        self._broken: Exception | None = None
        """Why nothing may be written any more, until the log is opened again."""

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

    def submit(self, work: Work, *, patient: bool = False) -> None:
        """Queue any work for the next transaction, `patient` work for that of other work; never blocks.

        Raises:
            StoreBusy: too many wait already.
            StoreUnavailable: the store is closed, or its device failed and it must be opened again.
        """
        self._check_whole()
        self.commits.submit(work, patient=patient)

    def insert(self, cursor: SQLiteCursor, rows: Sequence[tuple[str, int, str, bytes]]) -> list[int]:
        """Insert rows inside a transaction and return their positions."""
        positions: list[int] = []
        for row in rows:
            cursor.execute(self.insert_events_statement, row)
            positions.append(cursor.lastrowid)
        return positions

    def close(self) -> None:
        """Finish what waits, and take nothing more."""
        self.commits.close()

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
            for work in batch:
                if not isolated:
                    # A savepoint each would cost more than it saves: nearly all batches go through whole.
                    try:
                        work.write(cursor)
                    except Exception as error:
                        if is_of_the_store(error):
                            raise
                        raise _OneFailed from error
                elif (refusal := attempt(cursor, partial(work.write, cursor))) is not None:
                    failed[work] = refusal
            self.observer.finish(cursor, [work for work in batch if work not in failed])

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


def _without_frames(error: Exception, cause: BaseException | None) -> Exception:
    """Return an error to be kept: frames would keep what they had at hand."""
    error.__cause__ = None if cause is None else cause.with_traceback(None)
    return error.with_traceback(None)


class _OneFailed(Exception):
    """A piece of work failed: the batch is rolled back, and each tried under a savepoint of its own."""
