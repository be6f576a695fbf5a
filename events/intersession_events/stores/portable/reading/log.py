"""The events of a log, as whoever opened it reads them: in its process alone, from connections that never wait for its writer."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial

from intersession_events.errors import ForkedStoreError, StoreUnavailable
from intersession_events.facts import ForkedFrom
from intersession_events.log import Lineage, OnLoaded, Recorded, StreamPart
from intersession_events.stores.database import Row
from intersession_events.stores.later import Loader
from intersession_events.stores.portable.reading.events import EventReader
from intersession_events.stores.portable.reading.recorder import ReadsLog
from intersession_events.stores.snapshots import StreamStates


class ReadableLog:
    """The reading half of a `Log`, but for its head and its views. A database's own log sets the parts that are named here."""

    path: str
    """Where the log is, in words: a file's real path, or a URL without its password."""
    place: str
    """Beside which path lies what is kept in files beside the log (`<place>.forks`, workspaces); `:memory:` for nowhere."""
    _log_id: str
    _epoch: int
    _recorder: ReadsLog
    _events: EventReader
    _states: StreamStates

    def __init__(self, *, threads: bool) -> None:
        self._process = os.getpid()
        self._closed = False
        self._loader = Loader(threads=threads, check=self._check_process)

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
        return self._events.lineage

    @property
    def states(self) -> StreamStates:
        """The states of the log's streams, folded from their last snapshots on."""
        return self._states

    def check(self) -> None:
        """Make sure that it can be used here. It asks nobody: a store that is away is noticed by whoever reads.

        Raises:
            ForkedStoreError: another process opened it, of which this one is a fork.
            StoreUnavailable: it is closed.
        """
        self._check_process()
        if self._closed:
            raise StoreUnavailable("the log is closed")

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

    def at(self, positions: Iterable[int]) -> Iterator[Recorded]:
        """Read the events at some positions, each once and in order, many in one statement; every row is proven.

        Raises:
            CorruptEvent: one of them was changed; its `position` says which.
            UnknownTopic: one of them is of a newer version; the same.
        """
        self._check_process()
        return self._events.at(positions)

    def whole(self, streams: Sequence[str]) -> Sequence[Sequence[Recorded]]:
        """Read some streams, each from its first event to its last, many in one statement; every row is proven.

        Raises:
            CorruptEvent: one of them was changed or is missing.
            UnknownTopic: one of them is of a newer version.
        """
        self._check_process()
        return self._events.whole(streams)

    def parts(self, parts: Sequence[StreamPart]) -> Sequence[Sequence[Recorded]]:
        """Read a part of each of some streams, many in one statement; every row is proven.

        Raises:
            CorruptEvent: one of them was changed or is missing.
            UnknownTopic: one of them is of a newer version.
        """
        self._check_process()
        return self._events.parts(parts)

    def load(self, stream: str, on_loaded: OnLoaded, *, after: int = 0) -> None:
        """Read a stream behind a version, off a reader's thread; never blocks."""
        self._loader.later(partial(self._events.stream, stream, after=after), on_loaded)

    def all(
        self,
        *,
        after: int = 0,
        to: int | None = None,
        limit: int | None = None,
        topics: Collection[str] = (),
    ) -> Iterator[Recorded]:
        """Read all events with `after < position <= to`, in order; every row is proven.

        `topics` are stored names: only events of these, if any are given.

        Raises:
            CorruptEvent: a row was changed; its `position` says where to read on.
            UnknownTopic: a row is of a newer version; the same.
        """
        self._check_process()
        return self._events.all(after=after, to=to, limit=limit, topics=tuple(topics))

    def streams(self, prefix: str) -> Sequence[str]:
        """Return the names of the streams that begin with a prefix, sorted.

        Raises:
            CorruptEvent: the name of one of them is no text.
        """
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

    def look(self) -> None:
        """Make sure that the store is still what was opened. Who only reads, or waits, would not notice: the next commit does.

        Raises:
            StoreUnavailable: it was deleted, moved, replaced or cut.
        """
        self._check_process()
        self._recorder.look()

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise ForkedStoreError(
                f"{self.path} was opened by pid {self._process} and this is its fork {os.getpid()}: open it again here"
            )
