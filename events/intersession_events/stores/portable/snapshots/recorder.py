"""What a recorder of snapshots does in any database: its rows are written with the commits of the log's one writer."""

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final
from uuid import UUID

from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import AggregateRecorder, Mapper, StoredEvent

from intersession_events.basics.errors import CorruptEvent, LogError, NotStorable, StoreUnavailable
from intersession_events.log.row_state import WHOLE
from intersession_events.log.sql import Query, Row, SqlValue
from intersession_events.log.states import EncryptedSnapshot, Snapshot, read_snapshot, stored_snapshot
from intersession_events.log.verifying.encrypted_rows import UNSEEN
from intersession_events.stores.database import Cursor, Failures, of_stream, typed
from intersession_events.stores.library.mapper import ChainedMapper
from intersession_events.stores.portable.group_commit import Work

TABLE: Final = "stored_snapshots"
"""As the library calls it."""

SNAPSHOTS: Final = f"SELECT originator_id, originator_version, topic, state FROM {TABLE} "  # noqa: S608 - the name is the library's
"""How each statement begins that reads rows of snapshots."""
_LOGGER: Final = logging.getLogger("intersession.store")


class KeepsSnapshots(AggregateRecorder):
    """Stores the snapshots of a log's streams. The application sets `rows`, and a log that is open to write `submit`."""

    failures: Failures
    """What the errors of the database mean."""
    rows: Query
    """Reads on a connection that never waits for the writer."""

    # What the library's recorder for the database is given is its own affair.
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.submit: Callable[[OnTheWay], None] | None = None
        self.erasures = 0
        """How many erasures were committed since the log was opened."""
        self._erased: dict[str, int] = {}
        """The streams of them, each with the number of its last one."""

    @abstractmethod
    def is_there(self, query: Query) -> bool:
        """Return whether there is a table of snapshots, by a query."""

    @abstractmethod
    def insert_rows(self, cursor: Cursor, stored_events: Sequence[StoredEvent]) -> None:
        """Write rows over those of the same version, inside a transaction; the table is made if there is none."""

    @abstractmethod
    def drop_table(self, cursor: Cursor) -> None:
        """Leave no row, inside a transaction."""

    @abstractmethod
    def problems(self) -> Iterator[str]:
        """Report a table that is not as the library makes it."""

    def insert_events(self, stored_events: Sequence[StoredEvent], *, as_of: int = 0, **_: object) -> None:
        """Queue snapshots for the next commit. No caller waits for that, and a failure is only logged.

        A state that was folded after a number of erasures (`as_of`) may hold texts that were erased since: then it is not written.

        Raises:
            StoreUnavailable: the log is open for reading only, is closed, or too much waits already.
        """
        if self.submit is None:
            raise StoreUnavailable("no snapshot was taken: the log is open for reading only")
        self.submit(OnTheWay(self.failures, lambda cursor: self._write(cursor, stored_events, as_of)))

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Return the rows of a stream with `gt < version <= lte`, unproven; none if they can't be read."""
        rest, parameters = of_stream(originator_id, gt=gt, lte=lte, desc=desc, limit=limit)
        return [StoredEvent(*row) for row in self._found(SNAPSHOTS + rest, parameters)]

    def every(self, stream: str) -> Sequence[StoredEvent]:
        """Return all rows of a stream, unproven, for a comparison with the events.

        Raises:
            CorruptEvent: they can't be read.
            StoreUnavailable: the store does not answer.
        """
        rest, parameters = of_stream(stream, gt=None, lte=None, desc=False, limit=None)
        return [StoredEvent(*row) for row in self._read(SNAPSHOTS + rest, parameters)]

    def versions(self, stream: str, topic: str) -> list[int]:
        """Return the versions of a stream that have a snapshot of a shape, in order."""
        statement = (
            f"SELECT originator_version FROM {TABLE} "  # noqa: S608 - the name is the library's
            "WHERE originator_id=? AND topic=? ORDER BY originator_version"
        )
        found = self._found(statement, (stream, topic))
        return [version for (version,) in found if isinstance(version, int)]  # others can write here

    def streams(self) -> list[str]:
        """Return the names of the streams that have snapshots, sorted.

        Raises:
            CorruptEvent: they can't be read.
            StoreUnavailable: the store does not answer.
        """
        return [name for name in self._names() if isinstance(name, str)]

    def nameless(self) -> Iterator[str]:
        """Report snapshots whose stream name is not a text: no reader would ever ask for them.

        Raises:
            CorruptEvent: they can't be read.
            StoreUnavailable: the store does not answer.
        """
        for name in self._names():
            if not isinstance(name, str):
                yield f"there are snapshots of {name!r}, which is no name of a stream"

    def _names(self) -> list[object]:
        """Return what stands in the place of streams' names. Others can write here."""
        asked = f"SELECT DISTINCT originator_id FROM {TABLE} ORDER BY originator_id"  # noqa: S608 - the same
        return [name for (name,) in self._read(asked, ())]

    def forget(self, stream: str, version: int, topic: str) -> None:
        """Delete a snapshot with the next commit, and those of its stream that have another shape than `topic`."""
        statement = (
            f"DELETE FROM {TABLE} "  # noqa: S608 - the same
            "WHERE originator_id=? AND (originator_version=? OR topic<>?)"
        )
        if self.submit is not None:
            with suppress(LogError):
                self.submit(
                    OnTheWay(
                        self.failures, lambda cursor: cursor.execute(statement, (stream, version, topic))
                    )
                )

    def erase(self, cursor: Cursor, streams: Sequence[str]) -> None:
        """Delete the snapshots of streams with erased events, inside the erasing transaction.

        They may hold words of what was under way then. So may what was folded before, and is only on its way here.
        """
        self._erased.update(dict.fromkeys(streams, self.erasures + 1))
        if self.is_there(partial(_found, cursor)):
            cursor.executemany(
                f"DELETE FROM {TABLE} WHERE originator_id=?",  # noqa: S608 - the same
                [(stream,) for stream in streams],
            )

    def erased(self) -> None:
        """Hear that an erasure is durable: states folded from now on can't hold its texts."""
        self.erasures += 1

    def clear(self, cursor: Cursor) -> int:
        """Delete all snapshots, inside a transaction; return how many there were."""
        if not self.is_there(partial(_found, cursor)):
            return 0
        cursor.execute(f"SELECT COUNT(*) FROM {TABLE}")  # noqa: S608 - the same
        count: int = cursor.fetchone()[0]
        self.drop_table(cursor)
        return count

    def _write(self, cursor: Cursor, stored_events: Sequence[StoredEvent], as_of: int) -> None:
        fresh = [one for one in stored_events if self._erased.get(str(one.originator_id), 0) <= as_of]
        if fresh:
            self.insert_rows(cursor, fresh)

    def _found(self, statement: str, parameters: Sequence[SqlValue]) -> list[Row]:
        """Return rows, or none: folding a stream needs no snapshot. A failing store is reported when the events are read."""
        try:
            return self._read(statement, parameters)
        except LogError as error:
            _LOGGER.warning("%s", error)
            return []

    def _read(self, statement: str, parameters: Sequence[SqlValue]) -> list[Row]:
        """Return rows; none where no snapshot was ever taken."""
        try:
            return self.rows(statement, parameters)
        except Exception as error:
            if not self.failures.is_known(error):
                raise
            with typed(self.failures):
                if self.failures.is_of_the_store(error) or self.failures.is_forbidden(error):
                    raise
                if not self.is_there(self.rows):
                    return []
            raise CorruptEvent(f"the snapshots can't be read: {error}") from error


