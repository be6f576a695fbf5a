"""One append as the writer writes it: checks versions, computes hashes, reads back what conflicts."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec
from eventsourcing.sqlite import SQLiteCursor

from intersession_events.log import (
    ANY_VERSION,
    FIRST,
    SALT_BYTES,
    Committed,
    Conflict,
    Draft,
    OnOutcome,
    Outcome,
    Recorded,
    Unavailable,
    opened,
    seal,
)
from intersession_events.stores.sqlite.event_reader import COLUMNS, Row, event_of
from intersession_events.stores.sqlite.failures import log_error

CACHED: Final = 20_000
"""This many streams are remembered (a few megabytes); the others are read again."""


_LAST: Final = COLUMNS + "WHERE originator_id=? ORDER BY originator_version DESC LIMIT 1"


class Head(NamedTuple):
    """Where a stream ends."""

    version: int
    hash: str


EMPTY: Final = Head(0, FIRST)


class Heads:
    """A bounded memory of stream heads. Only the writer has one: its word is the file's as long as it alone writes."""

    def __init__(self, log_id: str) -> None:
        self._log_id = log_id
        self._known: OrderedDict[str, Head] = OrderedDict()

    def of(self, cursor: SQLiteCursor, stream: str) -> Head:
        """Return the head of a stream, from the file if need be.

        Raises:
            CorruptEvent: the stream's last row is damaged, so nothing can follow it.
        """
        head = self._known.get(stream)
        if head is None:
            row = _row(cursor, _LAST, (stream,))
            head = EMPTY
            if row is not None:
                last = event_of(row, self._log_id)
                head = Head(last.version, last.hash)
            self._known[stream] = head
        else:
            self._known.move_to_end(stream)
        return head

    def learn(self, heads: dict[str, Head]) -> None:
        """Take in what was just written."""
        for stream, head in heads.items():
            self._known[stream] = head
            self._known.move_to_end(stream)
        while len(self._known) > CACHED:
            self._known.popitem(last=False)

    def forget(self) -> None:
        """Trust nothing that was learnt: a transaction was rolled back."""
        self._known.clear()


_LOGGER: Final = logging.getLogger("intersession.store")

_AT_VERSION: Final = COLUMNS + "WHERE originator_id=? AND originator_version=?"
_AT_POSITION: Final = COLUMNS + "WHERE rowid=?"

T = TypeVar("T")


class Encoded(NamedTuple):
    """A draft with its stored form, made in the thread of whoever appends."""

    draft: Draft
    topic: str
    payload: bytes


class Part(NamedTuple):
    """A `StreamAppend` whose drafts are encoded."""

    stream: str
    expected: int
    events: Sequence[Encoded]


class LogClock:
    """The latest time that the log itself has recorded, in ms: what is recorded later has no earlier one.

    The machine's clock may be set back, and what two threads read of it may be written the other way round.
    """

    def __init__(self, latest: int) -> None:
        self._latest = latest

    def of(self, draft: Draft) -> int:
        """Return the time to record for a draft. What an import brings keeps the time it had."""
        if draft.is_dated:
            return draft.time
        self._latest = max(self._latest, draft.time)
        return self._latest


class Sealing(NamedTuple):
    """What the appends of one writer have in common."""

    log_id: str
    epoch: int
    entropy: Callable[[int], bytes]
    heads: Heads
    clock: LogClock
    insert: Callable[[SQLiteCursor, Sequence[tuple[str, int, str, bytes]]], list[int]]


