"""Ordered sets of sessions: the list reads the set that fits its filters, place by place.

A set is of one agent and one kind, of all sessions or of those that one session spawned, with any label or with one. So
whatever is asked for is a few sets, and a page of it costs a page. What stood where is kept as well, in levels: a place that was
held from one position to another lies at the highest binary digit in which the two differ, so that each position passes
one part of each level, and finds there only what stood across the middle of that part.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Final, NamedTuple, Protocol

from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import Kind, SessionKey
from intersession_events.log.sql import Row, Sql

KINDS: Final[tuple[Kind, ...]] = ("main", "group", "cron", "hook", "node", "other")
_PARTS: Final = 8
"""Numbers of parts that each agent has."""

ALL: Final = 0
"""The scope of all sessions, and the label of those with any."""


class ListSet(NamedTuple):
    """One set: its scope, its label, its part."""

    scope: int
    """`ALL`, or the number of the session whose descendants these are; below zero: its children."""
    label: int
    part: int


def part_of(agent: int, kind: Kind) -> int:
    """Return the number of the sessions of one agent and one kind."""
    return agent * _PARTS + KINDS.index(kind)


def agent_of(part: int) -> int:
    """Return the number of the agent of a part."""
    return part // _PARTS


@lru_cache(4096)
def kind_of(key: str) -> Kind:
    """Return the kind of a session by its key, for the usual name of the main session."""
    try:
        return SessionKey.recorded(key).kind
    except InvalidKey:
        return "other"


def level_of(since: int, until: int) -> int:
    """Return the level of a place that was held from one position until before another."""
    return (since ^ until).bit_length()


class Held(NamedTuple):
    """The place of a session in each of its sets."""

    sets: frozenset[ListSet]
    falling: int


NOWHERE: Final = Held(frozenset(), 0)


def create(sql: Sql) -> None:
    """Create the tables."""
    sql.execute(
        "CREATE TABLE IF NOT EXISTS session_agents (agent INTEGER PRIMARY KEY, agent_id TEXT NOT NULL UNIQUE)"
    )
    sql.execute(
        "CREATE TABLE IF NOT EXISTS session_labels (label INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)"
    )
    sql.execute(
        "CREATE TABLE IF NOT EXISTS session_places (scope INTEGER NOT NULL, label INTEGER NOT NULL, "
        "part INTEGER NOT NULL, falling INTEGER NOT NULL, session_key TEXT NOT NULL, no INTEGER NOT NULL, "
        "since INTEGER NOT NULL, PRIMARY KEY (scope, label, part, falling, session_key)) WITHOUT ROWID"
    )
    sql.execute(
        "CREATE TABLE IF NOT EXISTS session_past (scope INTEGER NOT NULL, label INTEGER NOT NULL, "
        "part INTEGER NOT NULL, level INTEGER NOT NULL, node INTEGER NOT NULL, falling INTEGER NOT NULL, "
        "session_key TEXT NOT NULL, no INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL, "
        "PRIMARY KEY (scope, label, part, level, node, falling, session_key)) WITHOUT ROWID"
    )
    sql.execute(
        "CREATE TABLE IF NOT EXISTS session_counts (scope INTEGER NOT NULL, part INTEGER NOT NULL, "
        "position INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (scope, part, position)) WITHOUT ROWID"
    )
    sql.execute(
        "CREATE TABLE IF NOT EXISTS session_ahead (position INTEGER PRIMARY KEY, updated_at INTEGER NOT NULL)"
    )


TABLES: Final = (
    "session_agents",
    "session_labels",
    "session_places",
    "session_past",
    "session_counts",
    "session_ahead",
)


class _Left(NamedTuple):
    """A place that was left, and the row that tells since when it was held."""

    since: Callable[[], list[Row]]
    place: ListSet
    falling: int
    key: str
    no: int
    until: int


Since = dict[tuple[ListSet, int], int]
"""Since when places are held, by their set and where in it."""


class Moved(Protocol):
    """The change of a session's places."""

    no: int
    key: str
    since: Since
    """Since when it holds its places, as far as that is remembered."""


