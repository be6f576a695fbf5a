"""What every log does, whatever database it lies in: the parts are put together by whoever opens one."""

import os
import sqlite3
import threading
from abc import abstractmethod
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import TracebackType
from typing import Self, cast

from eventsourcing.persistence import EventStore

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.machine import monotonic_s, wall_clock_ms
from intersession_events.log.log import InFlight, Kinds, Moment, OnCommitted
from intersession_events.log.recorded import (
    Committed,
    Gathered,
    OnOutcome,
    Reads,
    SetAside,
    StreamAppend,
    Unavailable,
)
from intersession_events.log.sql import Question
from intersession_events.log.sql import Row as AnyRow
from intersession_events.log.views import InlineView
from intersession_events.stores.folding.carrying import is_carried
from intersession_events.stores.later import tell
from intersession_events.stores.library.frontier import Frontier
from intersession_events.stores.portable.appends import NotTaken
from intersession_events.stores.portable.application import LogApplication
from intersession_events.stores.portable.committing import Committing
from intersession_events.stores.portable.identity import Holder
from intersession_events.stores.portable.inline_views import InlineViews, Query, ViewTables
from intersession_events.stores.portable.keeping import Keeping
from intersession_events.stores.portable.read_views import ReadViews
from intersession_events.stores.portable.reading.log import ReadableLog
from intersession_events.stores.portable.reading.recorder import Follows
from intersession_events.stores.portable.recent import LogClock
from intersession_events.stores.portable.snapshots.states import StreamStates
from intersession_events.stores.portable.writer import PAGE_TIMEOUT_S, Opened, Writer
from intersession_events.stores.refusals import OnRefused