class OnTheWay(Work):
    """Work on the table of snapshots that waits for the next commit. If it fails, other work of that commit goes on."""

    def __init__(self, failures: Failures, write: Callable[[Cursor], object]) -> None:
        self._failures = failures
        self._write = write

    def write(self, cursor: Cursor) -> None:
        """Do all of the work, or none."""
        cursor.execute("SAVEPOINT snapshot")
        try:
            self._write(cursor)
        except Exception as error:
            if not self._failures.is_known(error):
                raise
            # A table that somebody altered, or a disk that is full: what must be stored will find out about the disk.
            with suppress(Exception):
                cursor.execute("ROLLBACK TO snapshot")
            _LOGGER.warning("a snapshot was not kept: %s", error)
        cursor.execute("RELEASE snapshot")

    def done(self, error: Exception | None) -> None:
        """Note a failure."""
        if error is not None:
            _LOGGER.debug("a snapshot was not kept: %s", error)


def _found(cursor: Cursor, statement: str, parameters: Sequence[SqlValue]) -> list[Row]:
    cursor.execute(statement, parameters)
    rows: list[Row] = cursor.fetchall()
    return rows


class SnapshotMapper(Mapper[str]):
    """Turns snapshots into stored events of the library and back. It imports nothing: a topic names a shape, not a class."""

    def __init__(self, events: ChainedMapper) -> None:
        super().__init__(events.transcoder)
        self._events = events

    def to_stored_event(self, domain_event: DomainEventProtocol[str]) -> StoredEvent:
        """Return the row of a snapshot.

        Raises:
            NotStorable: it is something else.
        """
        if not isinstance(domain_event, Snapshot):
            raise NotStorable(f"the snapshot store takes snapshots, not {type(domain_event).__name__}")
        keys, state = self._events.keys, stored_snapshot(domain_event, log_id=self._events.log_id)
        return StoredEvent(
            originator_id=domain_event.stream,
            originator_version=domain_event.version,
            topic=domain_event.topic,
            state=state if keys is None else keys.sealed_data(state, domain_event.stream),
        )

    def to_domain_event(self, stored_event: StoredEvent) -> Snapshot:
        """Return the snapshot of a row.

        Raises:
            EncryptedSnapshot: its key is not at hand, or was destroyed.
            CorruptEvent: it was changed.
        """
        keys, state = self._events.keys, stored_event.state
        if type(state) is bytes and state.startswith(WHOLE):
            said = "away" if keys is None else keys.look_whole(state)
            unreadable = EncryptedSnapshot if said in UNSEEN else CorruptEvent
            raise unreadable(f"the snapshot of {stored_event.originator_id!r} can't be read: {said}")
        return read_snapshot(
            log_id=self._events.log_id,
            stream=str(stored_event.originator_id),
            version=stored_event.originator_version,
            topic=stored_event.topic,
            state=stored_event.state,
        )
