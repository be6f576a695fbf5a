"""(d) `sessions_list` where there are 10,000 sessions, with and without their last message."""

from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, spread, timed
from benchmarks.logs import draft as drafted
from benchmarks.logs import open_sessions, opening, session_key, to, write
from intersession_actors.config import load_config
from intersession_actors.runtime import SystemClock
from intersession_actors.service import Reader
from intersession_actors.tools import list_sessions
from intersession_events.stores import SqliteLog
from intersession_projections.inline_views import inline_views

NAME = "list"
LIMIT = 50
MAIN = "agent:main:main"
CHILDREN = 60
_MESSAGE = "All three hosts answer again; the third needed a new disk. " * 8


def measure(directory: Path, *, sessions: int = 10_000, calls: int = 50) -> list[Figure]:
    """List as the operator, as a session that sees all, and as one that sees what it spawned."""
    figures: list[Figure] = []
    with SqliteLog(directory / "log.db", inline=inline_views()) as log:
        children = [session_key(number, "desk") for number in range(min(CHILDREN, sessions))]
        write(
            log,
            (to(key, drafted(opening(key, spawned_by=MAIN), f"child-{key}")) for key in [MAIN, *children]),
        )
        open_sessions(log, [session_key(number) for number in range(sessions)], messages=1, text=_MESSAGE)
        head = log.head()
        for who, requester, visibility in (
            ("operator", None, "all"),
            ("session, sees all", MAIN, "all"),
            ("session, sees its tree", MAIN, "tree"),
        ):
            reader = _reader(log, visibility)
            for messages in (0, 1):
                name = f"{who}, messageLimit {messages}"
                figures += _calls(reader, name, requester, calls, limit=LIMIT, messageLimit=messages)
        reader = _reader(log, "all")
        figures += _calls(reader, "operator, asOf the middle", None, calls, limit=LIMIT, asOf=head // 2)
        figures += _calls(
            reader, "operator, search that finds nothing", None, calls, limit=LIMIT, search="no such"
        )
    return figures


def _calls(reader: Reader, name: str, requester: str | None, calls: int, **arguments: Any) -> list[Figure]:
    def once() -> None:
        list_sessions(reader, reader.requester(requester), arguments)

    timed(once, 2)
    return spread(NAME, name, timed(once, calls))


def _reader(log: SqliteLog, visibility: str) -> Reader:
    config = load_config(
        {"tools": {"sessions": {"visibility": visibility}, "agentToAgent": {"enabled": visibility == "all"}}}
    ).config
    return Reader(log, config=lambda: config, clock=SystemClock())
