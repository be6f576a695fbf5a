"""A log for as long as one question lasts: what was read of it once is not asked of the store again.

Who answers a question asks the same of the log in many places, for none of them knows of the others. Where a way to the store
costs, each thing is read once; so an answer is also of one state of it, whatever is appended meanwhile.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar, cast

from intersession_events.log.log import Log, Moment
from intersession_events.log.other_words import RewordedLog
from intersession_events.log.recorded import Gathered, Reads, Recorded, StreamEnd, StreamPart
from intersession_events.log.sql import Question, Row, SqlValue

K = TypeVar("K")
T = TypeVar("T")

_FEW: Final = 8
"""So many positions in a row are asked for one by one, together with those of others."""
_END: Final = 2**62
"""Behind the last version that a stream can have."""
_MOST: Final = 10_000
"""So many rows and events are remembered; then all of them are forgotten, and it begins anew."""


def remembering(log: Log) -> Log:
    """Return the log for one question, where a way to its store costs; else itself. Keep it no longer than the question lasts."""
    if isinstance(log, RememberedLog) or not log.takes_many:
        return log
    return cast("Log", RememberedLog(log))


def as_it_is(log: Log) -> Log:
    """Return the log itself, of one that is remembered or told in other words: for what asks more of it than reading."""
    return as_it_is(log.log) if isinstance(log, RememberedLog | RewordedLog) else log


class RememberedLog:
    """The reading half of a log, out of what was read of it before; what is not known is read then."""

    takes_many = True

    def __init__(self, log: Log, *, most: int = _MOST) -> None:
        self.log = log
        self._most = most
        self._rows: dict[Question, list[Row]] = {}
        self._events: dict[int, Recorded | None] = {}
        self._parts: dict[StreamPart, Sequence[Recorded]] = {}
        self._streams: dict[str, Sequence[Recorded]] = {}
        self._ends: dict[StreamEnd, Sequence[Recorded]] = {}
        self._once: dict[tuple[object, ...], Any] = {}  # whatever the log returned
        self._held = 0
        self._forget_asked()

    def _forget_asked(self) -> None:
        self._asked_rows: dict[Question, None] = {}
        self._asked_events: dict[int, None] = {}
        self._asked_parts: dict[StreamPart, None] = {}
        self._asked_streams: dict[str, None] = {}
        self._asked_ends: dict[StreamEnd, None] = {}

    def read(self) -> None:
        """Read all that was asked for."""
        asked = (
            self._asked_rows,
            self._asked_events,
            self._asked_parts,
            self._asked_streams,
            self._asked_ends,
        )
        if not any(asked):
            return
        self._forget_asked()
        questions, positions, parts, streams, ends = asked
        wanted = Reads(list(questions), list(positions), list(parts), list(streams), list(ends))
        found = self.log.gather(wanted)
        self._rows.update(zip(wanted.questions, found.rows, strict=True))
        self._events.update(dict.fromkeys(wanted.positions))
        self._events.update((recorded.position, recorded) for recorded in found.events)
        self._parts.update(zip(wanted.parts, found.parts, strict=True))
        self._streams.update(zip(wanted.streams, found.streams, strict=True))
        self._ends.update(zip(wanted.ends, found.ends, strict=True))
        for of_one in (*found.rows, *found.parts, *found.streams, *found.ends):
            self._held += 1 + len(of_one)
        self._held += len(wanted.positions)

    def gather(self, wanted: Reads) -> Gathered:
        """Read several things at once, as far as they are not known."""
        questions = [(statement, tuple(given)) for statement, given in wanted.questions]
        positions = sorted(set(wanted.positions))
        self._know(
            (questions, self._rows, self._asked_rows),
            (positions, self._events, self._asked_events),
            (wanted.parts, self._parts, self._asked_parts),
            (wanted.streams, self._streams, self._asked_streams),
            (wanted.ends, self._ends, self._asked_ends),
        )
        events = [self._events[position] for position in positions]
        return Gathered(
            rows=[self._rows[one] for one in questions],
            events=[recorded for recorded in events if recorded is not None],
            parts=[self._parts[one] for one in wanted.parts],
            streams=[self._streams[one] for one in wanted.streams],
            ends=[self._ends[one] for one in wanted.ends],
        )

    def unknown(self) -> None:
        """Come to know what was asked for."""
        self.read()

    def _make_room(self) -> None:
        if self._held > self._most:
            for known in (self._rows, self._events, self._parts, self._streams, self._ends):
                known.clear()
            self._held = 0

    def query(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Return the rows of a reading statement on a view's tables."""
        return self.each([(statement, parameters)])[0]

    def each(self, questions: Iterable[Question]) -> list[list[Row]]:
        """Return the rows of several reading statements, of no one moment."""
        asked = [(statement, tuple(given)) for statement, given in questions]
        return self._known(asked, self._rows, self._asked_rows)

    def moment(self) -> AbstractContextManager[Moment]:
        """Lend a way to query that sees the log as it is now: what is remembered is of other moments."""
        return self.log.moment()

    def at(self, positions: Iterable[int]) -> Iterator[Recorded]:
        """Read the events at some positions, each once and in order."""
        found = self._known(sorted(set(positions)), self._events, self._asked_events)
        return iter([recorded for recorded in found if recorded is not None])

    def parts(self, parts: Sequence[StreamPart]) -> Sequence[Sequence[Recorded]]:
        """Read a part of each of some streams."""
        return self._known(parts, self._parts, self._asked_parts)

    def whole(self, streams: Sequence[str]) -> Sequence[Sequence[Recorded]]:
        """Read some streams, each from its first event to its last."""
        return self._known(streams, self._streams, self._asked_streams)

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
        if limit is not None:
            end = StreamEnd(stream, after, to, backwards, limit)
            return self._known([end], self._ends, self._asked_ends)[0]
        if after == 0 and to is None:
            (found,) = self.whole([stream])
        else:
            (found,) = self.parts([StreamPart(stream, after, _END if to is None else to)])
        return found[::-1] if backwards else found

    def all(
        self,
        *,
        after: int = 0,
        to: int | None = None,
        limit: int | None = None,
        topics: Collection[str] = (),
    ) -> Iterator[Recorded]:
        """Read all events with `after < position <= to`, in order; only those of some stored names, if any are given."""
        if to is not None and to - after <= _FEW and limit is None and not topics:
            return self.at(range(after + 1, to + 1))
        if limit is not None and limit <= _FEW:
            asked = ("all", after, to, limit, *topics)
            few: list[Recorded] = self.once(
                asked, lambda: list(self.log.all(after=after, to=to, limit=limit, topics=topics))
            )
            return iter(few)
        return self.many(after=after, to=to, limit=limit, topics=topics)

    def many(
        self, *, after: int, to: int | None, limit: int | None, topics: Collection[str]
    ) -> Iterator[Recorded]:
        """Read events of which there may be too many to remember them."""
        return self.log.all(after=after, to=to, limit=limit, topics=topics)

    def head(self) -> int:
        """Return the position of the last committed event, as it was when somebody asked first."""
        found: int = self.once(("head",), self.log.head)
        return found

    def __getattr__(self, name: str) -> Any:  # as the log has it
        return getattr(self.log, name)

    def once(self, asked: tuple[object, ...], read: Callable[[], T]) -> T:
        """Return what nobody can ask together with others: it is read at once, and once for all."""
        if asked not in self._once:
            self._once[asked] = read()
        found: T = self._once[asked]
        return found

    def _known(self, wanted: Sequence[K], known: Mapping[K, T], asked: dict[K, None]) -> list[T]:
        """Return what is known of all that is wanted; else note what is not, and come to know it."""
        self._know((wanted, known, asked))
        return [known[one] for one in wanted]

    def _know(self, *parts: "_Part") -> None:
        """Come to know all that is wanted: of each part what is wanted, what is known, and where to note what is not."""
        if all(one in known for wanted, known, _ in parts for one in wanted):
            return
        self._make_room()
        for wanted, known, asked in parts:
            asked.update((one, None) for one in wanted if one not in known)
        self.unknown()


_Part = tuple[Sequence[Any], Mapping[Any, object], dict[Any, None]]  # each of one kind
