"""Reads the events of a log: proves each row, and detects missing ones."""

import logging
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final

from eventsourcing.persistence import StoredEvent

from intersession_events.basics.errors import CorruptEvent, UnknownTopic
from intersession_events.log.envelope import FIRST
from intersession_events.log.lineage import Lineage
from intersession_events.log.log import Gathers
from intersession_events.log.recorded import Gathered, Reads, Recorded, StreamEnd, StreamPart
from intersession_events.log.row_state import of_id
from intersession_events.log.sql import COLUMNS, Question, Together, among, filled
from intersession_events.stores.database import Row, notification_of, of_stream, typed
from intersession_events.stores.library.frontier import Frontier
from intersession_events.stores.library.mapper import ChainedMapper
from intersession_events.stores.portable.reading.recorder import ReadsLog
from intersession_events.stores.portable.snapshots.recorder import SNAPSHOTS, TABLE

PAGE: Final = 1000
"""Rows fetched at a time; no reader holds a snapshot longer than a page takes."""

_LOGGER: Final = logging.getLogger("intersession.store")

_PARTS: Final = 64
"""The most parts of streams in one statement."""

_AT_ONCE: Final = 8
"""The most statements sent together: their results are in memory at the same time."""

_AT: Final = COLUMNS + "WHERE rowid IN ({}) ORDER BY rowid"
_WHOLE: Final = COLUMNS + "WHERE originator_id IN ({}) ORDER BY originator_id, originator_version"
_OF_PARTS: Final = COLUMNS + "JOIN (VALUES "
_A_PART: Final = "(?, CAST(? AS BIGINT), CAST(? AS BIGINT))"
_IN_ORDER: Final = (
    ") AS part ON originator_id = part.column1 AND originator_version > part.column2 "
    "AND originator_version <= part.column3 ORDER BY originator_id, originator_version"
)

_STREAMS: Final = (
    "WITH RECURSIVE named (name) AS (SELECT MIN(originator_id) FROM stored_events WHERE originator_id >= ? "
    "UNION ALL SELECT (SELECT MIN(originator_id) FROM stored_events WHERE originator_id > named.name) "
    "FROM named WHERE named.name < ?) SELECT name FROM named WHERE name IS NOT NULL"
)
"""One look by the index for each stream."""


