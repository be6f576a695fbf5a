"""The half of a recorder that writes a log, for any database: the work of many callers in one transaction with one sync.

All rows of events go in by `insert_rows`. An error fails only the work that it comes from, and a commit of which nobody knows how
it ended is read back.
"""

import logging
import threading
import traceback
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from eventsourcing.persistence import StoredEvent

from intersession_events.basics.errors import LogError, StoreUnavailable, WriterSuperseded
from intersession_events.stores.database import Cursor, Failures, Row, another, attempt
from intersession_events.stores.later import tell
from intersession_events.stores.portable.group_commit import GroupCommit, Work
from intersession_events.stores.portable.reading.recorder import ReadsLog

_LOGGER: Final = logging.getLogger("intersession.store")


class RefusedBatch(NamedTuple):
    """A batch that could not be written as a whole; each piece of its work was tried again alone.

    `error` says which statement or which line refused it, and nothing of what was to be written. `pieces` is how many there were.
    """

    error: str
    pieces: int


OnRefused = Callable[[RefusedBatch], None]
"""Hears of a refused batch, from the writer's thread: it must not block."""


OnSuperseded = Callable[[LogError], None]
"""Hears that another writer has taken the log, from a thread of the store's: it must not block."""


class Refusals:
    """Reports refused batches to a listener, or to the process's log, once for each error."""

    def __init__(self) -> None:
        self._listener: OnRefused = self._log
        self._said: set[str] = set()

    def listen(self, listener: OnRefused) -> None:
        """Report to a listener from now on, in place of the process's log."""
        self._listener = listener

    def note(self, error: BaseException | None, failures: Failures, pieces: int) -> None:
        """Note why a batch was refused. Errors that callers get as typed errors are not reported."""
        if error is None or isinstance(error, LogError):
            return
        said = failures.without_data(error) if failures.is_known(error) else _where(error)
        tell(self._listener, RefusedBatch(said, pieces))

    def _log(self, refused: RefusedBatch) -> None:
        if refused.error not in self._said:
            self._said.add(refused.error)
            _LOGGER.warning(
                "a batch of %d was refused and is written one by one, which is slow: %s. Told once; it is a fault of this software",
                refused.pieces,
                refused.error,
            )


def _where(error: BaseException) -> str:
    """Return the type of a Python error and the line that raised it: its message may hold data that was to be written."""
    frames = traceback.extract_tb(error.__traceback__)
    last = f" in {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{last}"


class BatchObserver:
    """What has a say in each transaction: the writer of a log."""

    def put(self, stored_events: Sequence[StoredEvent]) -> Sequence[int]:
        """Append events of the library's event store and wait; see `Committing.insert_events`."""
        raise NotImplementedError

    def begin(self) -> None:
        """Hear that a transaction begins; it may be a repeated one."""

    def foresee(self, cursor: Cursor, batch: Sequence[Work]) -> None:
        """Check before any write that writing is allowed, and read in one round trip what the work of a batch needs.

        An error fails the batch.
        """

    def finish(self, cursor: Cursor, written: Sequence[Work], *, carefully: bool) -> None:
        """Add to the transaction as the last step. An error has it tried again, `carefully`; a second error fails the batch."""

    def committed(self, written: Sequence[Work]) -> None:
        """Hear that the transaction is durable, before the waiting callers do."""

    def acknowledged(self) -> None:
        """Hear that all waiting callers were told."""

    def undone(self) -> None:
        """Hear that a transaction was rolled back, or may have been: everything read in it is void."""


