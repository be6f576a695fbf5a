"""The order of the session list: last updated first, ties by key, as it is now or was at a position (LIST-3).

It is read a page at a time, as far as somebody asks: a page costs a page, and a step down a tree for each set that it is put together from.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from intersession_events.log.log import Log, Moment
from intersession_events.log.sql import Row
from intersession_projections.views.sessions.merged import GROWTH, MOST, Merged, Place, Rank, numbers
from intersession_projections.views.sessions.row import SessionRow
from intersession_projections.views.sessions.rows import other_names, places_of, rows_at, rows_of, rows_stood
from intersession_projections.views.sessions.search import matches
from intersession_projections.views.sessions.session_filter import SessionFilter

_FIRST_PAGE: Final = 64
_CHUNK: Final = 100
_LOOKED_AT: Final = 64
_SPARSE: Final = 32
"""A search scans the places in order, before it asks the index, while it finds one match in this many."""
_SORTED: Final = 3_000
"""Candidates that are; where there are more, the order is gone through until they come."""
_BEGINNING: Final = (-(2**63), "")


class SessionOrder:
    """The sessions that are not archived, at one position, that match and are visible."""

    def __init__(self, log: Log, position: int, wanted: SessionFilter = SessionFilter()) -> None:  # noqa: B008 - it is frozen
        self._log = log
        self._position = position
        self._wanted = wanted
        self._agents: Sequence[tuple[int, str]] | None = None
        self._read: dict[int, SessionRow] = {}
        """The rows of yielded places, so that they are read once."""

    def places(self, *, updated_since: int = 0, behind: Rank | None = None) -> Iterator[Place]:
        """Yield the places in order, after a rank, of sessions that were updated since a time (ms)."""
        return self._places(behind or _BEGINNING, updated_since, None)

    def _places(self, behind: Rank, updated_since: int, only: Collection[int] | None) -> Iterator[Place]:
        last, size = behind, _FIRST_PAGE
        while True:
            with self._log.moment() as moment:
                wanted = Merged(moment, self._position, self._wanted, last, updated_since)
                page = list(wanted.places(size, only))
                self._agents = wanted.agents
            yield from page
            if len(page) < size:
                return
            last, size = page[-1][:2], min(size * GROWTH, MOST)

    def rows(self, places: Iterable[Place], *, at_once: int = _CHUNK) -> Iterator[SessionRow]:
        """Yield the row at each place; read in batches."""
        left = iter(places)
        while chunk := list(islice(left, at_once)):
            rows = {place.no: self._read.pop(place.no) for place in chunk if place.no in self._read}
            if unread := [place.no for place in chunk if place.no not in rows]:
                with self._log.moment() as moment:
                    rows |= rows_at(moment, self._position, unread)
            yield from (rows[place.no] for place in chunk)

    def named(self, text: str, *, updated_since: int = 0, behind: Rank | None = None) -> Iterator[Place]:
        """Yield, in order, the places of sessions one of whose names contains a casefolded text (LIST-4).

        Where it is part of many names a look at the first places finds enough. Else the index says which sessions it can
        be, and nobody else is looked at.
        """
        places = self.places(updated_since=updated_since, behind=behind)
        last, looked_at, hits = behind or _BEGINNING, 0, 0
        found: set[int] | None = None
        is_found = False
        while hits * _SPARSE >= looked_at:
            chunk = list(islice(places, _LOOKED_AT))
            is_found = len(chunk) == _LOOKED_AT and self._asks_index(chunk, text)
            if is_found:
                named, found = self._named_and_found(chunk, text, updated_since)
            else:
                named = self._named_in(chunk, text)
            for place in named:
                hits += 1
                yield place
            if len(chunk) < _LOOKED_AT:
                return
            last, looked_at = chunk[-1][:2], looked_at + len(chunk)
        if not is_found:
            with self._log.moment() as moment:
                found = self._merged(moment, last, updated_since).candidates(text)
        if found is None:
            yield from self._named(places, text)
            return
        if len(found) > _SORTED:
            yield from self._named(self._places(last, updated_since, found), text)
        else:
            yield from self._sorted(found, text, updated_since, last)

    def _named(self, places: Iterable[Place], text: str) -> Iterator[Place]:
        left = iter(places)
        while chunk := list(islice(left, _CHUNK)):
            yield from self._named_in(chunk, text)

    def _named_in(self, chunk: Sequence[Place], text: str) -> list[Place]:
        if not chunk:
            return []
        with self._log.moment() as moment:
            numbers = [place.no for place in chunk]
            if moment.is_remote:
                return self._those_named(
                    chunk, text, moment, *moment.each(other_names(numbers), rows_of(numbers))
                )
            (names,) = moment.each(other_names(numbers))
            return self._those_named(chunk, text, moment, names)

    def _asks_index(self, chunk: Sequence[Place], text: str) -> bool:
        """Whether to ask the index together with a chunk: if a round trip is costly, and keys alone have too few matches."""
        if not self._log.is_remote:
            return False
        return sum(text in place.key.casefold() for place in chunk) * _SPARSE < len(chunk)

    def _named_and_found(
        self, chunk: Sequence[Place], text: str, updated_since: int
    ) -> tuple[list[Place], set[int] | None]:
        """Return those of a chunk that are named so, and the candidates behind it that the index has."""
        numbers = [place.no for place in chunk]
        with self._log.moment() as moment:
            wanted = self._merged(moment, chunk[-1][:2], updated_since)
            if not moment.is_remote:  # what is folded beside the log may have no index
                (names,) = moment.each(other_names(numbers))
                return self._those_named(chunk, text, moment, names), wanted.candidates(text)
            names, stored, *answers = moment.each(
                other_names(numbers), rows_of(numbers), *wanted.matching(text)
            )
            return self._those_named(chunk, text, moment, names, stored), wanted.matched(answers)

    def _those_named(
        self,
        chunk: Sequence[Place],
        text: str,
        moment: Moment,
        other: Sequence[Row],
        stored: Sequence[Row] | None = None,
    ) -> list[Place]:
        """Return which of a chunk are named so, by their other names and, if they were read already, their rows as they are stored."""
        names: dict[int, bytes] = dict(other)
        may_be = {
            place.no: place
            for place in chunk
            if text in place.key.casefold() or text.encode() in names.get(place.no, b"")
        }
        if stored is None:
            rows = rows_at(moment, self._position, may_be)
        else:
            rows = rows_stood(moment, self._position, (row for row in stored if row[0] in may_be))
        found = [place for no, place in may_be.items() if _is_named(rows[no], text)]
        self._read.update((place.no, rows[place.no]) for place in found)
        return found

    def _merged(self, moment: Moment, behind: Rank, updated_since: int) -> Merged:
        return Merged(moment, self._position, self._wanted, behind, updated_since, agents=self._agents)

    def _sorted(self, found: Collection[int], text: str, updated_since: int, behind: Rank) -> Iterator[Place]:
        """Yield in order the matches among some sessions: a few, so that all of them are looked at."""
        if len(found) <= _CHUNK:
            with self._log.moment() as moment:
                rows = rows_at(moment, self._position, found)
                standing = [
                    Place(-row.updated_at, row.key, no)
                    for no, row in rows.items()
                    if row.archived is None and row.updated_at >= updated_since
                ]
                wanted = sorted(place for place in standing if place[:2] > behind)
                taken = self._taken(moment, wanted, rows, text)
            yield from taken
            return
        with self._log.moment() as moment:
            places = [
                place
                for place in places_of(moment, self._position, found)
                if place[:2] > behind and -place[0] >= updated_since
            ]
        left = iter(sorted(places))
        while chunk := [Place(*place) for place in islice(left, _CHUNK)]:
            with self._log.moment() as moment:
                rows = rows_at(moment, self._position, [place.no for place in chunk])
                taken = self._taken(moment, chunk, rows, text)
            yield from taken

    def _taken(
        self,
        moment: Moment,
        places: Iterable[Place],
        rows: Mapping[int, SessionRow],
        text: str,
    ) -> list[Place]:
        """Return those of some places that are named so and wanted."""
        page = self._merged(moment, _BEGINNING, 0)
        taken = [
            place
            for place in places
            if _is_named(rows[place.no], text) and page.takes(place.no, rows[place.no])
        ]
        self._read.update((place.no, rows[place.no]) for place in taken)
        return taken

    def hidden(self) -> int:
        """Return how many sessions of the given agents are hidden from the reader."""
        if self._wanted.seen is None:
            return 0
        everything = self._wanted._replace(kinds=frozenset(), label=None, parent=None)
        with self._log.moment() as moment:
            seen = Merged(moment, self._position, everything, _BEGINNING, 0)
            there = Merged(moment, self._position, everything._replace(seen=None), _BEGINNING, 0)
            return there.number() - seen.number()

    def numbers(self) -> dict[str, int]:
        """Return the number of sessions of each agent at the position, visible or not."""
        with self._log.moment() as moment:
            return numbers(moment, self._position)


def _is_named(row: SessionRow, text: str) -> bool:
    return matches((row.key, row.label, row.display_name), text)
