"""Scans stored rows for possible matches, before any row is decoded as an event: decoding them all would take long.

Nothing is proven or left out here that could be meant. What is found is read as events then, and looked at again.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from intersession_events.facts import SAYING
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.log.row_state import named_in, payload_in
from intersession_events.log.sql import Row
from intersession_projections.basics.spans import Span

_WINDOW: Final = 16_384
_FIRST: Final = 256
"""Rows that are looked at at a time, and at first: what is asked for is near the end more often than not."""
_READ_FIRST: Final = 32
_READ: Final = 1024
"""Events that are read at a time of those that passed, and at first."""

_PLAIN: Final = re.compile(r"\w+")


def prefiltered(
    log: Log,
    span: Span,
    may: Callable[[Row], bool],
    *,
    ahead: Callable[[Iterable[Row]], None] | None = None,
) -> Iterator[Recorded]:
    """Yield the events of a part of a log whose rows pass, newest first, read as they are consumed.

    `ahead` gets rows that are looked at next, together.
    """
    last, window, size = span.last(log.head()), _FIRST, _READ_FIRST
    while last > span.after:
        first = max(span.after, last - window)
        rows = _rows(log, first, last)
        if ahead is not None:
            ahead(rows := list(rows))
        passed = [row[0] for row in rows if may(row)]
        while passed:
            some, passed = passed[-size:], passed[:-size]
            size = min(2 * size, _READ)
            yield from reversed(list(log.at(some)))
        last, window = first, min(2 * window, _WINDOW)


def may_be_a_persons(row: Row) -> bool:
    """Whether a row may hold a message of a person."""
    return row[3] in SAYING and b"external_user" in row[4]


def _every(_: Row) -> bool:
    return True


class Holding:
    """A scan for rows that may hold all of some texts, in any case. The end of the log is scanned first.

    `among` says which rows are looked at, `and_also` which of those that hold the texts are meant.
    """

    def __init__(
        self,
        log: Log,
        parts: Iterable[str],
        among: Callable[[Row], bool] = _every,
        and_also: Callable[[Row], bool] = _every,
    ) -> None:
        self._log = log
        self._parts = tuple(parts)
        self._among = among
        self._and_also = and_also
        self._low = log.head() + 1
        self._falling: list[int] = []
        """Positions from `low` on, the last one first."""
        self._chains: set[str | None] = set()

    @classmethod
    def of_words(
        cls,
        log: Log,
        words: Iterable[str],
        among: Callable[[Row], bool] = _every,
        and_also: Callable[[Row], bool] = _every,
    ) -> "Holding":
        """Return a scan for rows that may hold all of some words, alone or inside other words."""
        return cls(log, _plain_parts(words), among, and_also)

    @classmethod
    def of_person(cls, log: Log, name: str) -> "Holding":
        """Return a scan for rows in which a person of this id or name may speak."""
        parts = [f'"{name.casefold()}"'] if _PLAIN.fullmatch(name) else _plain_parts([name])
        return cls(log, parts, among=may_be_a_persons)

    def may_be_in(self, first: int, last: int, root: str | None) -> bool:
        """Whether there may be a match between two positions (both included), or behind them in a causal chain."""
        self._look_down_to(first)
        at = bisect_left(self._falling, -last, key=lambda position: -position)
        return root in self._chains or (at < len(self._falling) and self._falling[at] >= first)

    def is_anywhere(self) -> bool:
        """Whether there may be any match: scans from the end of the log until it finds one."""
        while not self._falling and self._low > 1:
            self._look_down_to(self._low - 1)
        return bool(self._falling)

    def is_in(self, row: Row) -> bool:
        """Whether a row may be a match."""
        return self._among(row) and self._holds(row) and self._and_also(row)

    def _holds(self, row: Row) -> bool:
        stored = payload_in(row[4])
        if stored is None:
            return True
        if stored.isascii():
            low = stored.lower()
            return all(part.isascii() and part.encode() in low for part in self._parts)
        text = stored.decode("utf-8", "replace").casefold()
        return all(part in text for part in self._parts)

    def _look_down_to(self, first: int) -> None:
        while self._low > max(first, 1):
            low = max(0, min(first, self._low - _WINDOW) - 1)  # a window at least
            found = [row for row in _rows(self._log, low, self._low - 1) if self.is_in(row)]
            self._falling.extend(row[0] for row in reversed(found))
            self._chains.update(chain_of(row) for row in found)
            self._low = low + 1


def _plain_parts(words: Iterable[str]) -> Iterator[str]:
    """Yield of each word the longest part that is stored as it is."""
    found = (_PLAIN.findall(word.casefold()) for word in words)
    return (max(plain, key=len) for plain in found if plain)


def chain_of(row: Row) -> str | None:
    """Return the root of a row's causal chain; None if it has no chain."""
    named = named_in(row[4])
    return None if named is None else named.correlation


def _rows(log: Log, after: int, to: int) -> Iterable[Row]:
    while after < to:
        page = log.rows(after=after, limit=min(_WINDOW, to - after))
        if not page:
            return
        yield from (row for row in page if row[0] <= to)
        after = page[-1][0]
