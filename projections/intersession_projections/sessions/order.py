"""The order of the session list: last updated first, ties by key, as it is now or stood at a position (LIST-3).

What is now is read a page at a time, as far as somebody asks; the past is what is now with the changes since put back.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final, NamedTuple

from intersession_events.log import Log, SqlValue

_FIRST_PAGE: Final = 256
_GROWTH: Final = 8
_AT_ONCE: Final = 400
"""At most this many values go into one statement: SQLite's own bound may be as low as 999."""


class Place(NamedTuple):
    """Where a session stands in the list: its rank, and which version of its row stands there."""

    falling: int
    """The time of its last update (ms) below zero, so that places sort by themselves."""
    key: str
    position: int
    agent_id: str


Rank = tuple[int, str]
"""The first two parts of a place."""


class Seen(NamedTuple):
    """Which sessions a reader sees: all of some agents, and others by key (VIS-2)."""

    agent: Callable[[str], bool]
    keys: AbstractSet[str]


class _Condition(NamedTuple):
    """A part of a WHERE clause, with its values."""

    words: str = ""
    values: tuple[SqlValue, ...] = ()

    def and_also(self, other: "_Condition") -> "_Condition":
        return _Condition(self.words + other.words, self.values + other.values)


_NOTHING_MORE: Final = _Condition()


class SessionOrder:
    """The sessions that are not archived, at one position, of one agent or of all, as far as a reader sees them."""

    def __init__(
        self, log: Log, position: int, *, agent_id: str | None = None, seen: Seen | None = None
    ) -> None:
        self._log = log
        self._position = position
        self._of_agent = _NOTHING_MORE if agent_id is None else _Condition(" AND agent_id = ?", (agent_id,))
        self._seen = seen
        self._numbers = {} if seen is None else self._number_by_agent()
        self._visible = _NOTHING_MORE if seen is None else _visible(seen, self._numbers)

    def places(self, *, updated_since: int = 0, behind: Rank | None = None) -> Iterator[Place]:
        """Yield the places in order, behind a rank, of what was updated since a time (ms)."""
        size = _FIRST_PAGE
        while True:
            page = self._page(updated_since, behind, size)
            if self._has_moved():
                # What stood at the position has to be put together. It is the same order, so it goes on from here.
                yield from self._taken(self._then(), updated_since, behind)
                return
            whole = len(page) < size
            if not whole:
                # The store sorts by time alone, so more with the last time may follow.
                page = [place for place in page if place.falling < page[-1].falling]
            yield from self._taken(page, updated_since, behind)
            if whole:
                return
            behind = max(page)[:2] if page else behind
            size *= _GROWTH

    def hidden(self) -> int:
        """Return how many there are that the reader does not see."""
        seen = self._seen
        if seen is None:
            return 0
        if self._has_moved():
            return sum(not self._sees(place) for place in self._then())
        closed = {agent: number for agent, number in self._numbers.items() if not seen.agent(agent)}
        return sum(closed.values()) - (self._number_of_keys(seen.keys, closed) if closed else 0)

    def numbers(self) -> dict[str, int]:
        """Return how many each agent has now, whoever sees them."""
        return self._number_by_agent()

    def _taken(self, places: Sequence[Place], updated_since: int, behind: Rank | None) -> list[Place]:
        return sorted(
            place
            for place in places
            if -place.falling >= updated_since
            and (behind is None or place[:2] > behind)
            and self._sees(place)
        )

    def _sees(self, place: Place) -> bool:
        return self._seen is None or self._seen.agent(place.agent_id) or place.key in self._seen.keys

    def _has_moved(self) -> bool:
        """Whether a row has changed since the position. Asked after the rows were read: then they are of before."""
        newest = self._log.query("SELECT COALESCE(MAX(position), 0) FROM session_list")
        return bool(newest[0][0] > self._position)

    def _page(self, updated_since: int, behind: Rank | None, size: int) -> list[Place]:
        condition = self._of_agent.and_also(self._visible)
        if behind is not None:
            condition = condition.and_also(_Condition(" AND updated_at <= ?", (-behind[0],)))
        return self._select(
            f"archived = 0 AND updated_at >= ?{condition.words} ORDER BY updated_at DESC LIMIT ?",
            (updated_since, *condition.values, size),
        )

    def _then(self) -> list[Place]:
        """Return the places at the position, also the unseen. What changes meanwhile is found in one part or in both."""
        same = self._select(
            f"archived = 0 AND position <= ?{self._of_agent.words}", (self._position, *self._of_agent.values)
        )
        # CROSS JOIN, since SQLite would else begin with all versions there ever were.
        changed = self._log.query(
            "SELECT -v.updated_at, v.session_key, v.position, v.agent_id, v.archived FROM session_list s "  # noqa: S608 - our own words
            "CROSS JOIN session_versions v WHERE v.session_key = s.session_key AND v.position = "
            "(SELECT MAX(w.position) FROM session_versions w WHERE w.session_key = s.session_key "
            f"AND w.position <= ?) AND s.position > ?{self._of_agent.words.replace('agent_id', 'v.agent_id')}",
            (self._position, self._position, *self._of_agent.values),
        )
        places = {place.key: place for place in same}
        places.update((row[1], Place(*row[:4])) for row in changed if not row[4])
        return list(places.values())

    def _number_by_agent(self) -> dict[str, int]:
        rows = self._log.query(
            f"SELECT agent_id, COUNT(*) FROM session_list WHERE archived = 0{self._of_agent.words} GROUP BY agent_id",  # noqa: S608 - our own words
            self._of_agent.values,
        )
        return dict(rows)

    def _number_of_keys(self, keys: AbstractSet[str], agents: Collection[str]) -> int:
        """Return how many of some keys are sessions of some agents."""
        number, left = 0, iter(keys)
        while chunk := tuple(islice(left, _AT_ONCE)):
            rows = self._log.query(
                f"SELECT agent_id FROM session_list WHERE archived = 0{self._of_agent.words} "  # noqa: S608 - our own words
                f"AND session_key IN ({_marks(chunk)})",
                (*self._of_agent.values, *chunk),
            )
            number += sum(agent in agents for (agent,) in rows)
        return number

    def _select(self, condition: str, parameters: Sequence[SqlValue]) -> list[Place]:
        rows = self._log.query(
            f"SELECT -updated_at, session_key, position, agent_id FROM session_list WHERE {condition}",  # noqa: S608 - our own words
            parameters,
        )
        return [Place(*row) for row in rows]


def _visible(seen: Seen, agents: Collection[str]) -> _Condition:
    """Say what is seen, in the store's words; where there are too many keys for that, each place is looked at here."""
    open_agents = tuple(agent for agent in agents if seen.agent(agent))
    keys = tuple(seen.keys)
    if len(open_agents) + len(keys) > _AT_ONCE:
        return _NOTHING_MORE
    parts = [
        f"{column} IN ({_marks(values)})"
        for column, values in (("agent_id", open_agents), ("session_key", keys))
        if values
    ]
    return _Condition(f" AND ({' OR '.join(parts or ['1 = 0'])})", (*open_agents, *keys))


def _marks(values: Collection[str]) -> str:
    return ", ".join("?" * len(values))
