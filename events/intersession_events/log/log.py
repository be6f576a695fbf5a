"""The log: append with expected versions, read a stream either way, follow all from a position.

The protocols that everything else is written against, one for each use that is made of a log: actors append and read events,
doors and projections read events and views. `stores/` has the implementations.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import chain, islice
from types import UnionType
from typing import Any, Final, Protocol, TypeVar, overload

from intersession_events.basics.errors import LogError
from intersession_events.facts import Event, ForkedFrom
from intersession_events.log.files import Files
from intersession_events.log.lineage import Lineage
from intersession_events.log.recorded import (
    Committed,
    Gathered,
    OnOutcome,
    Reads,
    Recorded,
    SetAside,
    StreamAppend,
    StreamPart,
)
from intersession_events.log.sql import Ask, Question, Row, SqlValue, Together
from intersession_events.log.states import States
from intersession_events.log.work_queue import WorkQueue

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")

OnLoaded = Callable[[Sequence[Recorded] | Exception], None]
OnCommitted = Callable[[Sequence[Recorded]], None]
Kinds = type[Event] | UnionType | None
"""Kinds of events: one, or a union of some; None is all."""


_AT_ONCE: Final = 2048
"""How many positions are read at once. A caller that looks for the first of many may not need the rest."""

_HEAD: Final = "SELECT COALESCE(MAX(rowid), 0) FROM stored_events"


class Moment:
    """The log as it is at one moment: all reads see the same state."""

    def __init__(
        self,
        query: Callable[[str, Sequence[SqlValue]], list[Row]],
        head: int | None = None,
        *,
        together: Together | None = None,
    ) -> None:
        """Read by `query`, and several statements by `together`, where a store takes them in one round trip."""
        self._query = query
        self._together = together
        self._head = head

    @property
    def head(self) -> int:
        """The position of the last event."""
        if self._head is None:
            self._head = self._query(_HEAD, ())[0][0]
        head: int = self._head
        return head

    @property
    def is_remote(self) -> bool:
        """Whether several statements cost about as much as one, since the round trip dominates."""
        return self._together is not None

    def query(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Return the rows of a reading statement on a view's tables."""
        return self._query(statement, parameters)

    def each(self, *questions: Question) -> list[list[Row]]:
        """Return the rows of several reading statements, and read the head along if it is not known yet."""
        if self._together is None:
            return [self._query(statement, parameters) for statement, parameters in questions]
        if self._head is not None:
            return self._together(questions)
        ((self._head,),), *found = self._together([(_HEAD, ()), *questions])
        return found


class InFlight(Protocol):
    """An append on its way: what follows from it may be appended behind it, before it is durable."""

    @property
    def has_failed(self) -> bool:
        """Whether it is certain that nothing of it was recorded."""
        ...

    def hurry(self) -> None:
        """Write it now if it is patient: stop waiting for other appends."""
        ...


class Appends(Protocol):
    """Takes events."""

    def append(
        self,
        batch: Sequence[StreamAppend],
        on_outcome: OnOutcome,
        *,
        patient: bool = False,
        behind: InFlight | None = None,
    ) -> InFlight:
        """Queue events of one or several streams for one atomic append; never blocks.

        A `patient` one may be put off for a moment, to share the sync of another append. One that is `behind` another is
        recorded only if that one is, after it; else it is a `Conflict` on a stream of that one.

        `on_outcome` is called once, from the writer's thread, after the sync (or the refusal). It must not block.
        """
        ...