class Committing(ReadsLog):
    """Writes the work of many callers in one transaction with one sync; an error fails only the work it comes from."""

    # As `ReadsLog` has it.
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commits = GroupCommit(self._commit)
        self.observer: BatchObserver = BatchObserver()
        """The writer, which sets itself before it submits anything: the library's factory knows nothing of it."""
        self.refusals = Refusals()
        """The listener for batches that had to be written piece by piece."""
        self._queued: list[StoredEvent] = []
        """Rows of the transaction that goes on, to be inserted together."""
        self._given = 0
        """The last position that was given, in the transaction that goes on."""
        self._broken: Exception | None = None
        """Why nothing may be written any more, until the log is opened again."""
        self._superseded: LogError | None = None
        """Which writer came after this one, once that was seen."""
        self._on_superseded: list[OnSuperseded] = []
        self._telling = threading.Lock()

    @property
    def over(self) -> Exception | None:
        """Why nothing may be written until the log is opened again; None while writing is possible."""
        return self._broken or self._superseded

    def on_superseded(self, listener: OnSuperseded) -> None:
        """Tell a listener once that another writer has taken the log; at once, if that was seen before."""
        with self._telling:
            if self._superseded is None:
                self._on_superseded.append(listener)
                return
        listener(self._superseded)

    def superseded(self, error: LogError) -> None:
        """Note that another writer has taken the log, and tell the listeners."""
        with self._telling:
            if self._superseded is not None:
                return
            self._superseded = another(error)
        for listener in self._on_superseded:
            tell(listener, self._superseded)

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Cursor]:
        """Run a writing transaction round a block: its reads stay true until it ends."""

    @abstractmethod
    def looking_back(self) -> AbstractContextManager[Cursor]:
        """Look, round a block, at the log once no earlier transaction of this writer is still running."""

    @abstractmethod
    def last_given(self, cursor: Cursor) -> int:
        """Return the last position that was ever assigned, as a transaction begins.

        Raises:
            WriterSuperseded: another writer has taken over.
        """

    @abstractmethod
    def insert_rows(self, cursor: Cursor, stored_events: Sequence[StoredEvent], *, first: int) -> None:
        """Insert rows from a position on: the only place that does so."""

    def is_in_doubt(self) -> bool:
        """Return whether a transaction that failed may have been committed all the same."""
        return True

    def may_begin_again(self, error: Exception) -> bool:  # noqa: ARG002 - for others
        """Return whether nothing of a transaction was stored, and repeating it may succeed."""
        return False

    def is_elsewhere(self) -> bool:
        """Return whether the present transaction may run on another server than the last one."""
        return False

    def ends_of(self, cursor: Cursor, streams: Sequence[str]) -> Sequence[Row] | None:  # noqa: ARG002 - for others
        """Return the last rows of streams; None if reading each when needed is as fast."""
        return None

    def without_answers(self, cursor: Cursor) -> AbstractContextManager[object]:  # noqa: ARG002 - for others
        """Send the statements of a block without waiting for their results, where the database is remote.

        An error of any of them is raised at the next row that is asked for, or as the block ends.
        """
        return nullcontext()

    def send_ahead(self, cursor: Cursor) -> None:
        """Send all statements of a transaction that way.

        An error of any of them is raised at the next row that is asked for, or by the commit, which has not happened then.
        """

    def check_nul(self, stream: str) -> None:
        """Check that the database accepts a stream name that holds a NUL.

        Raises:
            NotStorable: it does not.
        """

    def check_present(self, *, written: bool) -> None:
        """Check, before a commit and after it (`written`), that it goes to where the next start will find it.

        Raises:
            StoreUnavailable: it did not; nothing may be written any more.
        """

    def submit(self, work: Work, *, patient: bool = False) -> None:
        """Queue work for the next transaction; `patient` work joins that of other work. Never blocks.

        Raises:
            StoreBusy: too many wait already.
            StoreUnavailable: the store is closed, or its device failed and it must be opened again.
        """
        if self._broken is not None:
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
        """Assign the next positions to events, inside a transaction; `flush` inserts them with those of others."""
        first = self._given + 1
        self._given += len(stored_events)
        self._queued += stored_events
        return range(first, self._given + 1)

    def flush(self, cursor: Cursor) -> None:
        """Insert the queued rows: must be called before reading events inside the transaction."""
        if self._queued:
            queued, self._queued = self._queued, []
            self.insert_rows(cursor, queued, first=self._given - len(queued) + 1)

    def close(self) -> None:
        """Finish the waiting work, and take no more."""
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
            # A write-ahead log that was cut would be as long as before after the commit.
            self._check_present(written=False)
            try:
                self._transact(batch, failed, isolated=batch[0].alone)
            except _OneFailed as refused:
                self.observer.undone()
                self.refusals.note(refused.__cause__, self.failures, len(batch))
                self._transact(batch, failed, isolated=True)
            except Exception as error:
                if not self.may_begin_again(error):
                    raise
                self.observer.undone()
                self._transact(batch, failed, isolated=batch[0].alone)
            self._check_present(written=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, all waiting callers must hear of it
            self.observer.undone()
            if isinstance(error, WriterSuperseded):
                self.superseded(error)
            if self._broken is None and self.failures.is_final(error):
                self._broken = _without_frames(StoreUnavailable(f"the device failed ({error})"), error)
            self._read_back(batch, failed, error)
        written = [work for work in batch if work not in failed] if failed else batch
        if written:
            self.observer.committed(written)
        for work in batch:
            work.done(failed.get(work))
        if written:
            self.observer.acknowledged()

    def _check_present(self, *, written: bool) -> None:
        try:
            self.check_present(written=written)
        except StoreUnavailable as gone:
            self._broken = _without_frames(gone, gone.__cause__)
            raise

    def _transact(self, batch: Sequence[Work], failed: dict[Work, Exception], *, isolated: bool) -> None:
        try:
            self._write(batch, failed, isolated=isolated)
        except _OneFailed:
            raise
        except Exception as error:
            # A statement that nobody waited for may have been refused as late as by the commit.
            if isolated or self.failures.is_of_the_store(error) or self.is_in_doubt():
                raise
            raise _OneFailed from error

    def _write(self, batch: Sequence[Work], failed: dict[Work, Exception], *, isolated: bool) -> None:
        with self.transaction() as cursor:
            if not isolated:
                self.send_ahead(cursor)
            self.observer.begin()
            self._queued, self._given = [], self.last_given(cursor)
            self.observer.foresee(cursor, batch)
            for work in batch:
                if not isolated:
                    # A savepoint each would cost more than it saves: nearly all batches go through whole.
                    try:
                        work.write(cursor)
                    except Exception as error:
                        if self.failures.is_of_the_store(error):
                            raise
                        raise _OneFailed from error
                else:
                    before = self._given
                    if (
                        refusal := attempt(self.failures, cursor, partial(self._write_alone, cursor, work))
                    ) is not None:
                        failed[work] = refusal
                        self._queued, self._given = [], before
                        self.observer.undone()
                        work.undo()
            try:
                self.flush(cursor)
                written = [work for work in batch if work not in failed] if failed else batch
                self.observer.finish(cursor, written, carefully=isolated)
            except Exception as error:
                if isolated or self.failures.is_of_the_store(error):
                    raise
                raise _OneFailed from error

    def _write_alone(self, cursor: Cursor, work: Work) -> None:
        work.write(cursor)
        self.flush(cursor)

    def _read_back(self, batch: Sequence[Work], failed: dict[Work, Exception], error: Exception) -> None:
        """Find out whose work is in the log after all: a commit may raise and have happened."""
        left = [work for work in batch if work not in failed]
        failed.update(dict.fromkeys(left, error))
        if self._broken is not None or not self.is_in_doubt():
            return
        try:
            with self.looking_back() as cursor:
                for work in left:
                    if work.is_stored(cursor):
                        del failed[work]
        except Exception as unreadable:  # whatever it is, it is then as unknown as before
            unreadable.__context__ = error
            if not (isinstance(unreadable, LogError) or self.failures.is_of_the_store(unreadable)):
                _LOGGER.exception("looking back at a commit must not fail for a reason of our own")


def _without_frames(error: Exception, cause: BaseException | None) -> Exception:
    """Return an error without its frames, which would keep their local values in memory."""
    error.__cause__ = None if cause is None else cause.with_traceback(None)
    return error.with_traceback(None)


class _OneFailed(Exception):
    """A piece of work, or its addition, failed: the batch is rolled back, and each piece tried under a savepoint of its own."""
