"""Places of matching sessions, merged from the sorted sets they are in, as of one moment; for `order.py`."""

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from intersession_events.basics.keys.key import Kind
from intersession_events.log.log import Moment
from intersession_events.log.sql import Question, Row
from intersession_projections.basics.columns import to_text
from intersession_projections.views.positions import ahead_at, time_in, time_of
from intersession_projections.views.sessions.row import SessionRow
from intersession_projections.views.sessions.rows import number_of, rows_at
from intersession_projections.views.sessions.search import candidates, matched, matching, of_agent, of_scope
from intersession_projections.views.sessions.session_filter import SessionFilter, VisibleSessions, matches
from intersession_projections.views.sessions.sets import ALL, KINDS, agent_of, part_of

_FIRST_READ: Final = 32
_MOST_READ: Final = 512
_PASSED: Final = -1
"""Stands for a session where only a place was come to."""
_MOST_FOUND: Final = 50_000
"""Above this number of index matches, a scan in the list's order finds matches soon."""
_ALL_OF_THEM: Final = 2**62
_OPENED: Final = 8
"""Parts of the order that are begun together, where that is one round trip; else each when its turn comes."""
GROWTH: Final = 4
MOST: Final = 4096
"""Each page is `GROWTH` times as large as the one before, up to `MOST` places."""


class Place(NamedTuple):
    """A session's place in the list: its rank and its number."""

    falling: int
    """The time of its last update (ms) below zero, so that places sort by themselves."""
    key: str
    no: int


Rank = tuple[int, str]
"""The first two parts of a place."""


class _Group(NamedTuple):
    """Sets that are one apart from their part."""

    scope: int
    label: int
    parts: tuple[int, ...]


class _Source(NamedTuple):
    """A part of the order, of one set: the time that it begins with, and how its places are asked for; no statement is the reader itself."""

    falling: int
    statement: str | None
    where: tuple[int, ...] = ()
    bounds: tuple[int, ...] = ()


_NO_LABEL: Final = -1
_NOBODY: Final = 1 << 52
"""Numbers that no label and no session has."""