class EventReader(Gathers):
    """Reads streams and the whole log from a recorder, through a mapper."""

    def __init__(self, recorder: ReadsLog, mapper: ChainedMapper) -> None:
        self._recorder = recorder
        self._mapper = mapper
        self.reads_from: object = recorder
        """What closes what is read from once nobody has it: whoever iterates has it still, without a name for the log."""

    @property
    def lineage(self) -> Lineage:
        """Which log each event was written in."""
        return self._mapper.lineage

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
        with typed(self._recorder.failures):
            # A row that somebody gave a version below 1 is read with the others, and does not hash.
            found = self._recorder.select_events(
                stream, gt=after or None, lte=to, desc=backwards, limit=limit
            )
        end = StreamEnd(stream, after, to, backwards, -1 if limit is None else limit)
        return self._of_stream(end, [_placed(self._mapper.to_domain_event(row)) for row in found])

    def _of_stream(self, end: StreamEnd, events: list[Recorded]) -> Sequence[Recorded]:
        """Return events of a stream that were read, of which none may be missing."""
        after, backwards, limit = end.after, end.backwards, end.limit
        whole = limit < 0 or len(events) < limit
        check_neighbours(
            events if not backwards else events[::-1],
            after if whole or not backwards else None,
            self._mapper.lineage,
        )
        return events

    def from_snapshot(
        self, stream: str, *, to: int | None = None, limit: int
    ) -> tuple[StoredEvent | None, Sequence[Recorded]] | None:
        """Read the last snapshot of a stream up to a version, unproven, and the first events after it, in one round trip.

        None where that is no gain, or where it fails for what somebody has made of the snapshots: each is read by itself then.

        Raises:
            CorruptEvent: one of the events was changed or is missing.
            UnknownTopic: one of them is of a newer version.
            StoreUnavailable: the store does not answer.
        """
        if not self._recorder.is_remote:
            return None
        last, last_of = of_stream(stream, gt=None, lte=to, desc=True, limit=1)
        rest, rest_of = of_stream(stream, gt=None, lte=to, desc=False, limit=limit)
        kept = f"(SELECT originator_version FROM {TABLE} {last})"  # noqa: S608 - the name is the library's
        behind = f"WHERE originator_version>=COALESCE({kept}, 1) AND {rest.removeprefix('WHERE ')}"
        try:
            snapshots, rows = self._recorder.each(
                [(SNAPSHOTS + last, last_of), (COLUMNS + behind, (*last_of, *rest_of))]
            )
        except Exception as error:
            failures = self._recorder.failures
            if not failures.is_known(error):
                raise
            if failures.is_of_the_store(error):
                raise failures.log_error(error) from error
            return None
        snapshot = StoredEvent(*snapshots[0]) if snapshots else None
        first = 1 if snapshot is None else snapshot.originator_version
        if (rows[0][2] if rows else 1) != first:
            return None  # a snapshot was taken or dropped between the two; or an event is missing
        events = [_placed(self.proven(row)) for row in rows]
        check_neighbours(events, first - 1, self._mapper.lineage)
        return snapshot, events

    def _whole(self, streams: Sequence[str], rows: Iterable[list[Row]]) -> list[list[Recorded]]:
        events: dict[str, list[Recorded]] = {stream: [] for stream in streams}
        for found in rows:
            for row in found:
                events[row[1]].append(_placed(self.proven(row)))
        for of_one in events.values():
            check_neighbours(of_one, 0, self._mapper.lineage)
        return [events[stream] for stream in streams]

    def _parts(self, parts: Sequence[StreamPart], rows: Iterable[list[Row]]) -> list[list[Recorded]]:
        known: dict[str, dict[int, Recorded]] = {part.stream: {} for part in parts}
        for found in rows:
            for row in found:
                if row[2] not in known[row[1]]:  # parts may lie one over the other
                    known[row[1]][row[2]] = _placed(self.proven(row))
        versions = {stream: sorted(events) for stream, events in known.items()}
        events = [
            [
                known[part.stream][version]
                for version in versions[part.stream][
                    bisect_right(versions[part.stream], part.after) : bisect_right(
                        versions[part.stream], part.to
                    )
                ]
            ]
            for part in parts
        ]
        for part, found_in in zip(parts, events, strict=True):
            check_neighbours(found_in, part.after, self._mapper.lineage)
        return events

    def gather(self, wanted: Reads, /, each: Together | None = None) -> Gathered:
        """Read events, parts of streams and rows of views, not as of one moment. `each` returns the rows of some statements at once.

        Raises:
            CorruptEvent: one of the events was changed or is missing; its `position` says which.
            UnknownTopic: one of them is of a newer version; the same.
        """
        many = (among(_AT, sorted(wanted.positions)), _of_parts(wanted.parts), among(_WHOLE, wanted.streams))
        ends_asked = list(map(_of_end, wanted.ends))
        first = [question for questions in many for question in questions]
        # Reading the ends of many streams reads little of each.
        at_once = [*first, *ends_asked] if len(first) <= _AT_ONCE else first[:_AT_ONCE]
        left = [] if len(first) <= _AT_ONCE else [*first[_AT_ONCE:], *ends_asked]
        asked = [*wanted.questions, *at_once]
        found = list(self._each(asked)) if each is None else each(asked)
        given = len(wanted.questions)
        rows = chain(found[given:], self._each(left))
        at, parts, streams, ends = (list(islice(rows, len(questions))) for questions in (*many, ends_asked))
        return Gathered(
            rows=found[:given],
            events=[self.proven(row) for page in at for row in page],
            parts=self._parts(wanted.parts, parts),
            streams=self._whole(wanted.streams, streams),
            ends=[
                self._of_stream(end, [_placed(self.proven(row)) for row in page])
                for end, page in zip(wanted.ends, ends, strict=True)
            ],
        )

    def all(
        self,
        *,
        after: int = 0,
        to: int | None = None,
        limit: int | None = None,
        topics: Collection[str] = (),
    ) -> Iterator[Recorded]:
        """Read all events with `after < position <= to`, in order, in pages; every row is proven.

        `topics` are stored names: only events of these, if any are given.

        Raises:
            CorruptEvent: a row was changed; its `position` says where to read on.
            UnknownTopic: a row is of a newer version; the same.
        """
        left, named = limit, tuple(topics)
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            with typed(self._recorder.failures):
                page = self._recorder.select_notifications(after, size, to, named, inclusive_of_start=False)
            yield from map(self._mapper.to_domain_event, page)
            if len(page) < PAGE:
                return
            after = page[-1].id
            left = None if left is None else left - len(page)

    def streams(self, prefix: str) -> list[str]:
        """Return the names of the streams that begin with a prefix, sorted.

        Raises:
            CorruptEvent: the name of one of them is no text.
        """
        with typed(self._recorder.failures):
            found = self._recorder.event_rows(_STREAMS, (prefix, _behind(prefix)))
        for (name,) in found:
            if isinstance(name, bytes):
                raise CorruptEvent(f"the name of a stream is no text: {name!r}")
        return [name for (name,) in found if name.startswith(prefix)]

    def rows(self, *, after: int | None = 0, to: int | None = None, limit: int = PAGE) -> list[Row]:
        """Return rows with `after < position <= to` as stored, unproven: for verification.

        `after` is None for all there are.

        Raises:
            CorruptEvent: a page of the file is damaged.
        """
        with typed(self._recorder.failures):
            found = self._recorder.event_rows(
                COLUMNS + f"WHERE rowid{'>=' if after is None else '>'}? AND rowid<=? ORDER BY rowid LIMIT ?",
                (-(2**63) if after is None else after, 2**63 - 1 if to is None else to, limit),
            )
        if found and after is not None and found[-1][0] <= after:
            # Reading on from there would never end.
            raise CorruptEvent(f"a page of the file is damaged: position {found[-1][0]} comes behind {after}")
        return found

    def with_id(self, beginning: str, *, limit: int) -> list[Recorded]:
        """Return the first events whose ids begin with a text, in the order of the log."""
        for condition, parameters in of_id(beginning):
            with typed(self._recorder.failures):
                found = self._recorder.event_rows(
                    COLUMNS + f"WHERE {condition} ORDER BY rowid LIMIT ?",
                    (*parameters, limit),
                )
            # A row may have the text elsewhere; what was found is looked at again.
            events = [event for event in map(self.proven, found) if event.id.startswith(beginning)]
            if events:
                return events
        return []

    def head(self) -> int:
        """Return the position of the last event; 0 if there is none."""
        with typed(self._recorder.failures):
            return self._recorder.max_notification_id() or 0

    def positions_given(self) -> int:
        """Return the last position that was ever assigned: greater than the head only if rows were removed."""
        with typed(self._recorder.failures):
            return self._recorder.positions_given()

    def proven(self, row: Row) -> Recorded:
        """Return the event of a row.

        Raises:
            CorruptEvent: it was changed.
            UnknownTopic: it is of a newer version.
        """
        return self._mapper.to_domain_event(notification_of(row))

    def _each(self, questions: Iterable[Question]) -> Iterator[list[Row]]:
        """Yield the rows of statements, of several in one round trip."""
        left = iter(questions)
        while some := list(islice(left, _AT_ONCE)):
            with typed(self._recorder.failures):
                found = self._recorder.each(some)
            yield from found

    def tell(self, frontier: Frontier) -> int:
        """Give the listeners of a frontier all events of the log behind it, and return its new position.

        Rows that can't be read are passed over.
        """
        while page := self.rows(after=frontier.head, limit=PAGE):
            recorded: list[Recorded] = []
            for row in page:
                try:
                    recorded.append(self.proven(row))
                except (CorruptEvent, UnknownTopic) as error:
                    _LOGGER.warning("position %d was passed over: %s", row[0], error)
            frontier.tell(recorded, page[-1][0])
        return frontier.head


