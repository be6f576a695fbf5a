"""Queries on the session list, as it is now or was at any position (LIST, KEY-5)."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from intersession_events.log.log import Log
from intersession_events.log.sql import Question, Row, among
from intersession_projections.basics.columns import beginning_with, hashed, packed, to_text
from intersession_projections.views.sessions.order import SessionOrder
from intersession_projections.views.sessions.row import STORED, SessionRow
from intersession_projections.views.sessions.rows import row_at, row_now, row_of
from intersession_projections.views.sessions.session_filter import SessionFilter, VisibleSessions
from intersession_projections.views.sessions.versions import messages_in, versions_in

_NOW: Final = 2**62
_STORED: Final = (
    "SELECT session_key, position, state FROM session_list WHERE state IS NOT NULL AND session_key IN ({})"
)
_WITH_ITS_CALLER: Final = (
    "WITH RECURSIVE up (no) AS ("
    "SELECT parent FROM session_list WHERE session_key = ? UNION "
    "SELECT s.parent FROM session_list s JOIN up ON s.no = up.no) "
    "SELECT s.session_key, s.position, s.state, EXISTS (SELECT 1 FROM up WHERE up.no = s.no) "
    "FROM session_list s WHERE s.session_key IN (?, ?)"
)
_HAD: Final = (
    "SELECT DISTINCT p.session_key FROM session_labels l JOIN session_past p ON p.scope = 0 AND p.label = l.label "
    "WHERE l.text = ?"
)
_HAD_ID: Final = (
    "SELECT s.session_key FROM session_generations g JOIN session_list s ON s.no = g.no "
    "WHERE g.session_id = ? AND g.position <= ? ORDER BY g.position DESC, s.session_key"
)
_MESSAGE: Final = (
    "SELECT m.version FROM session_messages m JOIN session_list s ON s.no = m.no "
    "WHERE s.session_key = ? AND m.message = ? ORDER BY m.version DESC"
)
_RECENT: Final = "SELECT recent FROM session_list WHERE session_key = ? AND recent IS NOT NULL"
# Looked up one by one, for a join need not keep their order.
_UP: Final = (
    "WITH RECURSIVE up (no) AS ("
    "SELECT parent FROM session_list WHERE session_key = ? UNION "
    "SELECT s.parent FROM session_list s JOIN up ON s.no = up.no) "
    "SELECT (SELECT s.session_key FROM session_list s WHERE s.no = up.no) FROM up"
)


def _recent_of(number: int, recent: Iterable[Row]) -> list[int]:
    """Return where a message lies among the last versions of a session's row, the last first."""
    return [
        version
        for (block,) in recent
        for message, version in reversed(messages_in(versions_in(block)))
        if message == number
    ]


class Generation(NamedTuple):
    """The session of an id, and whether the key means that generation now (KEY-5).

    `current` is False for a generation before a reset and for an archived session: those can be read, not
    addressed.
    """

    key: str
    current: bool


class Span(NamedTuple):
    """Where a generation's messages lie in its stream: from a version on, up to one (None: the end)."""

    from_version: int
    to_version: int | None


class Called(NamedTuple):
    """A session, its reader, and whether the reader spawned it, directly or not; None if there is no such session."""

    row: SessionRow | None
    caller: SessionRow | None
    in_tree: bool