class Merged:
    """A query as sets, and the places in them after a rank, as of one moment."""

    def __init__(
        self,
        moment: Moment,
        position: int,
        wanted: SessionFilter,
        behind: Rank,
        updated_since: int,
        *,
        agents: Sequence[tuple[int, str]] | None = None,
    ) -> None:
        self._moment = moment
        self._position = position
        self._wanted = wanted
        # Agents are only added to; one that came behind the position has nothing there.
        self._agents = _agents(moment) if agents is None else agents
        self._behind = behind
        self._is_past = False
        self._last = -updated_since
        self._own: Place | None = None
        self._groups = self._sets()

    def places(self, size: int, only: Collection[int] | None = None) -> Iterator[Place]:
        """Yield places in order, up to a limit; `only` restricts them to some sessions."""
        self._is_past = self._moment.head > self._position
        if self._is_past:
            self._behind = max(self._behind, (-_latest(self._moment, self._position), ""))
        sources = [source for group in self._groups for source in self._sources(group)]
        own = self._own
        if own is not None and self._behind < own[:2] and own.falling <= self._last:
            sources.append(_Source(own.falling, None))
        # What a source begins with is known by its time alone: it is opened when its turn may have come.
        heads: list[tuple[int, str, int, Place | None]] = [
            (source.falling, "", number, None) for number, source in enumerate(sources)
        ]
        heapq.heapify(heads)
        opened: dict[int, Iterator[Place]] = {}
        seen = self._wanted.seen
        while heads and size:
            _, _, number, place = heapq.heappop(heads)
            if place is not None and place.no != _PASSED and (seen is None or seen.has(place.key)):
                yield place
                size -= 1
            if number not in opened:
                turn = [number]
                if self._moment.is_remote:
                    turn += [
                        other for _, _, other, _ in heapq.nsmallest(_OPENED, heads) if other not in opened
                    ]
                opened |= self._opened({other: sources[other] for other in turn}, only)
            following = next(opened[number], None)
            if following is not None:
                heapq.heappush(heads, (following.falling, following.key, number, following))

    @property
    def agents(self) -> Sequence[tuple[int, str]]:
        """The numbers and names of all agents at this moment."""
        return self._agents

    def number(self) -> int:
        """Return the number of places, whatever their rank."""
        seen = self._wanted.seen
        if seen is not None and seen.within is not None:
            return sum(1 for _ in self.places(_ALL_OF_THEM))
        return _number(self._moment, self._position, self._groups) + (self._own is not None)

    def candidates(self, text: str) -> set[int] | None:
        """Return the sessions one of whose names may contain a casefolded text; None if they are too many, or if there is no index."""
        return self._with_own(candidates(self._moment, self._searched(), text, _MOST_FOUND))

    def matching(self, text: str) -> list[Question]:
        """Ask the index of names for the same; `matched` reads the answer."""
        return matching(self._searched(), text, _MOST_FOUND)

    def matched(self, answers: Iterable[list[Row]]) -> set[int] | None:
        """Return the sessions in the index's answer."""
        return self._with_own(matched(answers, _MOST_FOUND))

    def _searched(self) -> list[str]:
        groups = {
            of_agent(agent_of(part)) for group in self._groups if group.scope <= ALL for part in group.parts
        }
        return sorted(groups | {of_scope(group.scope) for group in self._groups if group.scope > ALL})

    def _with_own(self, found: set[int] | None) -> set[int] | None:
        if found is not None and self._own is not None:
            found.add(self._own.no)
        return found

    def takes(self, no: int, row: SessionRow) -> bool:
        """Whether a row matches and is visible, apart from its time and its names."""
        wanted, seen = self._wanted, self._wanted.seen
        if row.archived is not None or not matches(row, wanted):
            return False
        if seen is not None and not seen.has(row.key):
            return False
        if seen is None or seen.agent(row.agent_id) or row.key == seen.key:
            return True
        return seen.tree and number_of(self._moment, seen.key) in _ancestors(self._moment, no)

    def _sources(self, group: _Group) -> Iterator[_Source]:
        """Yield the parts of the order of a group of sets."""
        given = (
            group.scope,
            group.label,
            *self._behind,
            self._last,
            msgspec.json.encode(group.parts).decode(),
        )
        questions: list[Question] = [(_HEADS, given)]
        if self._is_past:
            levels = msgspec.json.encode(list(range(1, self._moment.head.bit_length() + 1))).decode()
            questions.append((_PAST_HEADS, (*given, levels, self._position)))
        now, *past = self._moment.each(*questions)
        for part, falling in now:
            if falling is not None:
                yield _Source(falling, _PLACES, (group.scope, group.label, part), (self._position,))
        for part, level, falling in past[0] if past else ():
            if falling is not None:
                where = (group.scope, group.label, part, level, self._position >> level)
                yield _Source(falling, _PAST, where, (self._position,) * 2)

    def _opened(
        self, sources: Mapping[int, _Source], only: Collection[int] | None
    ) -> dict[int, Iterator[Place]]:
        """Begin to read parts of the order, and return the places of each."""
        size = _FIRST_READ if only is None else _MOST_READ
        asked = {
            number: (source.statement, self._given(source, self._behind, size))
            for number, source in sources.items()
            if source.statement is not None
        }
        pages = dict(zip(asked, self._moment.each(*asked.values()), strict=True))
        own = iter(()) if self._own is None else iter((self._own,))
        return {
            number: self._read(source, pages[number], only, size) if number in pages else own
            for number, source in sources.items()
        }

    def _given(self, source: _Source, behind: Rank, size: int) -> tuple[int | str, ...]:
        return (*source.where, *behind, self._last, *source.bounds, size)

    def _read(
        self, source: _Source, page: Sequence[Row], only: Collection[int] | None, size: int
    ) -> Iterator[Place]:
        """Yield the places of one part of the order, behind its first page as well.

        Where `only` some are looked for, also how far it was gone through.
        """
        while True:
            for falling, key, no in page:
                if only is None or no in only:
                    yield Place(falling, key, no)
            if len(page) < size or source.statement is None:
                return
            behind, size = page[-1][:2], min(size * GROWTH, MOST)
            if only is not None:
                yield Place(behind[0], behind[1], _PASSED)
            page = self._moment.query(source.statement, self._given(source, behind, size))

    # --- which sets

    def _sets(self) -> list[_Group]:
        wanted, seen = self._wanted, self._wanted.seen
        # What nobody is called is looked for as long as what somebody is called who is not seen (X2).
        label = ALL if wanted.label is None else _label(self._moment, wanted.label) or _NO_LABEL
        parent = None if wanted.parent is None else number_of(self._moment, wanted.parent) or _NOBODY
        scope = ALL if parent is None else -parent
        agents = {agent: agent_id for agent, agent_id in self._agents if wanted.agent_id in {None, agent_id}}
        if seen is None:
            return [_group(scope, label, agents, wanted.kinds)]
        closed = [agent for agent, agent_id in agents.items() if not seen.agent(agent_id)]
        groups = [_group(scope, label, agents.keys() - closed, wanted.kinds)]
        own = number_of(self._moment, seen.key)
        if own is not None:
            if seen.tree and (parent is None or own in (parent, *_ancestors(self._moment, parent))):
                groups.append(_group(own if parent is None else scope, label, closed, wanted.kinds))
            self._own = self._place_of(own, seen)
        return groups

    def _place_of(self, own: int, seen: VisibleSessions) -> Place | None:
        """Return the reader's own place, if it matches and is not among the agents it sees whole."""
        row = rows_at(self._moment, self._position, [own]).get(own)
        if row is None or row.archived is not None or seen.agent(row.agent_id):
            return None
        # Among the children of a session of its own tree it is found by the set of those.
        parent = self._wanted.parent
        is_there = parent is not None and seen.tree and row.spawned_by == parent and parent == row.key
        return Place(-row.updated_at, row.key, own) if matches(row, self._wanted) and not is_there else None