def _of_parts(parts: Iterable[StreamPart]) -> list[Question]:
    asked = list(dict.fromkeys(parts))
    some = [filled(asked[at : at + _PARTS]) for at in range(0, len(asked), _PARTS)]
    return [
        (
            f"{_OF_PARTS}{', '.join([_A_PART] * len(parts))}{_IN_ORDER}",
            [value for part in parts for value in part],
        )
        for parts in some
    ]


def _of_end(end: StreamEnd) -> Question:
    rest, parameters = of_stream(
        end.stream, gt=end.after or None, lte=end.to, desc=end.backwards, limit=end.limit
    )
    return COLUMNS + rest, parameters


def _behind(prefix: str) -> str:
    """Return a text behind all that begin so."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else chr(0x10FFFF) * 2


def _placed(event: Recorded) -> Recorded:
    if event.position < 1:
        raise CorruptEvent(
            f"{event.stream!r} version {event.version}: stands at position {event.position}, and no writer gave that"
        )
    return event


def check_neighbours(events: Sequence[Recorded], after: int | None, lineage: Lineage) -> None:
    """Make sure that no event is missing between those that were read, or before the first of them."""
    version = after
    prev = FIRST if after == 0 else None
    for event in events:
        if lineage.forks and lineage.is_picked(event.stream, event.version, event.hash):
            version = prev = None
        if version is not None and event.version != version + 1:
            missing = CorruptEvent(
                f"{event.stream!r}: version {version + 1} is missing, {event.version} follows"
            )
            missing.position = event.position
            raise missing
        if prev is not None and event.prev != prev:
            broken = CorruptEvent(
                f"{event.stream!r} version {event.version}: does not follow the event before it"
            )
            broken.position = event.position
            raise broken
        version, prev = event.version, event.hash
