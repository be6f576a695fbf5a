"""One append as the writer writes it: checks versions, computes hashes, reads back conflicts."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from intersession_events.basics.crash_points import crash_point
from intersession_events.basics.errors import CorruptEvent, UnknownTopic
from intersession_events.basics.ids import CLOCK, event_id, is_event_id
from intersession_events.facts import Erased, left_of_payload, topic_of
from intersession_events.log.envelope import FIRST, SALT_BYTES
from intersession_events.log.erasing import erased_state, erasures
from intersession_events.log.log import InFlight
from intersession_events.log.recorded import (
    ANY_VERSION,
    Committed,
    Conflict,
    Draft,
    OnOutcome,
    Outcome,
    Recorded,
    Unavailable,
)
from intersession_events.log.row_state import opened
from intersession_events.log.sql import COLUMNS
from intersession_events.proofs.apart import parted, whole
from intersession_events.stores.database import Cursor, Row, notification_of
from intersession_events.stores.later import tell
from intersession_events.stores.library.mapper import ChainedMapper, Pending
from intersession_events.stores.portable.committing import Committing
from intersession_events.stores.portable.group_commit import Work
from intersession_events.stores.portable.recent import STEP_MS, KnownIds, LogClock
from intersession_events.stores.portable.snapshots.recorder import KeepsSnapshots

CACHED: Final = 20_000
"""This many streams are remembered (a few megabytes); the others are read again."""


_LAST: Final = COLUMNS + "WHERE originator_id=? ORDER BY originator_version DESC LIMIT 1"


Head = tuple[int, str]
"""Where a stream ends: the version of its last event, and that one's hash."""

EMPTY: Final[Head] = (0, FIRST)


class Heads:
    """A bounded cache of stream heads. Only the writer has one, and it is right as long as no other process writes."""

    def __init__(self, mapper: ChainedMapper, recorder: Committing) -> None:
        self._mapper = mapper
        self._recorder = recorder
        self._known: OrderedDict[str, Head] = OrderedDict()

    def of(self, cursor: Cursor, stream: str) -> Head:
        """Return the head of a stream, read from the log if it is not cached.

        Raises:
            CorruptEvent: the stream's last row is damaged, so nothing can follow it.
        """
        head = self._known.get(stream)
        if head is None:
            self._recorder.flush(cursor)
            head = self._known[stream] = self._head(_row(cursor, _LAST, (stream,)))
        else:
            self._known.move_to_end(stream)
        return head

    def foresee(self, cursor: Cursor, streams: Collection[str]) -> None:
        """Read the heads of all streams that are not cached in one statement, where the database is remote.

        One that is damaged is left to `of`, which fails its own append alone.
        """
        unknown = [stream for stream in streams if stream not in self._known]
        rows = self._recorder.ends_of(cursor, unknown) if unknown else None
        if rows is None:
            return
        ends = {row[1]: row for row in rows}
        for stream in unknown:
            with suppress(CorruptEvent, UnknownTopic):
                self._known[stream] = self._head(ends.get(stream))

    def _head(self, row: Row | None) -> Head:
        if row is None:
            return EMPTY
        last = self._mapper.to_domain_event(notification_of(row))
        return last.version, last.hash

    def learn(self, heads: dict[str, Head]) -> None:
        """Take in the rows that were just written."""
        for stream, head in heads.items():
            self._known[stream] = head
            self._known.move_to_end(stream)
        while len(self._known) > CACHED:
            self._known.popitem(last=False)

    def forget(self) -> None:
        """Drop everything learnt in a transaction that was rolled back."""
        self._known.clear()


_AT_VERSION: Final = COLUMNS + "WHERE originator_id=? AND originator_version=?"
_AT_POSITION: Final = COLUMNS + "WHERE rowid=?"


class Part(msgspec.Struct, frozen=True, gc=False):
    """A `StreamAppend` whose drafts were made into stored events, in the thread of the caller."""

    stream: str
    expected: int
    events: Sequence[Pending]