class Sessions:
    """Queries on the session list. `as_of` is a position; None is now."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def get(self, key: str, as_of: int | None = None) -> SessionRow | None:
        """Return the row of a key, also of an archived session; None if there was no such session."""
        if as_of is not None:
            with self._log.moment() as moment:
                return row_at(moment, as_of, moment.query(*row_of(key)))
        return next((row_now(stored) for stored in self._log.query(*row_of(key))), None)

    def called(self, key: str, caller: str) -> Called:
        """Return the row of a key and the row of the session that asks for it. A missing key takes as long as a present one."""
        stored = self._log.query(_WITH_ITS_CALLER, (key, key, caller))
        there = [row for row in stored if row[2] is not None]
        if len(there) == 1:
            there *= 2  # as many rows are read as of one that is there
        rows = {
            name: STORED.restored(state, key=name, position=position) for name, position, state, _ in there
        }
        in_tree = any(is_above and name != key for name, _, _, is_above in stored)
        return Called(rows.get(key), rows.get(caller), in_tree)

    def many(self, keys: Iterable[str]) -> list[SessionRow]:
        """Return the rows of some keys, also of archived sessions; missing ones are left out."""
        return [
            STORED.restored(state, key=key, position=position)
            for rows in self._log.each(among(_STORED, keys))
            for key, position, state in rows
        ]

    def by_session_id(self, session_id: str, as_of: int | None = None) -> Generation | None:
        """Return the key a session id belongs or belonged to (KEY-5)."""
        rows = self._log.query(_HAD_ID, (packed(session_id), _NOW if as_of is None else as_of))
        return _generation(Generation(key, _is_current(self.get(key, as_of), session_id)) for (key,) in rows)

    def of_session_ids(self, session_ids: Sequence[str]) -> list[tuple[str, SessionRow | None] | None]:
        """Return the key of each of some session ids, past or present, and the row of that key."""
        asked = self._log.each((_HAD_ID, (packed(session_id), _NOW)) for session_id in session_ids)
        rows = {row.key: row for row in self.many(key for found in asked for (key,) in found)}
        each = [
            _generation(Generation(key, _is_current(rows.get(key), session_id)) for (key,) in found)
            for session_id, found in zip(session_ids, asked, strict=True)
        ]
        return [None if found is None else (found.key, rows.get(found.key)) for found in each]

    def keys_beginning(self, text: str) -> list[str]:
        """Return the keys of sessions that begin with a text, also of archived ones."""
        rows = self._log.query(
            "SELECT session_key FROM session_list WHERE session_key >= ? AND session_key < ? AND state IS NOT NULL "
            "ORDER BY session_key",
            (text, f"{text}\U0010ffff"),
        )
        return [key for (key,) in rows]

    def session_ids(self, beginning: str, limit: int) -> list[str]:
        """Return the ids of generations that begin with a text."""
        statement = (
            "SELECT DISTINCT session_id FROM session_generations WHERE session_id BETWEEN ? AND ? LIMIT ?"
        )
        return beginning_with(self._log.query, statement, beginning, limit)

    def span(self, key: str, session_id: str) -> Span | None:
        """Return where a generation's messages lie in the key's stream."""
        return self.spans([(key, session_id)]).get(key)

    def spans(self, generations: Sequence[tuple[str, str]]) -> dict[str, Span]:
        """Return where some generations' messages lie, one of each key: given by a key and a session id that it has had."""
        return _spans(self._log.query(*_spans_of(generations))) if generations else {}

    def found(
        self, key: str, session_id: str, position: int | None
    ) -> tuple[int, SessionRow | None, Span | None]:
        """Return the row of a key at a position (None: now), and where a generation's messages lie, as of one moment.

        The position comes first, as it was then if none was given.
        """
        with self._log.moment() as moment:
            rows, spans = moment.each(row_of(key), _spans_of([(key, session_id)]))
            at = moment.head if position is None else position
            return at, row_at(moment, at, rows), _spans(spans).get(key)

    def versions_of_message(self, key: str, message_id: str) -> list[int]:
        """Return the versions of the key's stream that may record a message with an id, the last first: nearly always one.

        Another id may share the number that stands for it: compare after reading.
        """
        return self.versions_of_messages([(key, message_id)])[0]

    def versions_of_messages(self, messages: Iterable[tuple[str, str]]) -> list[list[int]]:
        """Return the same for several messages, each by the key of its session and its id."""
        asked = [(key, hashed(message_id)) for key, message_id in messages]
        found = self._log.each(
            question for key, number in asked for question in ((_RECENT, (key,)), (_MESSAGE, (key, number)))
        )
        return [
            [*_recent_of(number, recent), *(version for (version,) in older)]
            for (_, number), recent, older in zip(asked, found[::2], found[1::2], strict=True)
        ]

    def by_label(
        self, label: str, agent_id: str | None = None, *, seen: VisibleSessions | None = None
    ) -> list[SessionRow]:
        """Return the visible rows with exactly this label, by key; archived ones are left out."""
        order = self.order(wanted=SessionFilter(agent_id=agent_id, label=label, seen=seen))
        return sorted(order.rows(order.places()), key=lambda row: row.key)

    def named_by(self, label: str, agent_id: str | None = None) -> list[SessionRow]:
        """Return the sessions with a label, by key; if none has it, the archived ones that had it."""
        if found := self.by_label(label, agent_id):
            return found
        rows = self._log.query(_HAD, (to_text(label),))
        return sorted(
            (
                row
                for row in self.many(key for (key,) in rows)
                if row.archived is not None and row.label == label and agent_id in {None, row.agent_id}
            ),
            key=lambda row: row.key,
        )

    def order(self, as_of: int | None = None, wanted: SessionFilter | None = None) -> SessionOrder:
        """Return the places of the list, of all sessions or of those that match a filter."""
        return SessionOrder(
            self._log, self._log.head() if as_of is None else as_of, wanted or SessionFilter()
        )

    def descendants(self, key: str, as_of: int | None = None) -> set[str]:
        """Return the keys of all sessions that it spawned, directly or not, also of archived ones (VIS-2)."""
        rows = self._log.query(
            "WITH RECURSIVE tree (no) AS ("
            "SELECT c.no FROM session_list s JOIN session_list c ON c.parent = s.no WHERE s.session_key = ? UNION "
            "SELECT c.no FROM session_list c JOIN tree t ON c.parent = t.no) "
            "SELECT s.session_key FROM tree JOIN session_list s ON s.no = tree.no WHERE s.opened <= ?",
            (key, _NOW if as_of is None else as_of),
        )
        return {child for (child,) in rows} - {key}

    def ancestors(self, key: str) -> list[str]:
        """Return the keys of its ancestors, the nearest first. A missing key takes as long as a present one."""
        return self.ancestors_of_each([key])[0]

    def ancestors_of_each(self, keys: Sequence[str]) -> list[list[str]]:
        """Return the same for several keys."""
        each = self._log.each((_UP, (key,)) for key in keys)
        return [
            [parent for (parent,) in rows if parent not in {None, key}]
            for key, rows in zip(keys, each, strict=True)
        ]


def _is_current(row: SessionRow | None, session_id: str) -> bool:
    return row is not None and row.session_id == session_id and row.archived is None


def _generation(found: Iterable[Generation]) -> Generation | None:
    """Return the generation that is current, else the first, of those that had one id."""
    each = list(found)
    return next((generation for generation in each if generation.current), each[0] if each else None)


def _spans_of(generations: Sequence[tuple[str, str]]) -> Question:
    return (
        (
            f"WITH wanted (session_key, session_id) AS (VALUES {', '.join(['(?, ?)'] * len(generations))}) "  # noqa: S608 - question marks
            "SELECT w.session_key, g.from_version, g.to_version FROM wanted w JOIN session_list s "
            "ON s.session_key = w.session_key JOIN session_generations g ON g.session_id = w.session_id AND g.no = s.no"
        ),
        [part for key, session_id in generations for part in (key, packed(session_id))],
    )


def _spans(rows: Iterable[Row]) -> dict[str, Span]:
    return {key: Span(*ends) for key, *ends in rows}