class PortableLog(ReadableLog):
    """A `Log` but for its opening and its end. A database's own log sets the parts that are named here, and closes them."""

    _frontier: Frontier
    _views: ReadViews
    _writer: Writer | None

    def __init__(
        self,
        *,
        threads: bool,
        clock: Callable[[], int],
        monotonic: Callable[[], float] | None,
    ) -> None:
        super().__init__(threads=threads)
        self._writer = None
        self._clock = clock
        is_the_machines = clock is wall_clock_ms
        self._monotonic = monotonic or (monotonic_s if is_the_machines else lambda: clock() / 1000)
        self._keeping: Keeping | None = None
        self._is_served = False
        """Whether a simulation does our work while somebody waits."""
        self._following = threading.Lock()
        self._follower: Follows | None = None

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

    def head(self) -> int:
        """Return the position of the last committed event; 0 for an empty log.

        It is never behind what anybody has read, also where the writer has not heard yet of its own commit.
        """
        self._check_process()
        return self._events.head() if self._writer is None else self._writer.head()

    def each(self, questions: Iterable[Question]) -> list[list[AnyRow]]:
        """Run several reading statements, in one round trip where the store takes them so.

        Raises:
            StoreUnavailable: the database refused one.
        """
        self._check_process()
        return self._views.each(questions)

    def gather(self, wanted: Reads, /) -> Gathered:
        """Read several things of no one moment, in one round trip where the store takes them so; every event is proven.

        Raises:
            CorruptEvent: an event was changed or is missing.
            UnknownTopic: an event is of a newer version.
            StoreUnavailable: the database refused it.
        """
        self._check_process()
        return self._events.gather(wanted, self._views.each)

    @property
    def takes_many(self) -> bool:
        """Whether several statements cost about what one does: the round trip."""
        return self._recorder.takes_many

    @contextmanager
    def moment(self) -> Generator[Moment]:
        """Lend a way to query that sees the log as it is now, for a block.

        Raises:
            StoreUnavailable: the database refused it.
        """
        self._check_process()
        with self._views.moment() as moment:
            yield moment

    @abstractmethod
    def stored(self) -> AbstractContextManager[Query]:
        """Lend a way to query the database itself as it is now, for a block: views, too, as they are stored."""

    @contextmanager
    def _at_one_moment(self) -> Generator[Moment]:
        """Lend a way to query the database itself, where a store has no quicker one."""
        with self.stored() as query:
            yield Moment(query)

    def on_committed(
        self, listener: OnCommitted, of: Kinds = None, *, first: bool = False
    ) -> Callable[[], None]:
        """Call a listener with every committed batch, or its events of some kinds, in order. Returns a way to stop."""
        self._check_process()
        stop = self._frontier.listen(listener, of, first=first)
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

    def set_aside(self, views: Collection[str] = ()) -> Sequence[SetAside]:
        """Return the events that an inline view, or one of these, could not take in, and why, in log order."""
        self._check_process()
        return self._views.set_aside(views)

    @property
    def over(self) -> Exception | None:
        """Why nothing is written any more until the log is opened again: a device failed, or another writer came; else None."""
        return self._recorder.over if isinstance(self._recorder, Committing) else None

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

    @abstractmethod
    def snapshot(self, views: Sequence[InlineView] = ()) -> AbstractContextManager[sqlite3.Connection]:
        """Lend a connection that sees the log as it is now, for a block; nothing can be written by it.

        Where the log is on a server, it is to a copy of what is kept for all views, and of the tables of those that are named.

        Raises:
            StoreUnavailable: the database refused it.
        """

    @abstractmethod
    def again(self, inline: Sequence[InlineView] = ()) -> "PortableLog":
        """Open the same log once more, to read it."""

    @abstractmethod
    def written_by(self) -> Holder | None:
        """Return who writes it now; None if nobody does."""

    @abstractmethod
    def table_problems(self) -> Iterator[str]:
        """Say what is wrong with the tables beside the events, and with their places, for verification."""

    @abstractmethod
    def unread(self) -> Sequence[str]:
        """Say in sentences what is kept with the events that no verification reads."""

    def on_refused(self, listener: OnRefused) -> None:
        """Tell a listener of each batch that had to be written piece by piece, instead of the log of the process.

        It is called from the writer's thread. A log that is only read never calls it.
        """
        if isinstance(self._recorder, Committing):
            self._recorder.refusals.listen(listener)

    def announce_gateway(self, address: str | None) -> None:
        """Say where this writer's gateway is, for commands in other processes."""
        self._the_writer().opened.announce(address)

    def step(self) -> bool:
        """Write or load one batch in the calling thread; False if nothing waited. Only without `threads`."""
        return self._loader.step() or self._the_writer().commits.step()

    @property
    def has_work(self) -> bool:
        """Whether `step` would write or load something."""
        return self._loader.has_work or (self._writer is not None and self._writer.commits.has_work)

    def waits_on(self, condition: threading.Condition) -> None:
        """Have those who wait for the log do it on this condition: a simulation's, which does other work meanwhile."""
        self._frontier.waits_on(condition)
        self._is_served = True

    def crash(self) -> None:
        """Let go of the file as a process does that ends without a word: what was queued is not written. Only without `threads`."""
        self._loader.forget()
        self._the_writer().commits.forget()
        self.close()

    def close(self) -> None:
        """Finish what was queued, close, and give up the log. Nothing happens in a forked child."""
        if self._closed or os.getpid() != self._process:
            return
        self._closed = True
        self._loader.close()
        with self._following:
            if self._follower is not None:
                self._follower.close()
        if self._writer is not None:
            self._writer.recorder.close()
        self._end()
        self._frontier.close()

    @abstractmethod
    def _end(self) -> None:
        """Close what is open in the database, once nothing waits to be written."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
                self._follower = self._recorder.follow(partial(self._events.tell, self._frontier))

    def _write_with(
        self,
        opened: Opened,
        tables: ViewTables,
        inline: Sequence[InlineView],
        *,
        entropy: Callable[[int], bytes],
        on_folding: Callable[[int, int], None] | None,
    ) -> None:
        """Begin to write, and take up the views."""
        views = InlineViews(inline, tables)
        self._writer = Writer(
            opened,
            views=views,
            entropy=entropy,
            events=self._events,
            frontier=self._frontier,
            by_hand=self._loader.by_hand,
            clock=LogClock(opened.recent.time, now_ms=self._clock, monotonic=self._monotonic),
        )
        self._views = ReadViews(self._recorder, self._at_one_moment)
        self._keeping = Keeping(self._writer, views, events=self._events, frontier=self._frontier)
        if inline:
            # A fork is short-lived, and begins with what its start asks: the rest is folded beside it, if anybody asks.
            # Not in it: the caller may hold what the writer waits for.
            is_fork = self.forked is not None and not self._loader.by_hand
            left = self._keeping.take_up(
                on_folding, left=[view.name for view in inline if is_fork and not is_carried(view)]
            )
            if left:
                stale = [view for view in inline if view.name in left]
                self._views.fold_beside(inline, stale, self._events, on_folding)

    def _read_with(
        self,
        tables: ViewTables,
        inline: Sequence[InlineView],
        on_folding: Callable[[int, int], None] | None,
    ) -> None:
        """Begin to read."""
        self._views = ReadViews(self._recorder, self._at_one_moment)
        self._views.believe(inline, tables, self._events, on_folding)

    def _states_of(self, app: LogApplication) -> StreamStates:
        """Return the states of the streams; in a log that is open for writing, a snapshot is written with the next commit."""
        kept, recorder = app.snapshot_recorder, self._recorder
        kept.rows = recorder.event_rows
        kept.submit = partial(recorder.submit, patient=True) if isinstance(recorder, Committing) else None
        return StreamStates(
            cast("EventStore[str]", app.snapshots),
            self._events,
            self._loader,
            clear=lambda: self._the_writer().transact(kept.clear, PAGE_TIMEOUT_S),
        )