class Append:
    """The events of one caller, for one or several streams: all of them or none."""

    alone = False

    def __init__(self, sealing: Sealing, parts: Sequence[Part], on_outcome: OnOutcome) -> None:
        self.recorded: tuple[Recorded, ...] = ()
        """What this append put in the log; empty if it was a conflict or had been recorded before."""
        self._sealing = sealing
        self._parts = parts
        self._in_order = causal_order(parts)
        self._on_outcome = on_outcome
        self._rows: list[tuple[str, int, str, bytes]] = []
        self._verdict: Outcome | None = None

    def write(self, cursor: SQLiteCursor) -> None:
        """Check the versions, then seal and insert; or keep the verdict that it can't be done."""
        self.recorded, self._rows, self._verdict = (), [], None
        ends: dict[str, Head] = {}
        versions: dict[str, int] = {}
        for part in self._parts:
            if part.stream not in ends:
                ends[part.stream] = self._sealing.heads.of(cursor, part.stream)
            version = versions.get(part.stream, ends[part.stream].version)
            if part.expected not in {ANY_VERSION, version}:
                again = self._recorded_before(cursor)
                self._verdict = (
                    Conflict(stream=part.stream, expected=part.expected, actual=version)
                    if again is None
                    else Committed(recorded=again, again=True)
                )
                return
            versions[part.stream] = version + len(part.events)
        self.recorded = tuple(self._seal(ends))
        for recorded, position in zip(self.recorded, self._sealing.insert(cursor, self._rows), strict=True):
            msgspec.structs.force_setattr(recorded, "position", position)
        self._verdict = Committed(recorded=self.recorded)
        self._sealing.heads.learn(ends)

    def is_stored(self, cursor: SQLiteCursor) -> bool:
        """Say whether the rows are in the file, byte for byte: no other append has the same salts and hashes."""
        for recorded, row in zip(self.recorded, self._rows, strict=True):
            cursor.execute(_AT_POSITION, (recorded.position,))
            found = cursor.fetchone()
            if found is None or tuple(found)[1:] != row:
                return False
        return bool(self.recorded)

    def done(self, error: Exception | None) -> None:
        """Tell the caller."""
        if error is not None or self._verdict is None:
            self.recorded = ()
            self._verdict = Unavailable(error=log_error(error or RuntimeError("never written")))
        tell(self._on_outcome, self._verdict)

    def _seal(self, ends: dict[str, Head]) -> Iterator[Recorded]:
        salts = self._sealing.entropy(SALT_BYTES * len(self._in_order))
        for index, (stream, (draft, topic, payload)) in enumerate(self._in_order):
            end = ends[stream]
            state, recorded = seal(
                draft,
                topic,
                payload,
                log_id=self._sealing.log_id,
                stream=stream,
                version=end.version + 1,
                time=self._sealing.clock.of(draft),
                epoch=self._sealing.epoch,
                prev=end.hash,
                salt=salts[SALT_BYTES * index : SALT_BYTES * (index + 1)],
            )
            self._rows.append((stream, recorded.version, topic, state))
            yield recorded
            ends[stream] = Head(recorded.version, recorded.hash)

    def _recorded_before(self, cursor: SQLiteCursor) -> tuple[Recorded, ...] | None:
        """Return the same events if an earlier try recorded them all, or None.

        Where a version was expected, the event of that version is compared by id. Where any was, the event lies
        where the same append would have put it: beside the others, in the order of causes or, in a log of version
        0.1.0, in the order of the append.
        """
        versions: dict[str, int] = {}
        known: dict[str, Row] = {}  # by the drafts' ids
        for part in self._parts:
            version = versions.get(part.stream, part.expected)
            for event in part.events:
                if version != ANY_VERSION:
                    version += 1
                    row = _row(cursor, _AT_VERSION, (part.stream, version))
                    if row is None:
                        return None
                    known[event.draft.id] = row
            versions[part.stream] = version
        as_given = [(part.stream, event) for part in self._parts for event in part.events]
        for order in (self._in_order, as_given):
            if (found := self._recorded_in(order, known, cursor)) is not None:
                return found
        return None

    def _recorded_in(
        self, order: Sequence[tuple[str, Encoded]], known: dict[str, Row], cursor: SQLiteCursor
    ) -> tuple[Recorded, ...] | None:
        first = next(
            (
                known[event.draft.id][0] - index
                for index, (_, event) in enumerate(order)
                if event.draft.id in known
            ),
            None,
        )
        if first is None:
            return None
        found: list[Recorded] = []
        for index, (stream, event) in enumerate(order):
            row = known.get(event.draft.id) or _row(cursor, _AT_POSITION, (first + index,))
            if row is None or row[1] != stream or opened(row[4], where=repr(stream)).id != event.draft.id:
                return None
            found.append(event_of(row, self._sealing.log_id))
        return tuple(found)


def causal_order(parts: Sequence[Part]) -> Sequence[tuple[str, Encoded]]:
    """Return the events of one append, with their streams, so that no event stands before its cause.

    Each stream keeps its order, and all else stays as it was given.
    """
    left = [(part.stream, event) for part in parts for event in part.events]
    if len(parts) == 1:
        return left
    missing = {event.draft.id for _, event in left}
    ordered: list[tuple[str, Encoded]] = []
    while left:
        put_off: list[tuple[str, Encoded]] = []
        waiting: set[str] = set()
        for stream, event in left:
            if stream in waiting or event.draft.causation in missing:
                put_off.append((stream, event))
                waiting.add(stream)
            else:
                ordered.append((stream, event))
                missing.discard(event.draft.id)
        if len(put_off) == len(left):
            return [*ordered, *put_off]  # they are said to have caused each other
        left = put_off
    return ordered


def tell(callback: Callable[[T], None], value: T) -> None:
    """Call back, and log what the callback raises: the next append belongs to another caller."""
    try:
        callback(value)
    except (Exception, SystemExit):
        _LOGGER.exception("a callback of the log raised; it must not")


def _row(cursor: SQLiteCursor, statement: str, parameters: Sequence[object]) -> Row | None:
    cursor.execute(statement, parameters)
    row = cursor.fetchone()
    return None if row is None else tuple(row)