_PLACES: Final = (
    "SELECT falling, session_key, no FROM session_places WHERE scope = ? AND label = ? AND part = ? "
    "AND (falling, session_key) > (?, ?) AND falling <= ? AND since <= ? ORDER BY falling, session_key LIMIT ?"
)
_PAST: Final = (
    "SELECT falling, session_key, no FROM session_past WHERE scope = ? AND label = ? AND part = ? AND level = ? "
    "AND node = ? AND (falling, session_key) > (?, ?) AND falling <= ? AND since <= ? AND until > ? "
    "ORDER BY falling, session_key LIMIT ?"
)
_HEADS: Final = (
    "SELECT p.value, (SELECT falling FROM session_places WHERE scope = ?1 AND label = ?2 AND part = p.value "
    "AND (falling, session_key) > (?3, ?4) AND falling <= ?5 ORDER BY falling LIMIT 1) FROM json_each(?6) AS p"
)
_PAST_HEADS: Final = (
    "SELECT p.value, l.value, (SELECT falling FROM session_past WHERE scope = ?1 AND label = ?2 AND part = p.value "
    "AND level = l.value AND node = ?8 >> l.value AND (falling, session_key) > (?3, ?4) AND falling <= ?5 "
    "ORDER BY falling LIMIT 1) FROM json_each(?6) AS p CROSS JOIN json_each(?7) AS l"
)
_NUMBERS: Final = (
    "SELECT SUM((SELECT number FROM session_counts WHERE scope = ?1 AND part = p.value AND position <= ?2 "
    "ORDER BY position DESC LIMIT 1)) FROM json_each(?3) AS p"
)


def numbers(moment: Moment, position: int) -> dict[str, int]:
    """Return the number of sessions of each agent at a position, visible or not."""
    return {
        agent_id: number
        for agent, agent_id in _agents(moment)
        if (number := _number(moment, position, [_group(ALL, ALL, [agent], ())]))
    }


def _group(scope: int, label: int, agents: Iterable[int], kinds: Collection[Kind]) -> _Group:
    return _Group(
        scope, label, tuple(part_of(agent, kind) for agent in sorted(agents) for kind in kinds or KINDS)
    )


def _number(moment: Moment, position: int, groups: Sequence[_Group]) -> int:
    return sum(
        int(total or 0)
        for group in groups
        for (total,) in moment.query(
            _NUMBERS, (group.scope, position, msgspec.json.encode(group.parts).decode())
        )
    )


def _latest(moment: Moment, position: int) -> int:
    """Return a time (ms) that no session was updated after, as of a position."""
    ahead = "SELECT MAX(updated_at) FROM session_ahead WHERE position <= ?"
    (imported,), (stepped,), reached = moment.each(
        (ahead, (position,)), ahead_at(position), time_of(position)
    )
    return max(imported[0] or 0, stepped[0] or 0, time_in(reached, position) or 0)


def _agents(moment: Moment) -> list[tuple[int, str]]:
    (found,) = moment.each(("SELECT agent, agent_id FROM session_agents", ()))
    return [(agent, agent_id) for agent, agent_id in found]


def _label(moment: Moment, label: str) -> int | None:
    found = moment.query("SELECT label FROM session_labels WHERE text = ?", (to_text(label),))
    return found[0][0] if found else None


def _ancestors(moment: Moment, no: int) -> list[int]:
    return [parent for (parent,) in moment.query(_ABOVE, (no,))]


_ABOVE: Final = (
    "WITH RECURSIVE up (no) AS (SELECT parent FROM session_list WHERE no = ? AND parent IS NOT NULL UNION "
    "SELECT s.parent FROM session_list s JOIN up ON s.no = up.no WHERE s.parent IS NOT NULL) SELECT no FROM up"
)
