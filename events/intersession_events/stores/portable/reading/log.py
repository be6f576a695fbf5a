"""The events of a log, as whoever opened it reads them: in its process alone, from connections that never wait for its writer."""

import os
from collections.abc import Callable
from functools import partial, wraps
from typing import Concatenate, ParamSpec, TypeVar

from intersession_events.basics.errors import ForkedStoreError, StoreUnavailable
from intersession_events.facts import ForkedFrom
from intersession_events.log.lineage import Lineage
from intersession_events.log.log import Gathers, OnLoaded
from intersession_events.stores.later import Loader
from intersession_events.stores.portable.reading.events import EventReader
from intersession_events.stores.portable.reading.recorder import ReadsLog
from intersession_events.stores.portable.snapshots.states import StreamStates

_Taken = ParamSpec("_Taken")
_Read = TypeVar("_Read")


def _reads(
    read: Callable[Concatenate[EventReader, _Taken], _Read],
) -> Callable[Concatenate["ReadableLog", _Taken], _Read]:
    """Return a method of the reader as one of a log: it takes and returns the same, in the process that opened the log."""

    @wraps(read)
    def read_of_log(self: "ReadableLog", /, *args: _Taken.args, **kwargs: _Taken.kwargs) -> _Read:
        of_reader: Callable[_Taken, _Read] = getattr(self.events, read.__name__)  # a reader may have its own
        return of_reader(*args, **kwargs)

    return read_of_log


class ReadableLog(Gathers):
    """The reading half of a `Log`, but for its head and its views. A database's own log sets the parts that are named here."""

    path: str
    """Where the log is, in words: a file's real path, or a URL without its password."""
    place: str
    """Beside which path lies what is kept in files beside the log (`<place>.forks`, workspaces); `:memory:` for nowhere."""
    log_id: str
    """The log's identity, a UUID."""
    epoch: int
    """The writer's epoch; 0 for a reader."""
    _recorder: ReadsLog
    _events: EventReader
    _states: StreamStates

    def __init__(self, *, threads: bool) -> None:
        self._process = os.getpid()
        self._closed = False
        self._loader = Loader(threads=threads, check=self._check_process)

    @property
    def forked(self) -> ForkedFrom | None:
        """Of which log it began as a part, and how; None for a log that is no fork (FORK-2)."""
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
        """Make sure that it can be used here. It asks nobody: a store that is away is noticed by whoever reads.

        Raises:
            ForkedStoreError: another process opened it, of which this one is a fork.
            StoreUnavailable: it is closed.
        """
        self._check_process()
        if self._closed:
            raise StoreUnavailable("the log is closed")

    @property
    def events(self) -> EventReader:
        """The reader of its events, of which it has the methods below.

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
        """Read a stream behind a version, off a reader's thread; never blocks."""
        self._loader.later(partial(self._events.stream, stream, after=after), on_loaded)

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