class Sealing(NamedTuple):
    """What the appends of one writer have in common."""

    mapper: ChainedMapper
    recorder: Committing
    epoch: int
    entropy: Callable[[int], bytes]
    heads: Heads
    known: KnownIds
    clock: LogClock
    snapshots: KeepsSnapshots


class NotTaken:
    """An append that was refused before it was queued."""

    has_failed = True
    stands = False

    def __init__(self, stream: str) -> None:
        self.stream = stream

    def hurry(self) -> None:
        """Do nothing: it has ended."""


class Append(Work):
    """The events of one caller, for one or several streams: all of them or none; with `behind`, only together with those."""

    def __init__(
        self,
        sealing: Sealing,
        parts: Sequence[Part],
        on_outcome: OnOutcome,
        *,
        behind: InFlight | None = None,
    ) -> None:
        self.stands = False
        """Whether it is written: in the transaction that goes on, or in one that is durable."""
        self.has_failed = False
        self.stream = parts[0].stream if parts else ""
        self._behind = behind
        self.recorded: tuple[Recorded, ...] = ()
        """What this append put in the log; empty if it was a conflict or had been recorded before."""
        self.erases = False
        """Whether one of these erases what was said in others."""
        self.written: tuple[Recorded, ...] = ()
        """All that was put in the log: beside these, before them, the event that says that the clock has stepped."""
        self._step: Recorded | None = None
        """That event."""
        self._sealing = sealing
        self.parts = parts
        self._in_order = parts[0].events if len(parts) == 1 else causal_order(parts)
        self._anywhere: list[Pending] = []
        """Those that no version was expected for."""
        self._on_outcome = on_outcome
        self._verdict: Outcome | None = None

    def write(self, cursor: Cursor) -> None:
        """Check the versions, then seal and insert; or keep the verdict that this can't be done."""
        self.recorded = self.written = ()
        self._verdict, self.stands, self._step, self.erases = None, False, None, False
        before = self._behind
        if isinstance(before, Append | NotTaken) and not before.stands:
            self._verdict = Conflict(
                stream=before.stream,
                expected=ANY_VERSION,
                actual=self._sealing.heads.of(cursor, before.stream)[0],
            )
            return
        sealing = self._sealing
        known, heads = sealing.known, sealing.heads
        ends: dict[str, Head] = {}
        versions: dict[str, int] = {}
        anywhere = self._anywhere = []
        for part in self.parts:
            stream, expected, events = part.stream, part.expected, part.events
            if stream not in ends:
                ends[stream] = heads.of(cursor, stream)
            version = versions.get(stream, ends[stream][0])
            if expected == ANY_VERSION:
                anywhere += events
                is_next = all(known.position_of(event.draft.id) is None for event in events)
            else:
                is_next = expected == version
            if not is_next:
                again = self._recorded_before(cursor)
                self._verdict = (
                    Conflict(stream=stream, expected=expected, actual=version)
                    if again is None
                    else Committed(recorded=again, again=True)
                )
                self.stands = again is not None
                return
            versions[stream] = version + len(events)
        first = self._in_order[0].draft if self._in_order else None
        # Nearly always that is all: the first event is of about the time of the last one.
        if first is None or first.is_dated or not -STEP_MS <= first.time - sealing.clock.latest <= STEP_MS:
            self._note_step(cursor)
        self._seal(ends)
        for event in anywhere:
            known.note(event.draft.id, event.recorded.position)
        if self.erases:
            self._erase(cursor)
        self._verdict = Committed(recorded=self.recorded)
        heads.learn(ends)
        self.stands = True

    def undo(self) -> None:
        """Forget the effects that were rolled back."""
        self.stands = False
        if self._step is not None:
            self._step = None
            self._sealing.clock.undo()
        self._sealing.known.undo(event.draft.id for event in self._anywhere)

    def hurry(self) -> None:
        """Have it written with the next transaction."""
        self._sealing.recorder.commits.hurry()

    def _erase(self, cursor: Cursor) -> None:
        """Erase payloads in the transaction of the event that authorises it: both are there, or neither."""
        self._sealing.recorder.flush(cursor)
        for stream, version, stands in erasures(self.recorded):
            row = _row(cursor, _AT_VERSION, (stream, version))
            written_in = self._sealing.mapper.lineage.log_id_at(0 if row is None else row[0])
            state = erased_state(row, stands, log_id=written_in)
            if row is not None and state is not None:
                if (keys := self._sealing.mapper.keys) is not None and not opened(
                    state, where=stream
                ).is_erased:
                    with keys.as_stored():  # what stays encrypted stays as it is: nothing is encrypted anew
                        stored = _row(cursor, _AT_VERSION, (stream, version)) or row
                    state = opened(stored[4], where=stream).without_thinking
                cursor.execute("UPDATE stored_events SET state=? WHERE rowid=?", (state, row[0]))
        self._sealing.snapshots.erase(cursor, sorted({stream for stream, _, _ in erasures(self.recorded)}))
        crash_point("E1")

    def is_stored(self, cursor: Cursor) -> bool:
        """Return whether the rows are in the log, byte for byte: no other append has the same salts and hashes."""
        if not self.recorded:
            return False
        for recorded, row in zip(self.recorded, self._in_order, strict=True):
            found = _row(cursor, _AT_POSITION, (recorded.position,))
            # It may come in clear, or as it is: the same words have one ciphertext at a place.
            if found is None or (*found[1:4], self._sealing.mapper.clear(found[4])) != (
                row.originator_id,
                row.originator_version,
                row.topic,
                self._sealing.mapper.clear(row.state),
            ):
                return False
        return True

    def done(self, error: Exception | None) -> None:
        """Tell the caller the outcome."""
        if error is not None or self._verdict is None:
            self.recorded, self.written, self._step = (), (), None
            self._verdict = Unavailable(
                error=self._sealing.recorder.failures.log_error(error or RuntimeError("never written"))
            )
        self.stands = isinstance(self._verdict, Committed)
        if self.stands and self.erases:
            self._sealing.snapshots.erased()
        self.has_failed = not self.stands
        tell(self._on_outcome, self._verdict)

    def _note_step(self, cursor: Cursor) -> None:
        """Put the event that says so before these if the clock has stepped: only with them is there a time to be said."""
        sealing = self._sealing
        for here in self._in_order:
            if not here.draft.is_dated:
                break
        else:
            return
        step = sealing.clock.step(here.draft)
        if step is None:
            return
        end, prev = sealing.heads.of(cursor, CLOCK)
        version = end + 1
        own = event_id(sealing.mapper.log_id, CLOCK, version, topic_of(step))
        pending = Pending(CLOCK, Draft(event=step, id=own, time=step.to_ms))
        (position,) = sealing.recorder.queue([pending])
        self._step = sealing.mapper.seal(
            pending,
            position=position,
            version=version,
            prev=prev,
            epoch=sealing.epoch,
            time=step.to_ms,
            salt=sealing.entropy(SALT_BYTES),
        )
        sealing.heads.learn({CLOCK: (version, self._step.hash)})

    def _seal(self, ends: dict[str, Head]) -> None:
        """Seal the events at the next positions, each behind the end of its stream, which it is then itself."""
        sealing, in_order = self._sealing, self._in_order
        seal, clock, epoch = sealing.mapper.seal, sealing.clock, sealing.epoch
        latest = clock.latest
        salts = sealing.entropy(SALT_BYTES * len(in_order))
        recorded: list[Recorded] = []
        for index, position in enumerate(sealing.recorder.queue(in_order)):
            pending = in_order[index]
            stream: str = pending.originator_id  # type: ignore[assignment]  # never a UUID; done for each event, so no cast
            version, prev = ends[stream]
            draft = pending.draft
            if not draft.is_dated and draft.time > latest:
                latest = draft.time
            salt = salts[SALT_BYTES * index : SALT_BYTES * (index + 1)]
            if pending.has_thinking:
                salt += sealing.entropy(SALT_BYTES)
            one = seal(
                pending,
                position=position,
                version=version + 1,
                prev=prev,
                epoch=epoch,
                time=draft.time if draft.is_dated else latest,
                salt=salt,
            )
            ends[stream] = version + 1, one.hash
            self.erases = self.erases or type(one.event) is Erased
            recorded.append(one)
        clock.latest = latest
        self.recorded = tuple(recorded)
        self.written = self.recorded if self._step is None else (self._step, *self.recorded)

    def _recorded_before(self, cursor: Cursor) -> tuple[Recorded, ...] | None:
        """Return the same events if an earlier try recorded them all, or None.

        Where a version was expected, the event of that version is compared. Where none was, the event is known by its
        id, or lies where the same append would have put it: beside the others, in the order of causes or, in a log of
        version 0.1.0, in the order of the append.
        """
        self._sealing.recorder.flush(cursor)
        versions: dict[str, int] = {}
        known: dict[str, Row] = {}  # by the drafts' ids
        for event in self._anywhere:
            position = self._sealing.known.position_of(event.draft.id)
            row = None if position is None else _row(cursor, _AT_POSITION, (position,))
            if row is not None:
                known[event.draft.id] = row
        for part in self.parts:
            version = versions.get(part.stream, part.expected)
            for event in part.events:
                if version != ANY_VERSION:
                    version += 1
                    row = _row(cursor, _AT_VERSION, (part.stream, version))
                    if row is None:
                        return None
                    known[event.draft.id] = row
            versions[part.stream] = version
        as_given = [event for part in self.parts for event in part.events]
        for order in (self._in_order, as_given):
            if (found := self._recorded_in(order, known, cursor)) is not None:
                return tuple(sorted(found, key=attrgetter("position")))
        return None

    def _recorded_in(
        self, order: Sequence[Pending], known: dict[str, Row], cursor: Cursor
    ) -> list[Recorded] | None:
        first = next(
            (
                known[event.draft.id][0] - index
                for index, event in enumerate(order)
                if event.draft.id in known
            ),
            None,
        )
        if first is None:
            return None
        found: list[Recorded] = []
        for index, event in enumerate(order):
            row = known.get(event.draft.id) or _row(cursor, _AT_POSITION, (first + index,))
            if row is None or not self._is_event(row, event):
                return None
            found.append(self._sealing.mapper.to_domain_event(notification_of(row)))
        return found

    def _is_event(self, row: Row, event: Pending) -> bool:
        """Whether a row is an event that is told again. An id that is derived from its place says nothing of its content."""
        mapper, own = self._sealing.mapper, event.draft.id
        _, stream, version, topic, state = row
        if stream != event.originator_id:
            return False
        envelope = opened(mapper.clear(state), where=repr(stream))
        if own != event_id(mapper.log_id, stream, version, event.topic):
            return envelope.id == own
        payload = left_of_payload(topic, event.payload) if envelope.is_erased else event.payload
        if envelope.lacks_thinking:
            payload = whole(parted(event.payload, b"")[0], None)
        return (
            topic == event.topic
            and envelope.payload == payload
            and is_event_id(envelope.id, mapper.log_id, stream, version, topic, event.payload)
        )


def causal_order(parts: Sequence[Part]) -> Sequence[Pending]:
    """Return the events of one append so that none stands before its cause.

    Each stream keeps its order, and all else stays as it was given.
    """
    left = [event for part in parts for event in part.events]
    missing = {event.draft.id for event in left}
    ordered: list[Pending] = []
    while left:
        put_off: list[Pending] = []
        waiting: set[object] = set()
        for event in left:
            if event.originator_id in waiting or event.draft.causation in missing:
                put_off.append(event)
                waiting.add(event.originator_id)
            else:
                ordered.append(event)
                missing.discard(event.draft.id)
        if len(put_off) == len(left):
            return [*ordered, *put_off]  # they are said to have caused each other
        left = put_off
    return ordered


def _row(cursor: Cursor, statement: str, parameters: Sequence[object]) -> Row | None:
    cursor.execute(statement, parameters)
    row = cursor.fetchone()
    return None if row is None else tuple(row)
