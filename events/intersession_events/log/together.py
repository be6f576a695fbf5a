"""Answers for many rows, in as few round trips as one of them takes.

Who reads for one row reads as if it were alone. Where a way costs, each is run until it asks what is not known yet. What all of them ask is
then read together, and each is run again, as far as it comes now. So it has to be a reader and no more: it may be begun several times.
"""

import sys
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, cast

from intersession_events.errors import CorruptEvent, UnknownTopic
from intersession_events.log.log import Log, Moment
from intersession_events.log.recorded import Reads, Recorded
from intersession_events.log.remembered import RememberedLog

I = TypeVar("I")  # noqa: E741 - an item
T = TypeVar("T")


def for_each(log: Log, items: Iterable[I], reading: Callable[[Log], Callable[[I], T]]) -> list[T]:
    """Return what is read for each of some items, in their order.

    `reading` returns what reads for an item, out of the log that it is given: this one, or one that has been read ahead. What it
    returns for an item must be read by then, and reads no more.

    Raises:
        LogError: what is read for an item can't be, as if it were read by itself.
    """
    asked = list(items)
    if len(asked) > 1 and log.takes_many:
        # A row that can't be read fails all that were read with it: one by one it is found by who can go on without it.
        with suppress(CorruptEvent, UnknownTopic):
            return _together(_Ahead(log), asked, reading)
    read = reading(log)
    return [read(item) for item in asked]


def read_together(log: Log, *reads: Callable[[Log], Any]) -> list[Any]:  # of each its own
    """Return what each of some readers reads: none of them needs anything of another. As `for_each`, of different questions."""
    return for_each(log, reads, lambda ahead: lambda read: read(ahead))


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
        ahead.read_asked()
    return [found[at] for at in range(len(items))]


class _NotYet(BaseException):
    """Somebody asks what nobody has asked yet. No failure, so what catches failures does not catch it."""


class _Ahead(RememberedLog):
    """The reading half of a log, out of what was read of it for all. What is not known is noted, and the reader is run again later."""

    def __init__(self, log: Log) -> None:
        super().__init__(log, most=sys.maxsize)  # each is run again until what it asks for is there
        self._asked: tuple[dict[Any, None], ...] = ({}, {}, {}, {}, {})  # each of one kind

    def read(self, missing: Reads) -> None:
        """Queue an unknown read, and abort the reader: it is run again."""
        for asked, of in zip(self._asked, missing, strict=True):
            asked.update(dict.fromkeys(of))
        raise _NotYet

    def read_asked(self) -> None:
        """Read all that was asked for."""
        asked = Reads(*map(list, self._asked))
        for of in self._asked:
            of.clear()
        if any(asked):
            super().read(asked)

    @contextmanager
    def moment(self) -> Generator[Moment]:
        """Lend a way to query by what was read for all."""
        yield Moment(self.query, self.head(), together=self.each)

    def many(
        self, *, after: int, to: int | None, limit: int | None, topics: Collection[str]
    ) -> Iterator[Recorded]:
        """Read events once for all."""
        asked = ("all", after, to, limit, *topics)
        found: list[Recorded] = self.once(
            asked, lambda: list(self.log.all(after=after, to=to, limit=limit, topics=topics))
        )
        return iter(found)
