"""Where a run's recording begins in a long session: at a snapshot, so that earlier events are not read, and of later ones only a few."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from intersession_actors.owners.holding.standing import HELD
from intersession_actors.owners.session.folding import SHAPE, session_in
from intersession_actors.owners.session.state import Session
from intersession_events.facts import run_named
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.log.states import Snapshot
from intersession_projections.views.run_outcomes.runs import Runs


class VersionRange(NamedTuple):
    """The versions of a stream's first and last event that are known to stand before a position."""

    first: int
    last: int


class SnapshotStart(NamedTuple):
    """A session's state after one of its events, from a snapshot.

    `first` is the version of the first event that is read: all is of a run that was under way there, or waited, and still is, or
    does, where the replay begins.
    """

    version: int
    first: int
    data: bytes
    session: Session


_FEW: Final = 16
_PAGE: Final = 250

MARGIN: Final = 8
"""What leads to a run may be recorded a little before it, in the same append."""

_TRIED: Final = 4
"""The number of snapshots that are tried, the last ones."""

Begins = Mapping[str, SnapshotStart]
"""By stream."""


def snapshot_start_before(
    log: Log, stream: str, position: int, *, begins: int, last: int, own: VersionRange | None
) -> tuple[SnapshotStart, Sequence[Recorded]] | None:
    """Return a session's last suitable snapshot before a position, and the events from there up to the position `last`.

    None where there is none. All up to `begins` has happened before the run. `own` is the part of the stream that surely has to be read, if any.
    """
    for version in _before(log, stream, position, own):
        for snapshot in log.states.kept(stream, version=version):
            if not isinstance(snapshot, Snapshot) or snapshot.topic != SHAPE:
                continue
            session = session_in(snapshot.data)
            if HELD in session.settings:
                continue  # who held it is told by an event
            events = read_until(log, stream, last, after=version - 1, own=own)
            if not events or events[0].hash != snapshot.hash:
                continue
            first = _first(log, session, events, begins)
            past = log.stream(stream, after=first - 1, to=version - 1) if first < version else ()
            if len(past) == version - first:
                return SnapshotStart(version, first, snapshot.data, session), [*past, *events]
    return None


def read_until(
    log: Log, stream: str, last: int, *, after: int, own: VersionRange | None
) -> Sequence[Recorded]:
    """Return a stream's events behind a version, up to a position of the log."""
    found: list[Recorded] = []
    few = _FEW
    limit = few if own is None else max(own.last - after, 0) + few
    while page := log.stream(stream, after=after, limit=limit):
        found += page
        if len(page) < limit or page[-1].position > last:
            break
        few = min(2 * few, _PAGE)
        after, limit = page[-1].version, few
    while found and found[-1].position > last:
        found.pop()
    return found


def _before(log: Log, stream: str, position: int, own: VersionRange | None) -> Iterator[int]:
    """Yield the versions of the last snapshots before a position, the last one first."""
    versions = log.states.versions(stream, SHAPE)
    # As a rule the run itself is the first of its chain, so that its first event shows how far back they are.
    behind = len(versions) if own is None else bisect_left(versions, own.first)
    if behind and _position(log, stream, versions[behind - 1]) >= position:
        behind = bisect_left(
            versions, position, hi=behind - 1, key=lambda version: _position(log, stream, version)
        )
    yield from reversed(versions[max(behind - _TRIED, 0) : behind])


def _first(log: Log, session: Session, events: Sequence[Recorded], begins: int) -> int:
    """Return the version from which a stream tells all work that was open at the first of its events, and goes on behind `begins`."""
    version = events[0].version
    told = {run_named(recorded.event) for recorded in events if recorded.position > begins}
    waiting = (*session.queue, *((session.running.waiting,) if session.running is not None else ()))
    asked = {one.queued.run_id for one in waiting} & told
    if not asked:
        return version
    found = Runs(log).many_without_words(asked)
    if len(found) < len(asked):
        return 1
    return max(1, min(version, *(run.first_version - MARGIN for run in found.values())))


def _position(log: Log, stream: str, version: int) -> int:
    (recorded,) = log.stream(stream, after=version - 1, to=version)
    return recorded.position
