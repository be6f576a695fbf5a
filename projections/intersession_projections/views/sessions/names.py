"""Names of sessions for people: sub-agents by their labels, if such a name is unique; others by their keys.

What is shown so can be typed: `named_by` is the other way round.
"""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Final, NamedTuple

from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.keys.short_names import short_name
from intersession_events.log.log import Log
from intersession_events.log.sql import Question, among
from intersession_projections.basics.columns import to_text
from intersession_projections.views.sessions.list import Sessions
from intersession_projections.views.sessions.row import SessionRow
from intersession_projections.views.sessions.sets import ALL, part_of

_LONGEST: Final = 64
_PARTS: Final = part_of(1, "main") - part_of(0, "main")


class _Holders(NamedTuple):
    """The first and the last session of an agent that has a label; where none has, of those that ever had it."""

    first: str | None
    last: str | None
    first_of_all: str | None
    last_of_all: str | None

    def mean(self, row: SessionRow) -> bool:
        """Whether the label means this session, and no other one."""
        if row.archived is None:
            return self.first == self.last == row.key
        return self.first is None and self.first_of_all == self.last_of_all == row.key


class SessionNames:
    """The names of sessions for a reader of some of them (`sees`; None: all): invisible sessions change no name."""

    def __init__(self, log: Log, sees: Callable[[str], bool] | None = None) -> None:
        self._log = log
        self._sessions = Sessions(log)
        self._sees = sees

    def one(self, key: str) -> str:
        """Return the name of a session; any other text unchanged."""
        return self.of((key,))[key]

    def of(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the name of each session, by its key, with two queries for all; any other text unchanged."""
        named = {key: short_name(key) for key in keys}
        seen = [key for key in named if _is_sub_agent(key) and (self._sees is None or self._sees(key))]
        rows = [row for row in self._sessions.many(seen) if row.label and _can_be_typed(row.label)]
        if not rows:
            return named
        # A key may end as a label does: what is typed is that session then.
        own = {key for (key,) in self._each(among(_KEYS, map(_as_key, rows)))}
        means = self._meant(rows) if self._sees is None else self._meant_for(rows, self._sees)
        for row in rows:
            if row.key in means and _as_key(row) not in own:
                named[row.key] = f"{row.agent_id}/{row.label}"
        return named

    def _meant(self, rows: Iterable[SessionRow]) -> set[str]:
        """Return the sessions that their labels mean, of all."""
        found = list(rows)
        agents = dict.fromkeys(row.agent_id for row in found)
        labels = dict.fromkeys(to_text(row.label) for row in found)
        holders = {
            (agent_id, label): _Holders(*ends)
            for one in agents
            for agent_id, label, *ends in self._each(
                (statement, [one, *some]) for statement, some in among(_HOLDERS, labels)
            )
        }
        return {
            row.key
            for row in found
            if (of := holders.get((row.agent_id, to_text(row.label)))) is not None and of.mean(row)
        }

    def _meant_for(self, rows: Iterable[SessionRow], sees: Callable[[str], bool]) -> set[str]:
        """Return the sessions that their labels mean, of those that the caller sees."""
        meant: set[str] = set()
        for row in rows:
            found = [
                one.key for one in self._sessions.named_by(row.label or "", row.agent_id) if sees(one.key)
            ]
            if found == [row.key]:
                meant.add(row.key)
        return meant

    def _each(self, questions: Iterable[Question]) -> Iterable[tuple[str, ...]]:
        return list(chain.from_iterable(self._log.each(questions)))


def _is_sub_agent(key: str) -> bool:
    try:
        return SessionKey.recorded(key).is_subagent
    except InvalidKey:
        return False


def _can_be_typed(label: str) -> bool:
    """Whether a label can be read off a terminal, and is no part of a key or of a place."""
    return (
        len(label) <= _LONGEST
        and label.isprintable()
        and label == label.strip()
        and not {":", "@"} & set(label)
    )


def _as_key(row: SessionRow) -> str:
    return f"agent:{row.agent_id}:{row.label}"


_KEYS: Final = "SELECT session_key FROM session_list WHERE state IS NOT NULL AND session_key IN ({})"
_LIVE: Final = (
    f"FROM session_places p WHERE p.scope = {ALL} AND p.label = l.label "
    f"AND p.part BETWEEN a.agent * {_PARTS} AND a.agent * {_PARTS} + {_PARTS - 1}"
)
_GONE: Final = _LIVE.replace("session_places", "session_past")
_HOLDERS: Final = (
    "SELECT a.agent_id, l.text, "  # noqa: S608 - our own words
    f"(SELECT p.session_key {_LIVE} ORDER BY p.part, p.falling, p.session_key LIMIT 1), "
    f"(SELECT p.session_key {_LIVE} ORDER BY p.part DESC, p.falling DESC, p.session_key DESC LIMIT 1), "
    f"CASE WHEN EXISTS (SELECT 1 {_LIVE}) THEN NULL ELSE (SELECT MIN(p.session_key) {_GONE}) END, "
    f"CASE WHEN EXISTS (SELECT 1 {_LIVE}) THEN NULL ELSE (SELECT MAX(p.session_key) {_GONE}) END "
    "FROM session_agents a, session_labels l WHERE a.agent_id = ? AND l.text IN ({})"
)
