"""The log in an SQLite file: one writer, one sync for all that wait, readers on connections of their own."""

import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from intersession_events.errors import ForkedStoreError, ForkFailed, StoreUnavailable
from intersession_events.facts import ForkedFrom, ForkEdit
from intersession_events.forks import Fork, ForkWanted, directory_of, fork_log
from intersession_events.log import (
    Committed,
    InFlight,
    InlineView,
    Lineage,
    Moment,
    OnCommitted,
    OnLoaded,
    OnOutcome,
    Recorded,
    SetAside,
    SqlValue,
    StreamAppend,
    Unavailable,
)
from intersession_events.log import Row as AnyRow
from intersession_events.machine import machine_entropy, random_id, wall_clock_ms
from intersession_events.stores.folding import ViewsBeside, layout_of, made_in
from intersession_events.stores.later import Loader, tell
from intersession_events.stores.library import Frontier
from intersession_events.stores.snapshots import StreamStates
from intersession_events.stores.sqlite.appends import NotTaken
from intersession_events.stores.sqlite.application import LogApplication, SessionLog
from intersession_events.stores.sqlite.connections import MEMORY
from intersession_events.stores.sqlite.event_reader import EventReader
from intersession_events.stores.sqlite.failures import typed
from intersession_events.stores.sqlite.follower import Follower
from intersession_events.stores.sqlite.opening import open_for_writing
from intersession_events.stores.sqlite.readers import FileReaders, rows
from intersession_events.stores.sqlite.recorder import Row
from intersession_events.stores.sqlite.writer import PAGE_TIMEOUT_S, Writer


