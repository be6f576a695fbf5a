"""The log in an SQLite file: one writer, one sync for all that wait, readers on connections of their own."""

import os
import sqlite3
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from intersession_events.errors import ForkFailed
from intersession_events.facts import ForkEdit
from intersession_events.forks import Fork, ForkWanted, directory_of, fork_log
from intersession_events.log import (
    InlineView,
    Moment,
    SetAside,
    SqlValue,
)
from intersession_events.log import Row as AnyRow
from intersession_events.machine import machine_entropy, random_id, wall_clock_ms
from intersession_events.stores.folding import ViewsBeside, layout_of, made_in
from intersession_events.stores.library import Frontier
from intersession_events.stores.portable import EventReader, PortableLog, Writer
from intersession_events.stores.sqlite.application import SessionLog, SqliteApplication
from intersession_events.stores.sqlite.connections import MEMORY
from intersession_events.stores.sqlite.failures import typed
from intersession_events.stores.sqlite.inline_views import InlineViews
from intersession_events.stores.sqlite.keeping import Keeping
from intersession_events.stores.sqlite.opening import open_for_writing
from intersession_events.stores.sqlite.readers import FileReaders, rows


class SqliteLog(PortableLog):
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
        self.path = MEMORY if os.fspath(path) == MEMORY else os.path.realpath(path)
        super().__init__(threads=threads)
        self._writer = None
        self._keeping: Keeping | None = None
        self._beside: ViewsBeside | None = None
        self._clock, self._entropy, self._new_log_id = clock, entropy, new_log_id
        if read_only:
            self._open_reader(inline, on_folding)
            return
        opened = open_for_writing(
            self.path, clock=clock, new_log_id=new_log_id, environment=environment or {}
        )
        self._log_id, self._epoch = opened.log_id, opened.epoch
        recorder = opened.app.commits
        if self.path != MEMORY:
            recorder.readers = FileReaders(self.path, alone=False)
        self._readers = recorder.readers
        self._recorder = recorder
        self._events = EventReader(recorder, opened.mapper)
        self._frontier = recorder.frontier = Frontier(opened.head)
        self._application: SqliteApplication = opened.app
        self._states = self._states_of(opened.app)
        try:
            views = InlineViews(inline)
            self._writer = Writer(
                opened,
                views=views,
                entropy=entropy,
                events=self._events,
                frontier=self._frontier,
                by_hand=not threads,
            )
            self._keeping = Keeping(self._writer, views, events=self._events, frontier=self._frontier)
            if inline:
                self._keeping.take_up(on_folding)
        except BaseException:
            opened.close()
            self._readers.close()
            raise

    @property
    def application(self) -> SqliteApplication:
        """The log as an application of the eventsourcing library: its notification log, event store and mapper."""
        return self._application

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

    def set_aside(self) -> Sequence[SetAside]:
        """Return the events that an inline view could not take in, and why, in log order."""
        return super().set_aside() if self._beside is None else self._beside.set_aside

    @property
    def built(self) -> Sequence[str]:
        """The names of the inline views that were built anew when it was opened."""
        return () if self._keeping is None else self._keeping.built

    def rebuild(self, *views: str, progress: Callable[[int, int], None] | None = None) -> None:
        """Build inline views anew from the log, beside the old ones; what was set aside for them is tried again.

        The log is read once for all of them. Appends go on meanwhile. A query sees an old view until the new one takes
        its place, in one transaction.
        `progress` gets position and head.

        Raises:
            KeyError: this log has no such view.
            StoreUnavailable: this log is open for reading only.
        """
        self._the_writer()
        if self._keeping is not None:
            self._keeping.rebuild(views, progress)

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

    def _end(self) -> None:
        # The writer's connection goes last: only it can fold SQLite's write-ahead log back into the file.
        self._readers.close()
        if self._beside is not None:
            self._beside.close()
        if self._writer is not None:
            self._writer.close()
        else:
            self._application.close()

    def _open_reader(
        self, inline: Sequence[InlineView], on_folding: Callable[[int, int], None] | None
    ) -> None:
        app = SessionLog({"SQLITE_DBNAME": self.path})
        self._application = app
        self._log_id, self._epoch = app.log_id, 0
        self._readers = app.reading.readers
        self._recorder = app.reading
        self._events = EventReader(app.reading, app.chained)
        self._frontier = Frontier(0)
        self._states = self._states_of(app)
        try:
            if not self._are_up_to_date(inline):
                self._beside = ViewsBeside(
                    inline,
                    proven=self._events.proven,
                    rows=lambda after, to, limit: self._events.rows(after=after, to=to, limit=limit),
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
