"""The view of usage: what the runs of each day, agent, session and model have used. It follows the log in its own time."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import Final, Literal

import msgspec

from intersession_events.facts import RunCompleted, topics_of
from intersession_events.log import Recorded, Row, Sql, SqlValue

_SESSION: Final = "session:"
_DAY_MS: Final = 86_400_000
_EVER: Final = 2**40
_FIRST: Final = date(1970, 1, 1)

Query = Callable[[str, Sequence[SqlValue]], list[Row]]
"""Runs a reading statement on the view's table."""

By = Literal["day", "agent", "session", "model"]

_BY: Final[Mapping[By, str]] = {
    "day": "day",
    "agent": "session_key",
    "session": "session_key",
    "model": "model",
}
_SUMS: Final = ("runs", "input", "output", "cache_read", "cache_write", "total_tokens", "cost_micros")
_ADD: Final = (
    "INSERT INTO usage VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?) ON CONFLICT (day, session_key, model) DO UPDATE SET "  # noqa: S608 - our own names
    + ", ".join(f"{name} = usage.{name} + excluded.{name}" for name in _SUMS)
)


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
                _ADD,
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
        f"SELECT {_BY[by]}, {', '.join(f'SUM({name})' for name in _SUMS)} FROM usage "  # noqa: S608 - our own names
        f"WHERE day BETWEEN ? AND ? GROUP BY {_BY[by]}",
        days,
    )
    sums: dict[str, Sequence[int]] = {}
    for place, *added in rows:
        of = _place(by, place)
        sums[of] = [one + other for one, other in zip(sums.get(of, [0] * len(_SUMS)), added, strict=True)]
    found = [Used(of=of, **dict(zip(_SUMS, added, strict=True))) for of, added in sums.items()]
    return sorted(found, key=lambda one: one.of if by == "day" else (-one.total_tokens, one.of))


def _place(by: By, value: str | int) -> str:
    if isinstance(value, int):
        return (_FIRST + timedelta(days=value)).isoformat()
    if by != "agent":
        return value
    kind, _, rest = value.partition(":")
    return rest.partition(":")[0] if kind == "agent" else ""
