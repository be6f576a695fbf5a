"""The view of thread bindings: which thread of a channel belongs to which session (SPAWN-12)."""

from collections.abc import Sequence
from typing import Final

from intersession_events.facts import Route, SessionArchived, ThreadBound, ThreadUnbound, topics_of
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Sql

_SESSION: Final = "session:"


class ThreadBindingsView:
    """Keeps a row per session that has a thread: the thread is its own until it is unbound or archived."""

    name = "thread_bindings"
    shape = 2
    topics: Final = topics_of(ThreadBound, ThreadUnbound, SessionArchived)

    def create(self, sql: Sql) -> None:
        """Create the table."""
        sql.execute(
            "CREATE TABLE IF NOT EXISTS thread_bindings (session_key TEXT PRIMARY KEY, channel TEXT NOT NULL, "
            "account TEXT NOT NULL, chat TEXT NOT NULL, thread TEXT NOT NULL, bound BIGINT NOT NULL, "
            "is_limited INTEGER NOT NULL)"
        )
        sql.execute(
            "CREATE INDEX IF NOT EXISTS thread_bindings_thread ON thread_bindings (channel, account, chat, thread)"
        )

    def drop(self, sql: Sql) -> None:
        """Drop the table."""
        sql.execute("DROP TABLE IF EXISTS thread_bindings")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        """Take events in."""
        for recorded in events:
            _take(sql, recorded)


def _take(sql: Sql, recorded: Recorded) -> None:
    if not recorded.stream.startswith(_SESSION):
        return
    key = recorded.stream.removeprefix(_SESSION)
    match recorded.event:
        case ThreadBound(route=route) as event:
            limited = int(event.idle_ms > 0 or event.max_age_ms > 0)
            sql.execute("DELETE FROM thread_bindings WHERE session_key = ?", (key,))
            sql.execute(
                "INSERT INTO thread_bindings (session_key, channel, account, chat, thread, bound, is_limited) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (key, *_address(route), recorded.position, limited),
            )
        case ThreadUnbound() | SessionArchived():
            sql.execute("DELETE FROM thread_bindings WHERE session_key = ?", (key,))
        case _:
            pass


class ThreadBindings:
    """Queries on threads that belong to sessions, as they do now."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def session_of(self, route: Route) -> str | None:
        """Return the session that a thread belongs to; the last one that was bound, should there be several."""
        if route.thread is None:
            return None
        rows = self._log.query(
            "SELECT session_key FROM thread_bindings WHERE channel = ? AND account = ? AND chat = ? AND thread = ? "
            "ORDER BY bound DESC LIMIT 1",
            _address(route),
        )
        return rows[0][0] if rows else None

    def of(self, key: str) -> Route | None:
        """Return the thread that belongs to a session."""
        rows = self._log.query(
            "SELECT channel, account, chat, thread FROM thread_bindings WHERE session_key = ?", (key,)
        )
        for channel, account, chat, thread in rows:
            return Route(channel=channel, to=chat, account=account or None, thread=thread)
        return None

    def all(self) -> list[tuple[str, Route]]:
        """Return the sessions that have a thread, and theirs, in the order they got it."""
        rows = self._log.query(
            "SELECT session_key, channel, account, chat, thread FROM thread_bindings ORDER BY bound"
        )
        return [
            (key, Route(channel=channel, to=chat, account=account or None, thread=thread))
            for key, channel, account, chat, thread in rows
        ]

    def limited_sessions(self) -> list[str]:
        """Return the sessions whose thread is theirs for a time, in the order they got it."""
        rows = self._log.query("SELECT session_key FROM thread_bindings WHERE is_limited = 1 ORDER BY bound")
        return [key for (key,) in rows]


def _address(route: Route) -> tuple[str, str, str, str]:
    return route.channel, route.account or "", route.to, route.thread or ""
