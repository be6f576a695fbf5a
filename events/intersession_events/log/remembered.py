"""A log for as long as one question lasts: what was read of it once is not asked of the store again.

Who answers a question asks the same of the log in many places, for none of them knows of the others. Where a way to the store
costs, each thing is read once; so an answer is also of one state of it, whatever is appended meanwhile.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar, cast

from intersession_events.log.log import Log, Moment
from intersession_events.log.recorded import Recorded, StreamPart
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
    """Return the log itself, of one that is remembered: for what asks more of it than reading."""
    return as_it_is(log.log) if isinstance(log, RememberedLog) else log


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
        self._once: dict[tuple[object, ...], Any] = {}  # whatever the log returned
        self._held = 0
        self._forget_asked()

    def _forget_asked(self) -> None:
        self._asked_rows: dict[Question, None] = {}
        self._asked_events: dict[int, None] = {}
        self._asked_parts: dict[StreamPart, None] = {}
        self._asked_streams: dict[str, None] = {}

    def read(self) -> None:
        """Read all that was asked for."""
        questions, positions = self._asked_rows, self._asked_events
        parts, streams = self._asked_parts, self._asked_streams
        self._forget_asked()
        if questions:
            rows = self.log.each(questions)
            self._rows.update(zip(questions, rows, strict=True))
            self._held += sum(map(len, rows), len(rows))
        if positions:
            found = {recorded.position: recorded for recorded in self.log.at(positions)}
            self._events.update(dict.fromkeys(positions) | found)
            self._held += len(positions)
        if parts:
            of_parts = self.log.parts(list(parts))
            self._parts.update(zip(parts, of_parts, strict=True))
            self._held += sum(map(len, of_parts), len(of_parts))
        if streams:
            of_streams = self.log.whole(list(streams))
            self._streams.update(zip(streams, of_streams, strict=True))
            self._held += sum(map(len, of_streams), len(of_streams))

    def unknown(self) -> None:
        """Come to know what was asked for."""
        self.read()

    def _make_room(self) -> None:
        if self._held > self._most:
            for known in (self._rows, self._events, self._parts, self._streams):
                known.clear()
            self._held = 0

    def query(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        return self.each([(statement, parameters)])[0]

    def each(self, questions: Iterable[Question]) -> list[list[Row]]:
        asked = [(statement, tuple(given)) for statement, given in questions]
        return self._known(asked, self._rows, self._asked_rows)

    def moment(self) -> AbstractContextManager[Moment]:
        """Lend a way to query that sees the log as it is now: what is remembered is of other moments."""
        return self.log.moment()

    def at(self, positions: Iterable[int]) -> Iterator[Recorded]:
        found = self._known(sorted(set(positions)), self._events, self._asked_events)
        return iter([recorded for recorded in found if recorded is not None])

    def parts(self, parts: Sequence[StreamPart]) -> Sequence[Sequence[Recorded]]:
        return self._known(parts, self._parts, self._asked_parts)

    def whole(self, streams: Sequence[str]) -> Sequence[Sequence[Recorded]]:
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
        if limit is not None:
            some: Sequence[Recorded] = self.once(
                ("stream", stream, after, to, backwards, limit),
                lambda: self.log.stream(stream, after=after, to=to, backwards=backwards, limit=limit),
            )
            return some
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
        if not all(one in known for one in wanted):
            self._make_room()
            asked.update((one, None) for one in wanted if one not in known)
            self.unknown()
        return [known[one] for one in wanted]