class Gathers(Protocol):
    """Reads several things at once; there is one method for each combination."""

    def gather(self, wanted: Reads, /) -> Gathered:
        """Read rows of views, events and parts of streams, not as of one moment, in one round trip where the store allows it."""
        ...

    def at(self, positions: Iterable[int]) -> Iterator[Recorded]:
        """Read the events at some positions, each once and in order. Positions without an event are skipped."""
        left = sorted(set(positions))
        if len(left) <= _AT_ONCE:
            return iter(self.gather(Reads(positions=left)).events)
        return chain.from_iterable(
            self.at(left[first : first + _AT_ONCE]) for first in range(0, len(left), _AT_ONCE)
        )

    def whole(self, streams: Sequence[str]) -> Sequence[Sequence[Recorded]]:
        """Read some streams, each from its first event to its last."""
        return self.gather(Reads(streams=streams)).streams

    def parts(self, parts: Sequence[StreamPart]) -> Sequence[Sequence[Recorded]]:
        """Read a part of each of some streams."""
        return self.gather(Reads(parts=parts)).parts

    def each(self, questions: Iterable[Question]) -> list[list[Row]]:
        """Return the rows of several reading statements, not as of one moment."""
        return [*self.gather(Reads(questions=list(questions))).rows]

    def query(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Return the rows of a reading statement on a view's tables."""
        return self.each([(statement, parameters)])[0]

    @overload
    def answers(self, ask: Ask[A], /) -> tuple[A]: ...
    @overload
    def answers(self, ask: Ask[A], other: Ask[B], /) -> tuple[A, B]: ...
    @overload
    def answers(self, ask: Ask[A], other: Ask[B], third: Ask[C], /) -> tuple[A, B, C]: ...
    @overload
    def answers(self, ask: Ask[A], other: Ask[B], third: Ask[C], fourth: Ask[D], /) -> tuple[A, B, C, D]: ...

    @overload
    def answers(
        self, ask: Ask[A], other: Ask[B], third: Ask[C], fourth: Ask[D], fifth: Ask[E], /
    ) -> tuple[A, B, C, D, E]: ...
    @overload
    def answers(
        self, ask: Ask[A], other: Ask[B], third: Ask[C], fourth: Ask[D], fifth: Ask[E], sixth: Ask[F], /
    ) -> tuple[A, B, C, D, E, F]: ...
    def answers(self, *asked: Ask[Any]) -> tuple[Any, ...]:  # of each its own
        """Return what several readers ask for, not as of one moment."""
        rows = iter(self.each(question for ask in asked for question in ask.questions))
        return tuple(ask.told(list(islice(rows, len(ask.questions)))) for ask in asked)


class ReadsEvents(Gathers, Protocol):
    """Reads events. Each is proven as it is read."""

    @property
    def log_id(self) -> str:
        """The log's identity, a UUID. Derived ids begin with it."""
        ...

    @property
    def forked(self) -> ForkedFrom | None:
        """The log and place that this one was forked from; None for a log that is not a fork (FORK-2)."""
        ...

    @property
    def lineage(self) -> Lineage:
        """Which log each event was written in: this one, or one that it was forked from."""
        ...

    @property
    def files(self) -> Files:
        """The contents of the files that its events name (FILE-1)."""
        ...

    @property
    def log_ids(self) -> Sequence[str]:
        """The ids of the logs that its events were written in, its own first: ids were derived from each of them."""
        ...

    @property
    def states(self) -> States:
        """The states of its streams, folded from their last snapshots on."""
        ...

    def head(self) -> int:
        """Return the position of the last committed event, never less than any reader has seen; 0 for an empty log."""
        ...

    def stream(
        self,
        stream: str,
        *,
        after: int = 0,
        to: int | None = None,
        backwards: bool = False,
        limit: int | None = None,
    ) -> Sequence[Recorded]:
        """Read the events of a stream with `after < version <= to`."""
        ...

    def load(self, stream: str, on_loaded: OnLoaded, *, after: int = 0) -> None:
        """Read a stream behind a version on a reader's thread; never blocks. `on_loaded` must not block either."""
        ...

    def all(
        self,
        *,
        after: int = 0,
        to: int | None = None,
        limit: int | None = None,
        topics: Collection[str] = (),
    ) -> Iterator[Recorded]:
        """Read all events with `after < position <= to`, in order; only those of some stored names, if any are given."""
        ...

    def rows(self, *, after: int | None = 0, limit: int = 1000) -> Sequence[Row]:
        """Return position, stream, version, topic and state of rows after a position (None: of all), unproven."""
        ...

    def with_id(self, beginning: str, *, limit: int) -> Sequence[Recorded]:
        """Return the first events whose ids begin with a text. It looks at each row: the log has no index of ids."""
        ...

    def streams(self, prefix: str) -> Sequence[str]:
        """Return the names of the streams that begin with a prefix, sorted."""
        ...


class ReadsViews(Gathers, Protocol):
    """Reads the tables of views."""

    @property
    def is_remote(self) -> bool:
        """Whether several statements cost about as much as one, since the round trip dominates."""
        ...

    def moment(self) -> AbstractContextManager[Moment]:
        """Lend a way to query the log as it is now, for a block of several statements; keep it only briefly."""
        ...

    def set_aside(self, views: Collection[str] = ()) -> Sequence[SetAside]:
        """Return the events that an inline view, or one of some, could not take in, and why, in log order."""
        ...


class Follows(Protocol):
    """Hears of what is committed."""

    def on_committed(
        self, listener: OnCommitted, of: Kinds = None, *, first: bool = False
    ) -> Callable[[], None]:
        """Call a listener with every committed batch, in order, on the writer's thread. Returns a function that stops it.

        One that asks for kinds of events gets those of each batch, and is not called where a batch has none. One that is to
        be `first` hears of a commit before the callers that wait for it, and must be quick.
        """
        ...

    def wait_for(self, position: int, *, timeout: float) -> bool:
        """Wait until the log has reached a position; False if it does not in time."""
        ...


class ActorsLog(Appends, ReadsEvents, Protocol):
    """A log as actors have it: views are of no concern to them."""


class Log(ReadsEvents, ReadsViews, Follows, Protocol):
    """A log that is read and followed: append-only, hash-chained, with one total order of its events."""

    @property
    def path(self) -> str:
        """Where the log is, in words: the real path of its file, `:memory:`, or a URL without its password."""
        ...

    @property
    def place(self) -> str:
        """The path beside which files of the log are kept; `:memory:` for a log that has no such place."""
        ...

    @property
    def is_encrypted(self) -> bool:
        """Whether its words are kept encrypted (CRYPT-1): nothing beside it may have them."""
        ...


class HostLog(Appends, Log, Protocol):
    """A log as a host uses it: it also appends."""

    @property
    def epoch(self) -> int:
        """The writer's epoch; 0 for a reader."""
        ...

    @property
    def work(self) -> WorkQueue:
        """The calls that workers make for its writer (WORK-1); a reader's is looked at only."""
        ...

    def append_now(self, batch: Sequence[StreamAppend], *, timeout: float = 30.0) -> Committed:
        """Append and wait: the blocking form, for doors.

        Raises:
            AppendConflict: a stream was not at its expected version.
            StoreUnavailable: the store could not take it in time.
        """
        ...

    def keys_without(self, places: Iterable[tuple[str, int]], /) -> tuple[int, Sequence[str]]:
        """Return how many keys an erasure destroys, by the streams and versions of its events, and streams of which copies keep words (CRYPT-4).

        A copy shows them that has the keys of the log: they are not encrypted, or other events of the stream have the same key.
        """
        ...

    def destroy_keys(self, streams: Collection[str]) -> int:
        """Destroy the keys of streams that encrypt nothing any more, and return their number (CRYPT-4).

        Raises:
            StoreUnavailable: they can't be written over.
        """
        ...

    def let_go(self) -> Sequence[str]:
        """Have the database let go of what was erased, also where replaced rows stood; return in words what it could not (ERASE-1)."""
        ...

    def check(self) -> None:
        """Check that the log can be used in this process, without asking the store.

        Raises:
            ForkedStoreError: another process opened it, of which this one is a fork.
            StoreUnavailable: it is closed.
        """
        ...

    def announce_gateway(self, address: str | None, *, advertised: str | None = None) -> None:
        """Publish the address of this writer's gateway (None: it has none any more), for commands that find the log taken.

        Where hosts of several machines share the log, it is the `advertised` one, if there is one (STBY-6).
        """
        ...

    def on_superseded(self, listener: Callable[[LogError], None]) -> None:
        """Tell a listener once that another writer has taken the log: nothing can be written here any more (STBY-4)."""
        ...

    def close(self) -> None:
        """Finish what was queued, close, and give up the lock."""
        ...
