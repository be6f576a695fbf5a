"""Answers for many rows, in as few ways to the store and back as one of them takes.

Who reads for one row reads as if it were alone. Where a way costs, each is run until it asks what is not known yet. What all of them ask is
then read together, and each is run again, as far as it comes now. So it has to be a reader and no more: it may be begun several times.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar, cast

from intersession_events.log.log import Log, Moment
from intersession_events.log.recorded import Recorded, StreamPart
from intersession_events.log.sql import Question, Row, SqlValue

I = TypeVar("I")  # noqa: E741 - an item
T = TypeVar("T")
K = TypeVar("K")

_FEW: Final = 8
"""So many positions in a row are asked for one by one, together with those of others."""
_END: Final = 2**62
"""Behind the last version that a stream can have."""


def for_each(log: Log, items: Iterable[I], reading: Callable[[Log], Callable[[I], T]]) -> list[T]:
    """Return what is read for each of some items, in their order.

    `reading` returns what reads for an item, out of the log that it is given: this one, or one that has been read ahead. What it
    returns for an item must be read by then, and reads no more.

    Raises:
        LogError: what is read for an item can't be, as if it were read by itself.
    """
    asked = list(items)
    if len(asked) > 1 and log.takes_many:
        with suppress(Exception):  # whatever it is: read one by one it comes where it belongs, or not at all
            return _together(_Ahead(log), asked, reading)
    read = reading(log)
    return [read(item) for item in asked]


def _together(ahead: "_Ahead", items: Sequence[I], reading: Callable[[Log], Callable[[I], T]]) -> list[T]:
    found: dict[int, T] = {}
    read: Callable[[I], T] | None = None
    while len(found) < len(items):
        with suppress(_NotYet):
            read = read or reading(cast("Log", ahead))
            for at, item in enumerate(items):
                if at not in found:
                    with suppress(_NotYet):
                        found[at] = read(item)
        ahead.read()
    return [found[at] for at in range(len(items))]


class _NotYet(BaseException):
    """Somebody asks what nobody has asked yet. No failure, so what catches failures does not catch it."""


class _Ahead:
    """The reading half of a log, out of what was read of it for all. What is not known is noted, and ends who asks it for now."""

    takes_many = True

    def __init__(self, log: Log) -> None:
        self._log = log
        self._rows: dict[Question, list[Row]] = {}
        self._events: dict[int, Recorded | None] = {}
        self._parts: dict[StreamPart, Sequence[Recorded]] = {}
        self._streams: dict[str, Sequence[Recorded]] = {}
        self._once: dict[tuple[object, ...], Any] = {}  # whatever the log returned
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
            self._rows.update(zip(questions, self._log.each(questions), strict=True))
        if positions:
            self._events.update(dict.fromkeys(positions))
            self._events.update((recorded.position, recorded) for recorded in self._log.at(positions))
        if parts:
            self._parts.update(zip(parts, self._log.parts(list(parts)), strict=True))
        if streams:
            self._streams.update(zip(streams, self._log.whole(list(streams)), strict=True))

    def query(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        return self.each([(statement, parameters)])[0]

    def each(self, questions: Iterable[Question]) -> list[list[Row]]:
        asked = [(statement, tuple(given)) for statement, given in questions]
        return _known(asked, self._rows, self._asked_rows)

    @contextmanager
    def moment(self) -> Generator[Moment]:
        yield Moment(self.query, self.head(), together=self.each)

    def at(self, positions: Iterable[int]) -> Iterator[Recorded]:
        found = _known(sorted(set(positions)), self._events, self._asked_events)
        return iter([recorded for recorded in found if recorded is not None])

    def parts(self, parts: Sequence[StreamPart]) -> Sequence[Sequence[Recorded]]:
        return _known(parts, self._parts, self._asked_parts)

    def whole(self, streams: Sequence[str]) -> Sequence[Sequence[Recorded]]:
        return _known(streams, self._streams, self._asked_streams)

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
            some: Sequence[Recorded]
            some = self._by_itself("stream", stream, after=after, to=to, backwards=backwards, limit=limit)
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
        asked = ("all", after, to, limit, *topics)
        if asked not in self._once:
            self._once[asked] = list(self._log.all(after=after, to=to, limit=limit, topics=topics))
        return iter(self._once[asked])

    def head(self) -> int:
        found: int = self._by_itself("head")
        return found

    def __getattr__(self, name: str) -> Any:  # as the log has it
        return getattr(self._log, name)

    def _by_itself(self, name: str, *given: object, **named: object) -> Any:  # as the log has it
        """Return what nobody can ask together with others: it is read at once, and once for all."""
        asked = (name, given, *sorted(named.items()))
        if asked not in self._once:
            self._once[asked] = getattr(self._log, name)(*given, **named)
        return self._once[asked]


def _known(wanted: Sequence[K], known: Mapping[K, T], asked: dict[K, None]) -> list[T]:
    """Return what is known of all that is wanted; else note what is not."""
    if unknown := [one for one in wanted if one not in known]:
        asked.update(dict.fromkeys(unknown))
        raise _NotYet
    return [known[one] for one in wanted]
