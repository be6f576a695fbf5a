"""The view of held sessions: the sessions, and the event that holds each (LIVE-1)."""

from collections.abc import Iterator, Sequence
from typing import Final

from intersession_events.basics.ids import SESSIONS
from intersession_events.facts import SessionArchived, SessionPatched, topics_of
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Ask, Sql

_HOLD: Final = "hold"


class HeldSessionsView:
    """Stores a row for each held session."""

    name = "held_sessions"
    shape = 1
    topics: Final = topics_of(SessionPatched, SessionArchived)

    def create(self, sql: Sql) -> None:
        """Create the table."""
        sql.execute(
            "CREATE TABLE IF NOT EXISTS held_sessions (session TEXT PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID"
        )

    def drop(self, sql: Sql) -> None:
        """Drop the table."""
        sql.execute("DROP TABLE IF EXISTS held_sessions")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        """Take events in: a hold, its end, and the end of a session."""
        for recorded in events:
            event, key = recorded.event, recorded.stream.removeprefix(SESSIONS)
            if not isinstance(event, SessionPatched | SessionArchived) or key == recorded.stream:
                continue
            if isinstance(event, SessionPatched) and _HOLD in event.values:
                sql.execute(
                    "INSERT INTO held_sessions VALUES (?, ?) ON CONFLICT (session) DO UPDATE SET position = ?",
                    (key, recorded.position, recorded.position),
                )
            elif isinstance(event, SessionArchived) or _HOLD in event.cleared:
                sql.execute("DELETE FROM held_sessions WHERE session = ?", (key,))


class HeldSessions:
    """Queries on held sessions."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def all(self) -> Iterator[Recorded]:
        """Yield the event that holds each session, in order of their keys."""
        (positions,) = self._log.answers(self.ask_positions())
        return self.at(positions)

    def ask_positions(self) -> Ask[list[int]]:
        """Ask for the positions of these events."""
        return Ask(
            [("SELECT position FROM held_sessions ORDER BY session", ())],
            lambda rows: [position for (position,) in rows[0]],
        )

    def at(self, positions: Sequence[int]) -> Iterator[Recorded]:
        """Yield the events at these positions, which hold sessions, in that order."""
        found = {recorded.position: recorded for recorded in self._log.at(positions)}
        yield from (found[position] for position in positions if position in found)