class SqliteLog:
    """A `Log` in one SQLite file, or in memory (`:memory:`).

    `clock` gives milliseconds, `entropy` that many random bytes, `new_log_id` a UUID for a log that is made.
    `environment` goes to the eventsourcing library, over our own settings of it. With `threads` False nothing
    happens by itself: whoever simulates calls `step` for each batch that is to be written or loaded.

    Views that an older version wrote, or that are not whole, are built anew from the log: for good by a writer that
    opens it; by a reader, beside the log for as long as it is open, once it first asks them. `on_folding` gets how far
    that is, a position and the last one.

    Raises:
        StoreLocked: another process is the writer.
        NotALog: the file is something else, or a copy that lost the log's identity.
        LogTooNew: a newer version wrote it; open it with `read_only`.
        NoSuchStore: it is to be read only, and is not there.
        StoreUnavailable: the file can't be opened.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        inline: Sequence[InlineView] = (),
        read_only: bool = False,
        clock: Callable[[], int] = wall_clock_ms,
        entropy: Callable[[int], bytes] = machine_entropy,
        new_log_id: Callable[[], str] = random_id,
        threads: bool = True,
        environment: Mapping[str, str] | None = None,
        on_folding: Callable[[int, int], None] | None = None,
    ) -> None:
        # The real path, so that two names of one file share one lock.
        self.path: Final = MEMORY if os.fspath(path) == MEMORY else os.path.realpath(path)
        self._process = os.getpid()
        self._closed = False
        self._is_served = False
        """Whether a simulation does our work while somebody waits."""
        self._following = threading.Lock()
        self._follower: Follower | None = None
        self._loader = Loader(threads=threads, check=self._check_process)
        self._writer: Writer | None = None
        self._beside: ViewsBeside | None = None
        self._clock, self._entropy, self._new_log_id = clock, entropy, new_log_id
        if read_only:
            self._open_reader(inline, on_folding)
            return
        opened = open_for_writing(
            self.path, clock=clock, new_log_id=new_log_id, environment=environment or {}
        )
        self._log_id, self._epoch = opened.log_id, opened.epoch
        recorder = opened.recorder
        if self.path != MEMORY:
            recorder.readers = FileReaders(self.path, alone=False)
        self._readers = recorder.readers
        self._events = EventReader(recorder, opened.mapper)
        self._frontier = recorder.frontier = Frontier(opened.head)
        self._application: LogApplication = opened.app
        self._states = self._states_of(opened.app)
        try:
            self._writer = Writer(
                opened,
                inline=inline,
                entropy=entropy,
                events=self._events,
                frontier=self._frontier,
                by_hand=not threads,
                on_folding=on_folding,
            )
        except BaseException:
            opened.close()
            self._readers.close()
            raise

    @property
    def log_id(self) -> str:
        """The log's identity, a UUID."""
        return self._log_id

    @property
    def epoch(self) -> int:
        """The writer's epoch; 0 for a reader."""
        return self._epoch

    @property
    def forked(self) -> ForkedFrom | None:
        """Of which log it began as a part, and how; None for a log that is no fork (FORK-2)."""
        return self.lineage.forked

    @property
    def log_ids(self) -> tuple[str, ...]:
        """The ids of the logs that its events were written in, its own first: ids were derived from each of them."""
        return (self._log_id, *(fork.log_id for fork in self.lineage.forks))

    @property
    def lineage(self) -> Lineage:
        """Which log each event was written in: this one, or one that it was forked from."""
        return self._application.chained.lineage

    @property
    def states(self) -> StreamStates:
        """The states of the log's streams, folded from their last snapshots on."""
        return self._states

    @property
    def application(self) -> LogApplication:
        """The log as an application of the eventsourcing library: its notification log, event store and mapper."""
        return self._application

    def append(
        self,
        batch: Sequence[StreamAppend],
        on_outcome: OnOutcome,
        *,
        patient: bool = False,
        behind: InFlight | None = None,
    ) -> InFlight:
        """Queue events of one or several streams for one atomic append; never blocks.

        A `patient` one waits up to 10 ms for another append whose sync it can share. One that is `behind` another is
        recorded only if that one is, after it; else it is a `Conflict` on a stream of that one.

        `on_outcome` is called once: from the writer's thread after the sync, or at once, in the calling thread, if
        the append is refused (busy, closed, forked, read only, not storable).
        """
        try:
            writer = self._the_writer()
        except StoreUnavailable as error:
            tell(on_outcome, Unavailable(error=error))
            return NotTaken(batch[0].stream if batch else "")
        return writer.append(batch, on_outcome, patient=patient, behind=behind)

    def append_now(self, batch: Sequence[StreamAppend], *, timeout: float = 30.0) -> Committed:
        """Append and wait: the blocking form, for doors.

        Raises:
            AppendConflict: a stream was not at its expected version.
            NotStorable: an event can't be stored; no retry helps.
            StoreUnavailable: the store could not take it in time.
        """
        return self._the_writer().append_now(batch, timeout)

    def stream(
        self,
        stream: str,
        *,
        after: int = 0,
        to: int | None = None,
        backwards: bool = False,
        limit: int | None = None,
    ) -> Sequence[Recorded]:
        """Read the events of a stream with `after < version <= to`; every row is proven.

        Raises:
            CorruptEvent: one of them was changed or is missing.
            UnknownTopic: one of them is of a newer version.
        """
        self._check_process()
        return self._events.stream(stream, after=after, to=to, backwards=backwards, limit=limit)

    def load(self, stream: str, on_loaded: OnLoaded, *, after: int = 0) -> None:
        """Read a stream behind a version, off a reader's thread; never blocks."""
        self._loader.later(partial(self._events.stream, stream, after=after), on_loaded)

    def all(self, *, after: int = 0, to: int | None = None, limit: int | None = None) -> Iterator[Recorded]:
        """Read all events with `after < position <= to`, in order; every row is proven.

        Raises:
            CorruptEvent: a row was changed; its `position` says where to read on.
            UnknownTopic: a row is of a newer version; the same.
        """
        self._check_process()
        return self._events.all(after=after, to=to, limit=limit)

    def streams(self, prefix: str) -> Sequence[str]:
        """Return the names of the streams that begin with a prefix, sorted."""
        self._check_process()
        return self._events.streams(prefix)

    def rows(self, *, after: int | None = 0, limit: int = 1000) -> Sequence[Row]:
        """Return rows after a position (None: all there are) as they lie in the table, unproven: for verification."""
        self._check_process()
        return self._events.rows(after=after, limit=limit)

    def with_id(self, beginning: str, *, limit: int) -> Sequence[Recorded]:
        """Return the first events whose ids begin with a text."""
        self._check_process()
        return self._events.with_id(beginning, limit)

    def proven(self, row: Row) -> Recorded:
        """Return the event of a row.

        Raises:
            CorruptEvent: it was changed.
            UnknownTopic: it is of a newer version.
        """
        self._check_process()
        return self._events.proven(row)

    def positions_given(self) -> int:
        """Return the last position that was ever given: more than `head()` only if rows were taken away."""
        self._check_process()
        return self._events.positions_given()

    def head(self) -> int:
        """Return the position of the last committed event; 0 for an empty log."""
        self._check_process()
        return self._events.head() if self._writer is None else self._frontier.head

    def query(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[AnyRow]:
        """Run a reading statement on a view's tables; rows are tuples.

        Raises:
            StoreUnavailable: SQLite refused it.
        """
        self._check_process()
        with typed():
            # The events themselves are in the log alone, however its views are read.
            if self._beside is not None and "stored_events" not in statement:
                return self._beside.query(statement, parameters)
            return rows(self._readers, statement, parameters)

    @contextmanager
    def snapshot(self) -> Generator[sqlite3.Connection]:
        """Lend a connection that sees the log as it is now, for a block; nothing can be written by it.

        Raises:
            StoreUnavailable: SQLite refused it.
        """
        self._check_process()
        with typed(), self._readers.connection() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def moment(self) -> Generator[Moment]:
        """Lend a way to query that sees the log as it is now, for a block.

        Raises:
            StoreUnavailable: SQLite refused it.
        """
        if self._beside is not None:
            with typed(), self._beside.moment() as moment:
                yield moment
            return
        with self.snapshot() as connection:
            cursor = connection.cursor()
            cursor.row_factory = None

            def query(statement: str, parameters: Sequence[SqlValue]) -> list[AnyRow]:
                return cursor.execute(statement, parameters).fetchall()

            yield Moment(query, query("SELECT COALESCE(MAX(rowid), 0) FROM stored_events", ())[0][0])

    def on_committed(self, listener: OnCommitted) -> Callable[[], None]:
        """Call a listener with every committed batch, in order. Returns a way to stop."""
        self._check_process()
        stop = self._frontier.listen(listener)
        self._follow()
        return stop

    def wait_for(self, position: int, *, timeout: float) -> bool:
        """Wait until the log has reached a position; False if it has not in time."""
        self._check_process()
        self._follow()
        if self._loader.by_hand and not self._is_served:
            while self._frontier.head < position and self.step():
                pass
        return self._frontier.wait_for(position, timeout)

    def set_aside(self) -> Sequence[SetAside]:
        """Return the events that an inline view could not take in, and why, in log order."""
        if self._beside is not None:
            return self._beside.set_aside
        found = self.query(
            "SELECT view, position, stream, version, topic, reason FROM set_aside ORDER BY position, view"
        )
        return [
            SetAside(view=view, position=position, stream=stream, version=version, topic=topic, reason=reason)
            for view, position, stream, version, topic, reason in found
        ]

    def rebuild(self, *views: str, progress: Callable[[int, int], None] | None = None) -> None:
        """Build inline views anew from the log, beside the old ones; what was set aside for them is tried again.

        The log is read once for all of them. Appends go on meanwhile. A query sees an old view until the new one takes
        its place, in one transaction.
        `progress` gets position and head.

        Raises:
            KeyError: this log has no such view.
            StoreUnavailable: this log is open for reading only.
        """
        self._the_writer().rebuild(views, progress)

    def fork(
        self,
        streams: Collection[str],
        *,
        at: int,
        flow: str,
        edits: Sequence[ForkEdit] = (),
        by: str = "operator",
        directory: str | os.PathLike[str] | None = None,
    ) -> Fork:
        """Make a part of this log a log of its own: some streams whole, up to the position `at` (FORK-1, FORK-2).

        It is for the caller that nothing in the streams refers to anything outside. The file lies in `directory`, else with
        all forks of this log beside its file. This log is only read.

        Raises:
            ForkFailed: the position is none of the log, the file can't be written, or a log in memory has no directory.
            CorruptEvent: a row that is needed can't be read; `verify` says more.
            StoreUnavailable: the log can't be read.
        """
        if directory is None and self.path == MEMORY:
            raise ForkFailed("a log in memory has no place beside it: give the directory for its forks")
        return fork_log(
            self,
            ForkWanted(streams=streams, at=at, flow=flow, edits=edits, by=by),
            directory=directory_of(self.path) if directory is None else Path(directory),
            fork_id=self._new_log_id(),
            now_ms=self._clock(),
            entropy=self._entropy,
        )

    def announce_gateway(self, address: str | None) -> None:
        """Write into the lock where this writer's gateway is, for commands in other processes."""
        self._the_writer().announce(address)

    def step(self) -> bool:
        """Write or load one batch in the calling thread; False if nothing waited. Only without `threads`."""
        return self._loader.step() or self._the_writer().step()

    @property
    def has_work(self) -> bool:
        """Whether `step` would write or load something."""
        return self._loader.has_work or (self._writer is not None and self._writer.has_work)

    def waits_on(self, condition: threading.Condition) -> None:
        """Have those who wait for the log do it on this condition: a simulation's, which does other work meanwhile."""
        self._frontier.waits_on(condition)
        self._is_served = True

    def crash(self) -> None:
        """Let go of the file as a process does that ends without a word: what was queued is not written. Only without `threads`."""
        self._loader.forget()
        self._the_writer().forget()
        self.close()

    def close(self) -> None:
        """Finish what was queued, close, and give up the lock. Nothing happens in a forked child."""
        if self._closed or os.getpid() != self._process:
            return
        self._closed = True
        self._loader.close()
        with self._following:
            if self._follower is not None:
                self._follower.close()
        if self._writer is not None:
            self._writer.drain()
        # The writer's connection goes last: only it can fold SQLite's write-ahead log back into the file.
        self._readers.close()
        if self._beside is not None:
            self._beside.close()
        if self._writer is not None:
            self._writer.close()
        else:
            self._application.close()
        self._frontier.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_reader(
        self, inline: Sequence[InlineView], on_folding: Callable[[int, int], None] | None
    ) -> None:
        app = SessionLog({"SQLITE_DBNAME": self.path})
        self._application = app
        self._log_id, self._epoch = app.log_id, 0
        self._readers = app.reading.readers
        self._events = EventReader(app.reading, app.chained)
        self._frontier = Frontier(0)
        self._states = self._states_of(app)
        try:
            if not self._are_up_to_date(inline):
                self._beside = ViewsBeside(
                    inline,
                    proven=self._events.proven,
                    rows_behind=lambda after: self._events.rows(after=after),
                    head=self._events.head,
                    progress=on_folding,
                )
        except BaseException:
            app.close()
            raise

    def _are_up_to_date(self, views: Sequence[InlineView]) -> bool:
        """Return whether views are as this version and this log have them, and nobody else has written into them."""
        found = self.query(
            "SELECT name, shape FROM inline_views WHERE typeof(position)='integer' "
            "AND position >= (SELECT COALESCE(MAX(rowid), 0) FROM stored_events)"
        )
        if {(view.name, view.shape) for view in views} - set(found):
            return False
        with self.snapshot() as connection:
            made = made_in(connection)
        return all(layout_of(view).is_whole_in(made) for view in views)

    def _the_writer(self) -> Writer:
        self._check_process()
        if self._writer is None:
            raise StoreUnavailable(f"{self.path} is open for reading only")
        return self._writer

    def _follow(self) -> None:
        if self._writer is not None:
            return
        with self._following:
            if self._follower is None and not self._closed:
                self._frontier.advance(self._events.head())
                self._follower = Follower(self._readers, partial(self._events.tell, self._frontier))

    def _states_of(self, app: LogApplication) -> StreamStates:
        return app.states(
            self._readers,
            read=self._events.stream,
            later=self._loader.later,
            transact=lambda work: self._the_writer().transact(work, PAGE_TIMEOUT_S),
        )

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise ForkedStoreError(
                f"{self.path} was opened by pid {self._process} and this is its fork {os.getpid()}: open it again here"
            )
