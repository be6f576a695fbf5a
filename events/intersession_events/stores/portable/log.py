"""The parts of a log that are the same in any database; each store's opening puts them together."""

import os
import sqlite3
import threading
from abc import abstractmethod
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial, wraps
from typing import ClassVar, Concatenate, Final, ParamSpec, TypeVar, cast

from eventsourcing.persistence import EventStore

from intersession_events.basics.closing import Closing
from intersession_events.basics.errors import ForkedStoreError, StoreUnavailable
from intersession_events.basics.machine import monotonic_s, wall_clock_ms
from intersession_events.basics.progress import Progress
from intersession_events.facts import ForkedFrom
from intersession_events.log.erasing import ERASURES
from intersession_events.log.files import Files
from intersession_events.log.lineage import Lineage, lineage_of
from intersession_events.log.log import Gathers, InFlight, Kinds, Moment, OnCommitted, OnLoaded
from intersession_events.log.recorded import (
    Committed,
    Gathered,
    OnOutcome,
    Reads,
    SetAside,
    StreamAppend,
    Unavailable,
)
from intersession_events.log.row_state import Envelope
from intersession_events.log.sql import Query, Question
from intersession_events.log.sql import Row as AnyRow
from intersession_events.log.verifying.encrypted_rows import Unseen
from intersession_events.log.views import InlineView
from intersession_events.log.work_queue import WorkQueue
from intersession_events.stores.database import Cursor
from intersession_events.stores.folding.carrying import is_carried
from intersession_events.stores.hosts.host import Hosts
from intersession_events.stores.keys.keyring import Keyring, clear_from, destroy_unused, without
from intersession_events.stores.later import Loader, tell
from intersession_events.stores.library.frontier import Frontier
from intersession_events.stores.portable.appends import NotTaken
from intersession_events.stores.portable.application import LogApplication
from intersession_events.stores.portable.committing import Committing, OnRefused, OnSuperseded
from intersession_events.stores.portable.identity import Holder
from intersession_events.stores.portable.inline_views import InlineViews, ViewTables
from intersession_events.stores.portable.keeping import Keeping
from intersession_events.stores.portable.read_views import ReadViews
from intersession_events.stores.portable.reading.events import EventReader
from intersession_events.stores.portable.reading.recorder import Following, ReadsLog
from intersession_events.stores.portable.recent import LogClock
from intersession_events.stores.portable.snapshots.states import StreamStates
from intersession_events.stores.portable.writer import PAGE_TIMEOUT_S, PUT_TIMEOUT_S, Opened, Writer

_Taken = ParamSpec("_Taken")
_Read = TypeVar("_Read")
T = TypeVar("T")


def _reads(
    read: Callable[Concatenate[EventReader, _Taken], _Read],
) -> Callable[Concatenate["PortableLog", _Taken], _Read]:
    """Return a method of the reader as one of a log: it takes and returns the same, in the process that opened the log."""

    @wraps(read)
    def read_of_log(self: "PortableLog", /, *args: _Taken.args, **kwargs: _Taken.kwargs) -> _Read:
        of_reader: Callable[_Taken, _Read] = getattr(self.events, read.__name__)  # a reader may have its own
        return of_reader(*args, **kwargs)

    return read_of_log


FUNCTIONS: Final = "functions"
"""What `outdated` calls the functions of a log on a server, and the tables of what stands beside the events."""


