"""Folds streams from their last snapshots: reads a snapshot, checks it against the log, and reads the events behind it.

As `Repository.get` of the eventsourcing library, from the same snapshot store, with three differences. What is behind a snapshot is read
in pages, so that a long stream is never in memory as a whole. A snapshot that does not fit the log is dropped, not believed. And a
long stretch without snapshots gets some on the way.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar, cast

from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import EventStore

from intersession_events.basics.errors import CorruptEvent, LogError
from intersession_events.log.recorded import Recorded
from intersession_events.log.states import EVERY, LARGEST_STATE, Folded, Folding, Snapshot
from intersession_events.stores.later import Loader
from intersession_events.stores.portable.reading.events import EventReader, check_neighbours
from intersession_events.stores.portable.snapshots.recorder import KeepsSnapshots

_LOGGER: Final = logging.getLogger("intersession.store")

S = TypeVar("S")


class StreamStates:
    """The states of one log's streams. `clear` deletes all snapshots, in a transaction of the writer's."""

    def __init__(
        self,
        snapshots: EventStore[str],
        events: EventReader,
        loader: Loader,
        clear: Callable[[], int],
    ) -> None:
        self._snapshots = snapshots
        self._recorder = cast("KeepsSnapshots", snapshots.recorder)
        self._events = events
        self._loader = loader
        self._clear = clear

    def fold(self, stream: str, folding: Folding[S], *, to: int | None = None) -> Folded[S]:
        """Return the state of a stream, as of a version (None: now).

        Raises:
            CorruptEvent: an event that was read was changed, or is missing.
            UnknownTopic: one is of a newer version.
        """
        as_of = self._recorder.erasures
        found, page = self._begun(stream, folding, to)
        (folded,) = deque(self._walk(stream, folding, found, to, as_of=as_of, page=page), maxlen=1)
        return folded

    def walk(self, stream: str, folding: Folding[S], *, since: int = 0) -> Iterator[Folded[S]]:
        """Yield the state at a version that has a snapshot (0: the beginning), then after every few events behind it.

        Raises:
            CorruptEvent: as `fold` does.
            UnknownTopic: the same.
        """
        as_of = self._recorder.erasures
        found = self._latest(stream, folding, since) if since else None
        return self._walk(stream, folding, found, None, as_of=as_of)

    def load(
        self, stream: str, folding: Folding[S], on_folded: Callable[[Folded[S] | Exception], None]
    ) -> None:
        """Fold a stream on a reader's thread; never blocks."""
        self._loader.later(partial(self.fold, stream, folding), on_folded)

    def keep(self, stream: str, folding: Folding[S], folded: Folded[S], *, as_of: int = 0) -> bool:
        """Store a state as a snapshot with the next commit; False if it is not to be stored, or can't be.

        Nobody says when it was begun. So once something was erased in the stream it is not written any more: what is folded
        anew is, and an actor that wakes again does that.
        """
        if folded.last is None or self._recorder.submit is None:
            return False
        data = folding.encode(folded.state)
        if data is None or len(data) > LARGEST_STATE:
            return False
        snapshot = Snapshot(
            stream=stream, version=folded.last.version, topic=folding.topic, hash=folded.last.hash, data=data
        )
        try:
            self._snapshots.put([snapshot], as_of=as_of)
        except LogError as error:
            _LOGGER.debug("%s version %d: no snapshot: %s", stream, snapshot.version, error)
            return False
        return True

    def versions(self, stream: str, topic: str) -> Sequence[int]:
        """Return the versions of a stream that have a snapshot of this shape, in order."""
        return self._recorder.versions(stream, topic)

    def streams(self) -> Sequence[str]:
        """Return the names of the streams that have snapshots, sorted.

        Raises:
            CorruptEvent: the snapshots can't be read.
            StoreUnavailable: the store does not answer.
        """
        return self._recorder.streams()

    def kept(self, stream: str, *, version: int | None = None) -> Iterator[Snapshot | CorruptEvent]:
        """Yield the snapshots of a stream by version, or those of one version; for each changed one, an error.

        Raises:
            CorruptEvent: all of a stream are asked for, and can't be read.
            StoreUnavailable: all of a stream are asked for, and the store does not answer.
        """
        found = (
            self._recorder.every(stream)
            if version is None
            else self._recorder.select_events(stream, gt=version - 1, lte=version)
        )
        for stored in found:
            try:
                yield self._snapshots.mapper.to_domain_event(stored)  # type: ignore[misc]  # of this store, these are all
            except CorruptEvent as error:
                yield error

    def problems(self) -> Iterator[str]:
        """Say what is wrong with the table of snapshots itself.

        Raises:
            CorruptEvent: the snapshots can't be read.
            StoreUnavailable: the store does not answer.
        """
        yield from self._recorder.problems()
        yield from self._recorder.nameless()

    def drop(self) -> int:
        """Delete all snapshots, and return how many there were.

        Raises:
            StoreUnavailable: this log is open for reading only.
        """
        return self._clear()

    def _walk(
        self,
        stream: str,
        folding: Folding[S],
        found: tuple[S, Snapshot] | None,
        to: int | None,
        *,
        as_of: int,
        page: Sequence[Recorded] | None = None,
    ) -> Iterator[Folded[S]]:
        """Go on from a snapshot's state, or from the beginning; `page` has the first events from there on, if they were read."""
        state, snapshot = found or (folding.begin(), None)
        kept = 0 if snapshot is None else snapshot.version
        last: Recorded | None = None
        while True:
            # With a snapshot, the event that it is after is read as well: the state must be of this very event.
            after = last.version if last is not None else max(kept - 1, 0)
            if page is None:
                page = self._events.stream(stream, after=after, to=to, limit=EVERY)
            if last is None and snapshot is not None:
                if not page or page[0].hash != snapshot.hash:
                    reason = "the log has another event there, or none"
                    self._forget(stream, snapshot.version, folding.topic, reason)
                    state, snapshot, kept, page = folding.begin(), None, 0, None
                    continue
                last, fresh = page[0], page[1:]
                yield Folded(state, last, kept)
            else:
                if last is not None:  # within a page that was looked at
                    check_neighbours([last, *page[:1]], None, self._events.lineage)
                fresh = page
            if fresh:
                state, last = folding.apply(state, fresh), fresh[-1]
            if (
                last is not None
                and last.version - kept >= EVERY
                and self.keep(stream, folding, Folded(state, last, kept), as_of=as_of)
            ):
                kept = last.version
            if fresh or snapshot is None:
                yield Folded(state, last, kept)
            if len(page) < EVERY:
                return
            page = None

    def _begun(
        self, stream: str, folding: Folding[S], to: int | None
    ) -> tuple[tuple[S, Snapshot] | None, Sequence[Recorded] | None]:
        """Return the state of the last snapshot, and the events from its own on where they came with it."""
        together = self._events.from_snapshot(stream, to=to, limit=EVERY)
        if together is None:
            return self._latest(stream, folding, to), None
        row, page = together
        if row is None:
            return None, page
        try:
            found = self._state_of(self._snapshots.mapper.to_domain_event(row), folding)
        except CorruptEvent as error:
            self._forget(stream, row.originator_version, folding.topic, error)
            found = None
        return (None, None) if found is None else (found, page)

    def _latest(self, stream: str, folding: Folding[S], to: int | None) -> tuple[S, Snapshot] | None:
        """Return the state of the last snapshot up to a version, if it is whole and of this shape."""
        try:
            snapshot = next(self._snapshots.get(stream, lte=to, desc=True, limit=1), None)
        except CorruptEvent as error:
            (row,) = self._recorder.select_events(stream, lte=to, desc=True, limit=1)
            self._forget(stream, row.originator_version, folding.topic, error)
            return None
        return self._state_of(snapshot, folding)

    def _state_of(
        self, snapshot: DomainEventProtocol[str] | None, folding: Folding[S]
    ) -> tuple[S, Snapshot] | None:
        """Return the state in a snapshot, if it has this shape."""
        if not isinstance(snapshot, Snapshot):
            return None
        stream = snapshot.stream
        if snapshot.topic != folding.topic:
            reason = f"its shape is {snapshot.topic}, this version's is {folding.topic}"
            # Behind an upgrade that is so for each long session, and as it should be.
            self._forget(stream, snapshot.version, folding.topic, reason, level=logging.INFO)
            return None
        try:
            return folding.decode(snapshot.data, snapshot.version), snapshot
        except (ValueError, TypeError, RecursionError) as error:
            self._forget(stream, snapshot.version, folding.topic, error)
            return None

    def _forget(
        self, stream: str, version: int, topic: str, reason: object, *, level: int = logging.WARNING
    ) -> None:
        _LOGGER.log(
            level,
            "the snapshot of %r version %s is not used, the stream is folded anew: %s",
            stream,
            version,
            reason,
        )
        self._recorder.forget(stream, version, topic)
