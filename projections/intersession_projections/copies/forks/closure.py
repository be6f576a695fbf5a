"""Finds the streams that a fork needs: all that a run touches, and all that their events refer to (FORK-1).

Rows are read as they lie, and of their payloads only what refers to something: a run may have very many. Nothing is proven
here; a reader of the fork proves each event.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from intersession_events.basics.ids import (
    SESSIONS,
    access_stream,
    delivery_stream,
    exchange_stream,
    session_stream,
    spawn_stream,
)
from intersession_events.log.log import Log
from intersession_events.log.row_state import name_of, packed_names_in
from intersession_events.log.sql import SqlValue, marks
from intersession_projections.basics.columns import hashed, packed, unpacked
from intersession_projections.copies.forks.references import References
from intersession_projections.questions.places.runs_named import Flow, flow_sessions, flow_stream
from intersession_projections.views.run_outcomes.runs import Runs

_ROWS: Final = "SELECT rowid, topic, state FROM stored_events WHERE originator_id IN ({}) AND rowid<=?"
_FLOWS: Final = "SELECT kind, id FROM flows WHERE {} IN ({}) AND accepted<=?"
_ACCEPTED: Final = "SELECT accepted FROM run_outcomes WHERE run_id IN ({}) AND accepted<=?"
_STREAMS: Final = "SELECT DISTINCT originator_id FROM stored_events WHERE rowid IN ({})"
_AT_ONCE: Final = 200
"""The most streams in one statement."""
_WINDOW: Final = 4_096
_NEAR: Final = 64
"""An event may stand before its cause in one append, but no further than this."""


def roots_of(log: Log, flow: Flow) -> list[str]:
    """Return the first streams of a run, an exchange or a spawn: its own, and those of its sessions.

    So do the sessions that it has come to later: where it is forked before that, it finds them as they stood.
    """
    own = flow_stream(flow)
    later = [] if flow.root is None else Runs(log).sessions_of_chain(flow.root, flow.accepted)
    sessions = dict.fromkeys((*flow_sessions(flow), *later))
    return [*map(session_stream, sessions), *([] if own is None else [own])]


def closed_streams(log: Log, roots: Iterable[str], at: int) -> frozenset[str]:
    """Return streams together with all streams that their events up to a position refer to.

    Those are the streams of sessions that they name, with their flows, deliveries and receipts; of exchanges, spawns and
    deliveries; and those of the events that they were caused by. What is in stream `log` is left out.

    Raises:
        StoreUnavailable: the log can't be read.
    """
    closing = _Closing(log, at)
    closing.take(roots)
    while missing := closing.missing():
        closing.take(missing)
    return frozenset(closing.found)


class _Closing:
    """The streams found so far, and the references of their events."""

    def __init__(self, log: Log, at: int) -> None:
        self._log = log
        self._at = at
        self.found: set[str] = set()
        self._named = References()
        self._ids: set[bytes] = set()
        self._causes: dict[bytes, int] = {}
        """What events were caused by, and where the first of them stands."""
        self._asked: set[str] = set()
        self._looked_for: set[bytes] = set()

    def take(self, streams: Iterable[str]) -> None:
        """Add streams, and all that their events name with a type."""
        waiting = {*streams} - {"log"}
        while waiting:
            self.found |= waiting
            for part in _parts(sorted(waiting)):
                self._read(part)
            keys = [stream.removeprefix(SESSIONS) for stream in waiting if stream.startswith(SESSIONS)]
            waiting = {*self._told(), *self._of_sessions(keys)} - self.found

    def missing(self) -> list[str]:
        """Return the missing streams of references by id alone: runs and causes."""
        runs = self._named.runs - self._named.queued - self._asked
        self._asked |= runs
        streams = [*self._of_runs(sorted(runs))]
        wanted = {
            cause: position
            for cause, position in self._causes.items()
            if cause not in self._ids and cause not in self._looked_for
        }
        self._looked_for.update(wanted)
        streams += self._streams_of(wanted)
        return [stream for stream in dict.fromkeys(streams) if stream not in self.found and stream != "log"]

    def _read(self, streams: list[str]) -> None:
        ids, causes, named, chains = self._ids, self._causes, self._named, set[bytes]()
        for position, topic, state in self._log.query(_ROWS.format(marks(streams)), (*streams, self._at)):
            names = packed_names_in(state)
            if names is None:
                continue  # reading it as an event says what is wrong with it
            own, cause, chain = names
            ids.add(own)
            if cause:
                causes.setdefault(cause, position)
            chains.add(chain)
            named.take(topic, state)
        named.runs.update(map(name_of, chains - {b""}))

    def _told(self) -> Iterator[str]:
        """Yield the streams that events name with a type."""
        named = self._named
        yield from map(session_stream, named.sessions)
        yield from map(exchange_stream, named.exchanges)
        yield from map(spawn_stream, named.spawns)
        yield from map(delivery_stream, named.deliveries)
        yield from named.streams

    def _of_sessions(self, keys: list[str]) -> Iterator[str]:
        """Yield the flows that sessions began or took part in, their deliveries, and the sessions they were shown."""
        yield from map(access_stream, keys)
        for part in _parts([*map(hashed, keys)]):
            for column in ("session", "child"):
                for kind, name in self._log.query(_FLOWS.format(column, marks(part)), (*part, self._at)):
                    yield f"{kind}:{unpacked(name)}"

    def _of_runs(self, run_ids: list[str]) -> Iterator[str]:
        """Yield the streams in which runs were accepted."""
        for part in _parts([*map(packed, run_ids)]):
            found = self._log.query(_ACCEPTED.format(marks(part)), (*part, self._at))
            # Where the views are built beside the log, they can't be joined with it.
            positions = [position for (position,) in found]
            for (stream,) in self._log.query(_STREAMS.format(marks(positions)), positions):
                yield stream

    def _streams_of(self, causes: dict[bytes, int]) -> Iterator[str]:
        """Yield the streams of events by their ids. A log has no index of ids: what led to an event is near in most cases."""
        left = set(causes)
        last = min(max(causes.values(), default=0), self._at) + _NEAR
        while left and last > 0:
            first = max(0, last - _WINDOW)
            for position, stream, _, _, state in self._log.rows(after=first, limit=last - first):
                names = packed_names_in(state)
                if position <= last and names is not None and names[0] in left:
                    left.discard(names[0])
                    if position <= self._at:
                        yield stream
            last = first


V = TypeVar("V", bound=SqlValue)


def _parts(values: list[V]) -> Iterator[list[V]]:
    return (values[at : at + _AT_ONCE] for at in range(0, len(values), _AT_ONCE))
