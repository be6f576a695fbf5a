"""The view of usage: the usage of runs by day, agent, session and model. It follows the log in its own time."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import Final, Literal

import msgspec

from intersession_events.facts import MessageRecorded, RunCompleted, Usage, is_imported, topics_of
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Row, Sql, SqlValue

_SESSION: Final = "session:"
DAY_MS: Final = 86_400_000
_EVER: Final = 2**40
_FIRST: Final = date(1970, 1, 1)

Query = Callable[[str, Sequence[SqlValue]], list[Row]]
"""Runs a reading statement on the view's table."""

By = Literal["day", "agent", "session", "model", "person"]

_BY: Final[Mapping[str, str]] = {
    "day": "day",
    "agent": "session_key",
    "session": "session_key",
    "model": "model",
}
SUMS: Final = ("runs", "input", "output", "cache_read", "cache_write", "total_tokens", "cost_micros")
_ADD: Final = (
    "INSERT INTO usage VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?) ON CONFLICT (day, session_key, model) DO UPDATE SET "  # noqa: S608 - our own names
    + ", ".join(f"{name} = usage.{name} + excluded.{name}" for name in SUMS)
)


class Used(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The total usage of some runs: tokens, and money in micro-units. `of` is the day, agent, session or model."""

    of: str
    runs: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    total_tokens: int
    cost_micros: int


def used_in(recorded: Recorded) -> tuple[Usage, str] | None:
    """Return the usage of a run or an imported answer, and its model (empty if unknown); None for other events."""
    match recorded.event:
        case RunCompleted(usage=Usage() as usage, model=model):
            return usage, model or ""
        case MessageRecorded(message=message) as event if message.usage is not None and (
            is_imported(event) or message.run_id is None  # an erased one has no source any more
        ):
            return message.usage, message.model or ""
        case _:
            return None


class UsageView:
    """A row for each day (UTC), session and model. It counts the ends of runs, and the messages of an import, which has no runs."""

    name = "usage"
    shape = 2
    topics: Final = topics_of(RunCompleted, MessageRecorded)

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
        """Add up the answered runs, and the imported answers."""
        for recorded in events:
            found = used_in(recorded)
            if found is None:
                continue
            used, model = found
            sql.execute(
                _ADD,
                (
                    recorded.time // DAY_MS,
                    recorded.stream.removeprefix(_SESSION),
                    model,
                    used.input,
                    used.output,
                    used.cache_read,
                    used.cache_write,
                    used.tokens,
                    used.cost_micros or 0,
                ),
            )


def used(query: Query, by: By, *, since_ms: int | None = None, until_ms: int | None = None) -> list[Used]:
    """Return the usage by day, agent, session or model, the most tokens first (days in their order).

    Whole days of UTC, from that of `since_ms` to that of `until_ms`.
    """
    days = [
        -_EVER if since_ms is None else since_ms // DAY_MS,
        _EVER if until_ms is None else until_ms // DAY_MS,
    ]
    rows = query(
        f"SELECT {_BY[by]}, {', '.join(f'SUM({name})' for name in SUMS)} FROM usage "  # noqa: S608 - our own names
        f"WHERE day BETWEEN ? AND ? GROUP BY {_BY[by]}",
        days,
    )
    sums: dict[str, Sequence[int]] = {}
    for place, *added in rows:
        of = _place(by, place)
        sums[of] = [one + other for one, other in zip(sums.get(of, [0] * len(SUMS)), added, strict=True)]
    found = [Used(of=of, **dict(zip(SUMS, added, strict=True))) for of, added in sums.items()]
    return sorted(found, key=lambda one: one.of if by == "day" else (-one.total_tokens, one.of))


def _place(by: By, value: str | int) -> str:
    if isinstance(value, int):
        return (_FIRST + timedelta(days=value)).isoformat()
    if by != "agent":
        return value
    kind, _, rest = value.partition(":")
    return rest.partition(":")[0] if kind == "agent" else ""
