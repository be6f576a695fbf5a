"""The view of usage: what the runs of each day, agent, session and model have used. It follows the log in its own time."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from intersession_events.facts import RunCompleted, topics_of
from intersession_events.log import Recorded, Row, Sql, SqlValue

_SESSION: Final = "session:"
_DAY_MS: Final = 86_400_000
_EVER: Final = 2**40

Query = Callable[[str, Sequence[SqlValue]], list[Row]]
"""Runs a reading statement on the view's table."""

By = Literal["day", "agent", "session", "model"]

_BY: Final[Mapping[By, str]] = {
    "day": "date(day * 86400, 'unixepoch')",
    "agent": "CASE WHEN session_key LIKE 'agent:%' "
    "THEN substr(session_key, 7, instr(substr(session_key, 7), ':') - 1) ELSE '' END",
    "session": "session_key",
    "model": "model",
}


class Used(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What runs have used together: tokens, and money in micro-units. `of` is the day, agent, session or model."""

    of: str
    runs: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    total_tokens: int
    cost_micros: int


class UsageView:
    """A row for each day (of UTC), session and model. Of the log it takes the ends of runs alone."""

    name = "usage"
    shape = 1
    topics: Final = topics_of(RunCompleted)

    def create(self, sql: Sql) -> None:
        """Create the table if it is not there."""
        sql.execute(
            "CREATE TABLE IF NOT EXISTS usage (day INTEGER NOT NULL, session_key TEXT NOT NULL, model TEXT NOT NULL, "
            "runs INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL, "
            "cache_write INTEGER NOT NULL, total_tokens INTEGER NOT NULL, cost_micros INTEGER NOT NULL, "
            "PRIMARY KEY (day, session_key, model)) WITHOUT ROWID"
        )

    def drop(self, sql: Sql) -> None:
        """Drop the table if it is there."""
        sql.execute("DROP TABLE IF EXISTS usage")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        """Add up the runs that were answered."""
        for recorded in events:
            event = recorded.event
            if not isinstance(event, RunCompleted) or event.usage is None:
                continue
            used = event.usage
            sql.execute(
                "INSERT INTO usage VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET runs = runs + 1, "
                "input = input + excluded.input, output = output + excluded.output, "
                "cache_read = cache_read + excluded.cache_read, cache_write = cache_write + excluded.cache_write, "
                "total_tokens = total_tokens + excluded.total_tokens, cost_micros = cost_micros + excluded.cost_micros",
                (
                    recorded.time // _DAY_MS,
                    recorded.stream.removeprefix(_SESSION),
                    event.model or "",
                    used.input,
                    used.output,
                    used.cache_read,
                    used.cache_write,
                    used.tokens,
                    used.cost_micros or 0,
                ),
            )


def used(query: Query, by: By, *, since_ms: int | None = None, until_ms: int | None = None) -> list[Used]:
    """Return what was used by each day, agent, session or model, the most tokens first (days in their order).

    Whole days of UTC, from that of `since_ms` to that of `until_ms`.
    """
    days = [
        -_EVER if since_ms is None else since_ms // _DAY_MS,
        _EVER if until_ms is None else until_ms // _DAY_MS,
    ]
    rows = query(
        f"SELECT {_BY[by]} AS place, SUM(runs), SUM(input), SUM(output), SUM(cache_read), SUM(cache_write), "  # noqa: S608 - one of four
        "SUM(total_tokens), SUM(cost_micros) FROM usage WHERE day BETWEEN ? AND ? GROUP BY place "
        f"ORDER BY {'place' if by == 'day' else 'SUM(total_tokens) DESC, place'}",
        days,
    )
    return [Used(**dict(zip(Used.__struct_fields__, row, strict=True))) for row in rows]
