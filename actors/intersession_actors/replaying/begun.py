"""Where the recording of one run begins in a long session: at a snapshot of it, so that what came long before is not read."""

from bisect import bisect_left
from collections.abc import Mapping
from typing import Final, NamedTuple

from intersession_actors.holding import HELD
from intersession_actors.session import SHAPE, Session, session_in
from intersession_events.log import EVERY, Log, Snapshot


class Begun(NamedTuple):
    """How a session stood after one of its events: what a snapshot holds, and of that where the session stood.

    `first` is the version of the first event that is read: of whatever had not come to its end there, all is.
    """

    version: int
    first: int
    data: bytes
    session: Session


MARGIN: Final = 8
"""What leads to a run may be recorded a little before it, in the same append."""

_PAGE: Final = 32
"""So many events are read at a time, backwards: what is under way has mostly begun just before."""

_TRIED: Final = 4
"""So many snapshots are looked at, the last ones: what did not come to its end in all that time is read from the beginning."""

Begins = Mapping[str, Begun]
"""By stream."""


def begun_before(log: Log, stream: str, position: int) -> Begun | None:
    """Return the last snapshot of a session before a position that will do; None where there is none."""
    versions = log.states.versions(stream, SHAPE)
    before = bisect_left(versions, position, key=lambda version: _position(log, stream, version))
    for version in reversed(versions[max(before - _TRIED, 0) : before]):
        for snapshot in log.states.kept(stream, version=version):
            if isinstance(snapshot, Snapshot) and snapshot.topic == SHAPE and _fits(log, snapshot):
                session = session_in(snapshot.data)
                first = _first(log, snapshot, session)
                if first is not None and HELD not in session.settings:  # who held it is told by an event
                    return Begun(snapshot.version, first, snapshot.data, session)
    return None


def _first(log: Log, snapshot: Snapshot, session: Session) -> int | None:
    """Return from where on a stream tells all of what is under way; None if that is far back."""
    open_ = {waiting.cause for waiting in session.queue}
    if session.running is not None:
        open_.add(session.running.waiting.cause)
    if not open_:
        return snapshot.version
    to, least = snapshot.version, max(0, snapshot.version - EVERY)
    while to > least:
        page = log.stream(snapshot.stream, after=max(least, to - _PAGE), to=to)
        for recorded in reversed(page):
            open_.discard(recorded.id)
            if not open_:
                return max(1, recorded.version - MARGIN)
        to -= _PAGE
    return None


def _position(log: Log, stream: str, version: int) -> int:
    (recorded,) = log.stream(stream, after=version - 1, to=version)
    return recorded.position


def _fits(log: Log, snapshot: Snapshot) -> bool:
    (recorded,) = log.stream(snapshot.stream, after=snapshot.version - 1, to=snapshot.version)
    return recorded.hash == snapshot.hash
