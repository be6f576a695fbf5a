"""The view of thread bindings: the session of each thread of a channel (SPAWN-12)."""

from collections.abc import Sequence
from typing import Final

from intersession_events.basics.ids import SESSIONS
from intersession_events.facts import Route, SessionArchived, ThreadBound, ThreadUnbound, topics_of
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Sql


class ThreadBindingsView:
    """Stores a row per session that has a thread, until the thread is unbound or the session is archived."""

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
    if not recorded.stream.startswith(SESSIONS):
        return
    key = recorded.stream.removeprefix(SESSIONS)
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
    """Queries on the present bindings of threads."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def session_of(self, route: Route) -> str | None:
        """Return the session of a thread; the last one bound, if there are several."""
        if route.thread is None:
            return None
        rows = self._log.query(
            "SELECT session_key FROM thread_bindings WHERE channel = ? AND account = ? AND chat = ? AND thread = ? "
            "ORDER BY bound DESC LIMIT 1",
            _address(route),
        )
        return rows[0][0] if rows else None

    def of(self, key: str) -> Route | None:
        """Return the thread of a session."""
        rows = self._log.query(
            "SELECT channel, account, chat, thread FROM thread_bindings WHERE session_key = ?", (key,)
        )
        for channel, account, chat, thread in rows:
            return Route(channel=channel, to=chat, account=account or None, thread=thread)
        return None

    def all(self) -> list[tuple[str, Route]]:
        """Return the sessions with a thread, and their threads, in the order of binding."""
        rows = self._log.query(
            "SELECT session_key, channel, account, chat, thread FROM thread_bindings ORDER BY bound"
        )
        return [
            (key, Route(channel=channel, to=chat, account=account or None, thread=thread))
            for key, channel, account, chat, thread in rows
        ]

    def limited_sessions(self) -> list[str]:
        """Return the sessions whose binding has an end, in the order of binding."""
        rows = self._log.query("SELECT session_key FROM thread_bindings WHERE is_limited = 1 ORDER BY bound")
        return [key for (key,) in rows]


def _address(route: Route) -> tuple[str, str, str, str]:
    return route.channel, route.account or "", route.to, route.thread or ""