class Moves:
    """Changes of places while a batch of events is taken in. Places that were left are stored at the end."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._left: list[_Left] = []

    def move(self, who: Moved, before: Held, after: Held, position: int) -> None:
        """Move a session from its places to others, at a position."""
        no, key = who.no, who.key
        stays = before.sets & after.sets if before.falling == after.falling else frozenset[ListSet]()
        taken = set(after.sets - stays)
        for one in sorted(before.sets - stays):
            place = (*one, before.falling, key)
            known = who.since.pop((one, before.falling), None)
            if known is None:
                # The caller has to wait for it.
                since = self._sql.later(f"{_LEAVE} RETURNING since", place)
            else:
                since = partial(_known, known)
                if one in taken:
                    self._sql.execute(_MOVE, (after.falling, position, *place))
                    who.since[one, after.falling] = position
                    taken.remove(one)
                else:
                    self._sql.execute(_LEAVE, place)
            self._left.append(_Left(since, one, before.falling, key, no, position))
        for one in sorted(taken):
            self._sql.execute(
                "INSERT INTO session_places VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*one, after.falling, key, no, position),
            )
            who.since[one, after.falling] = position
        for one in sorted(before.sets ^ after.sets):
            if one.label == ALL:
                _count(self._sql, one, position, 1 if one in after.sets else -1)

    def store(self) -> None:
        """Store the period of each place that was left."""
        for one in self._left:
            ((since,),) = one.since()
            if since < one.until:
                level = level_of(since, one.until)
                self._sql.execute(
                    "INSERT INTO session_past VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (*one.place, level, since >> level, one.falling, one.key, one.no, since, one.until),
                )


_PLACE: Final = "WHERE scope = ? AND label = ? AND part = ? AND falling = ? AND session_key = ?"
_LEAVE: Final = f"DELETE FROM session_places {_PLACE}"  # noqa: S608 - our own words
_MOVE: Final = f"UPDATE session_places SET falling = ?, since = ? {_PLACE}"  # noqa: S608 - our own words


def _known(since: int) -> list[Row]:
    return [(since,)]


def _count(sql: Sql, one: ListSet, position: int, more: int) -> None:
    found = sql.execute(
        "SELECT number FROM session_counts WHERE scope = ? AND part = ? ORDER BY position DESC LIMIT 1",
        (one.scope, one.part),
    ).fetchone()
    number = (0 if found is None else found[0]) + more
    sql.execute(
        "INSERT INTO session_counts VALUES (?, ?, ?, ?) ON CONFLICT (scope, part, position) "
        "DO UPDATE SET number = excluded.number",
        (one.scope, one.part, position, number),
    )


class Numbers:
    """The numbers of agents and labels, each read once a batch."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._known: dict[tuple[str, str], int] = {}

    def learn(self, agents: Iterable[Row]) -> None:
        """Add numbers of agents that were read."""
        self._known.update((("session_agents", agent_id), agent) for agent, agent_id in agents)

    def of_agent(self, agent_id: str) -> int:
        """Return the number of an agent, a new one for a new agent."""
        return self._number("session_agents", "agent", "agent_id", agent_id)

    def of_label(self, text: str) -> int:
        """Return the number of a label (as JSON), a new one for a new label."""
        return self._number("session_labels", "label", "text", text)

    def _number(self, table: str, number: str, column: str, value: str) -> int:
        if (known := self._known.get((table, value))) is not None:
            return known
        select = f"SELECT {number} FROM {table} WHERE {column} = ?"  # noqa: S608 - our own words
        found = self._sql.execute(select, (value,)).fetchone()
        if found is None:
            self._sql.execute(
                f"INSERT INTO {table} ({number}, {column}) SELECT COALESCE(MAX({number}), 0) + 1, ? FROM {table}",  # noqa: S608 - our own words
                (value,),
            )
            found = self._sql.execute(select, (value,)).fetchone()
        no: int = found[0]
        self._known[table, value] = no
        return no