class PortableLog(Gathers, Closing):
    """A `Log` but for its opening: a database's own log says where it is, and begins (`_begin`) with what it has opened.

    Its events are read in its process alone, by connections that never wait for its writer.
    """

    path: str
    """Where the log is, in words: a file's real path, or a URL without its password."""
    place: str
    """Beside which path lies what is kept in files beside the log (`<place>.forks`, workspaces); `:memory:` for nowhere."""
    log_id: str
    """The log's identity, a UUID."""
    epoch: int
    """The writer's epoch; 0 for a reader."""
    keeps_views = False
    """Whether its database keeps tailed views as well, since several processes share it."""
    keys: Keyring | None
    """Its keys, if it is kept encrypted (CRYPT-1)."""
    files: Files
    """The contents of the files that its events name (FILE-1)."""
    work: WorkQueue
    """The calls that workers make for its writer (WORK-1); a reader's is looked at only."""
    hosts: Hosts
    """Where standbys and doors beside its writer announce themselves (STBY-5)."""
    _recorder: ReadsLog
    _events: EventReader
    _states: StreamStates
    _frontier: Frontier
    _views: ReadViews
    _end: Callable[[], object]
    """Closes what is open in the database, once nothing waits to be written."""
    _unread: ClassVar[Sequence[str]]

    def __init__(
        self,
        *,
        threads: bool,
        clock: Callable[[], int],
        monotonic: Callable[[], float] | None,
    ) -> None:
        self._process = os.getpid()
        self._closed = False
        self._loader = Loader(threads=threads, check=self._check_process)
        self._writer: Writer | None = None
        self._clock = clock
        is_the_machines = clock is wall_clock_ms
        self._monotonic = monotonic or (monotonic_s if is_the_machines else lambda: clock() / 1000)
        self._keeping: Keeping | None = None
        self._is_served = False
        """Whether a simulation does our work while somebody waits."""
        self.gateway: str | None = None
        """The address of this writer's gateway, as it was announced."""
        self._following = threading.Lock()
        self._follower: Following | None = None

    @property
    def forked(self) -> ForkedFrom | None:
        """The log and place that this one was forked from; None for a log that is not a fork (FORK-2)."""
        return self.lineage.forked

    @property
    def log_ids(self) -> tuple[str, ...]:
        """The ids of the logs that its events were written in, its own first: ids were derived from each of them."""
        return (self.log_id, *(fork.log_id for fork in self.lineage.forks))

    @property
    def lineage(self) -> Lineage:
        """Which log each event was written in: this one, or one that it was forked from."""
        return self._events.lineage

    @property
    def states(self) -> StreamStates:
        """The states of the log's streams, folded from their last snapshots on."""
        return self._states

    def check(self) -> None:
        """Check that the log can be used here. It does not ask the store: a reader notices if that is away.

        Raises:
            ForkedStoreError: another process opened it, of which this one is a fork.
            StoreUnavailable: it is closed.
        """
        self._check_process()
        if self._closed:
            raise StoreUnavailable("the log is closed")

    @property
    def events(self) -> EventReader:
        """The reader of events behind the methods below.

        Raises:
            ForkedStoreError: another process opened it, of which this one is a fork.
        """
        self._check_process()
        return self._events

    stream = _reads(EventReader.stream)
    all = _reads(EventReader.all)
    streams = _reads(EventReader.streams)
    rows = _reads(EventReader.rows)
    with_id = _reads(EventReader.with_id)
    proven = _reads(EventReader.proven)
    positions_given = _reads(EventReader.positions_given)

    def load(self, stream: str, on_loaded: OnLoaded, *, after: int = 0) -> None:
        """Read a stream behind a version on a reader's thread; never blocks."""
        self._loader.later(partial(self._events.stream, stream, after=after), on_loaded)

    def look(self) -> None:
        """Check that the store is still the one that was opened. A caller that only reads or waits would notice only at the next commit.

        Raises:
            StoreUnavailable: it was deleted, moved, replaced or cut.
        """
        self._check_process()
        self._recorder.look()

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

    @property
    def followed(self) -> int:
        """The position up to which listeners have heard; never beyond `head`, and known without asking the store."""
        return self._frontier.head

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
    def is_remote(self) -> bool:
        """Whether several statements cost about what one does: the round trip."""
        return self._recorder.is_remote

    @contextmanager
    def moment(self) -> Generator[Moment]:
        """Lend a way to query the log as it is now, for a block.

        Raises:
            StoreUnavailable: the database refused it.
        """
        self._check_process()
        with self._views.moment() as moment:
            yield moment

    @abstractmethod
    def stored(self) -> AbstractContextManager[Query]:
        """Lend a way to query the database itself as it is now, including the views as stored, for a block."""

    @contextmanager
    def _at_one_moment(self) -> Generator[Moment]:
        """Lend a way to query the database itself, where a store has no quicker one."""
        with self.stored() as query:
            yield Moment(query)

    def on_committed(
        self, listener: OnCommitted, of: Kinds = None, *, first: bool = False
    ) -> Callable[[], None]:
        """Call a listener with every committed batch, or its events of some kinds, in order. Returns a function that stops it."""
        self._check_process()
        stop = self._frontier.listen(listener, of, first=first)
        self._follow()
        return stop

    def wait_for(self, position: int, *, timeout: float) -> bool:
        """Wait until the log has reached a position; False if it does not in time."""
        self._check_process()
        self._follow()
        if self._follower is not None and self._frontier.head < position:
            self._follower.hurry()
        if self._loader.by_hand and not self._is_served:
            while self._frontier.head < position and self.step():
                pass
        return self._frontier.wait_for(position, timeout)

    def set_aside(self, views: Collection[str] = ()) -> Sequence[SetAside]:
        """Return the events that an inline view, or one of some, could not take in, and why, in log order."""
        self._check_process()
        return self._views.set_aside(views)

    @property
    def over(self) -> Exception | None:
        """Why nothing may be written until the log is opened again: a device failed, or another writer took over; else None."""
        return self._recorder.over if isinstance(self._recorder, Committing) else None

    @property
    def built(self) -> Sequence[str]:
        """The names of the inline views that were rebuilt when the log was opened."""
        return () if self._keeping is None else self._keeping.built

    def rebuild(self, *views: str, progress: Progress | None = None) -> None:
        """Rebuild inline views from the log, beside the old ones; events that were set aside for them are tried again.

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
        """Lend a read-only connection that sees the log as it is now, for a block.

        Where the log is on a server, it is to a copy of what is kept for all views, and of the tables of those that are named.

        Raises:
            StoreUnavailable: the database refused it.
        """

    @abstractmethod
    def again(self, inline: Sequence[InlineView] = ()) -> "PortableLog":
        """Open the same log a second time, for reading."""

    @abstractmethod
    def written_by(self) -> Holder | None:
        """Return the process that writes it now; None if there is none."""

    @abstractmethod
    def table_problems(self) -> Iterator[str]:
        """Say what is wrong with the tables beside the events, and with their positions, for verification."""

    def outdated(self, views: Sequence[InlineView]) -> Sequence[str]:
        """Name what the next writer with these views makes anew, because another version made it, in the order of the views.

        `FUNCTIONS` stands for what a server has beside the events. Whether somebody has changed what is there since, `verify` says.
        """
        shapes: dict[str, int] = dict(self.query("SELECT name, shape FROM inline_views"))
        return [view.name for view in views if shapes.get(view.name) != view.shape]

    @property
    def is_encrypted(self) -> bool:
        """Whether its words are kept encrypted (CRYPT-1): nothing beside it may have them."""
        return self.keys is not None

    def as_stored(self) -> AbstractContextManager[None]:
        """Leave what is encrypted so in rows that this thread reads in a block: a backup must have them so, to forget (CRYPT-4)."""
        return nullcontext() if self.keys is None else self.keys.as_stored()

    def encrypted(self, envelope: Envelope) -> Unseen | str:
        """Say why an encrypted row can't be seen, or in words what is wrong with it."""
        return "away" if self.keys is None else self.keys.look(envelope)

    def clear_from(self) -> int | None:
        """Return the position of the first words in clear of an encrypted log; None if there are none, as far as is looked (CRYPT-7)."""
        return None if self.keys is None else clear_from(self.keys, self.query)

    def keys_without(self, places: Iterable[tuple[str, int]]) -> tuple[int, Sequence[str]]:
        """Return how many keys an erasure of the events at these places, streams with versions, destroys, and what copies show still."""
        return (0, ()) if self.keys is None else without(self.keys, places, self.query)

    def destroy_keys(self, streams: Collection[str]) -> int:
        """Destroy the keys of streams that encrypt nothing any more, and return their number. For the writer (CRYPT-4).

        Raises:
            StoreUnavailable: they can't be written over.
        """
        keys = self.keys
        ids = [] if keys is None else keys.ids(streams)
        if keys is None or not ids:
            return 0
        # In the writer's own turn: nothing is encrypted meanwhile.
        work = partial(destroy_unused, keys, streams, self._clock())
        return self._the_writer().transact(work, PAGE_TIMEOUT_S)

    def changed(self, work: Callable[[Cursor], T], *, patient: bool = False) -> T:
        """Run work as the log's writer, in the transaction of appends that wait. An error must be one of the store's.

        What is `patient` waits up to 10 ms for an append whose sync it can share.

        Raises:
            WriterSuperseded: another writer has taken over.
            StoreUnavailable: it could not be written in time, or the log is open for reading only.
        """
        return self._the_writer().transact(work, PUT_TIMEOUT_S, alone=False, patient=patient)

    def let_go(self, *, anew: bool = False) -> Sequence[str]:
        """Have the database let go of what was erased, also where replaced rows stood; return in words what it could not. For the writer.

        `anew` has it write everything anew, however large: while no host runs.

        Raises:
            StoreUnavailable: the log is open for reading only.
        """
        return self._the_writer().opened.let_go(anew=anew)

    def _erased_streams(self) -> Sequence[str]:
        return () if self.keys is None else self._events.streams(ERASURES)

    def unread(self) -> Sequence[str]:
        """Say in sentences which data beside the events no verification reads."""
        return self._unread

    def on_refused(self, listener: OnRefused) -> None:
        """Report each batch that had to be written piece by piece to a listener, in place of the process's log.

        It is called from the writer's thread. A log that is only read never calls it.
        """
        if isinstance(self._recorder, Committing):
            self._recorder.refusals.listen(listener)

    def announce_gateway(self, address: str | None, *, advertised: str | None = None) -> None:
        """Publish the address of this writer's gateway, for commands in other processes; on other machines the `advertised` one."""
        self._the_writer().opened.announce(address, advertised)
        self.gateway = advertised or address

    def on_superseded(self, listener: OnSuperseded) -> None:
        """Tell a listener once that another writer has taken the log: nothing can be written here any more (STBY-4).

        It is called from a thread of the store's, and must not block. A log that is only read never calls it.
        """
        if isinstance(self._recorder, Committing):
            self._recorder.on_superseded(listener)

    def step(self) -> bool:
        """Write or load one batch in the calling thread; False if nothing waits. Only without `threads`."""
        return self._loader.step() or self._the_writer().commits.step()

    @property
    def has_work(self) -> bool:
        """Whether `step` would write or load something."""
        return self._loader.has_work or (self._writer is not None and self._writer.commits.has_work)

    def waits_on(self, condition: threading.Condition) -> None:
        """Make threads that wait for the log wait on this condition: a simulation's, which does other work meanwhile."""
        self._frontier.waits_on(condition)
        self._is_served = True

    def crash(self) -> None:
        """Let go of the file like a process that is killed: queued work is not written. Only without `threads`."""
        self._loader.forget()
        self._the_writer().commits.forget()
        self.close()

    def close(self) -> None:
        """Finish the queued work, close, and give up the log. Does nothing in a forked child."""
        if self._closed or os.getpid() != self._process:
            return
        self._closed = True
        self.work.close()
        self._loader.close()
        with self._following:
            if self._follower is not None:
                self._follower.close()
        self._recorder.close()
        # The writer's connection goes last: only it can fold SQLite's write-ahead log back into the file.
        self._recorder.close_readers()
        self._views.close()
        self._end()
        self._frontier.close()

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

    def _begin(
        self,
        app: LogApplication,
        opened: Opened | None,
        tables: ViewTables,
        inline: Sequence[InlineView],
        *,
        entropy: Callable[[int], bytes],
        on_folding: Progress | None,
    ) -> None:
        """Begin to write with the `opened` resources, and bring views up to date; else begin to read. An error closes everything."""
        recorder = self._recorder = cast("ReadsLog", app.recorder)
        self._end = app.close if opened is None else opened.close
        self.keys = app.chained.keys
        if self.keys is not None and app.chained.lineage.forked is not None:
            # It was looked at before the keys were at hand, and edits of a fork have words.
            app.chained.lineage = lineage_of(app.chained.log_id, recorder.rows)
        self.log_id, self.epoch = app.chained.log_id, 0 if opened is None else opened.epoch
        self._events = EventReader(recorder, app.chained)
        self._events.reads_from = app
        self._frontier = Frontier(0 if opened is None else opened.head)
        self._views = ReadViews(recorder, self._at_one_moment, inline, self._events, on_folding)
        kept = app.snapshot_recorder
        self._states = StreamStates(
            cast("EventStore[str]", app.snapshots),
            self._events,
            self._loader,
            clear=lambda: self._the_writer().transact(kept.clear, PAGE_TIMEOUT_S),
        )
        try:
            if opened is None:
                self._views.believe(tables)
            else:
                kept.submit = partial(opened.recorder.submit, patient=True)
                recorder.frontier = self._frontier
                self._write_with(opened, InlineViews(inline, tables), inline, entropy, on_folding)
                # Of erasures that a crash left without this.
                self.destroy_keys([one.removeprefix(ERASURES) for one in self._erased_streams()])
        except BaseException:
            recorder.close_readers()
            self._end()
            raise

    def _write_with(
        self,
        opened: Opened,
        views: InlineViews,
        inline: Sequence[InlineView],
        entropy: Callable[[int], bytes],
        on_folding: Progress | None,
    ) -> None:
        self._writer = Writer(
            opened,
            views=views,
            entropy=entropy,
            events=self._events,
            frontier=self._frontier,
            by_hand=self._loader.by_hand,
            clock=LogClock(opened.recent.time, now_ms=self._clock, monotonic=self._monotonic),
        )
        self._keeping = Keeping(self._writer, views, events=self._events, frontier=self._frontier)
        if inline:
            # A fork is short-lived, and begins with what its start asks: the rest is folded beside it, if anybody asks.
            # Not in it: the caller may hold what the writer waits for.
            is_fork = self.forked is not None and not self._loader.by_hand
            left = self._keeping.take_up(
                on_folding, left=[view.name for view in inline if is_fork and not is_carried(view)]
            )
            if left:
                self._views.fold_beside([view for view in inline if view.name in left])

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise ForkedStoreError(
                f"{self.path} was opened by pid {self._process} and this is its fork {os.getpid()}: open it again here"
            )
