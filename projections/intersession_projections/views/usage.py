"""The view of usage: the usage of runs by day, agent, session and model. It follows the log in its own time."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date, timedelta
from operator import add
from typing import Final, Literal, NamedTuple

from intersession_events.basics.ids import SESSIONS
from intersession_events.facts import MessageRecorded, RunCompleted, Usage, is_imported, topics_of
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Row, Sql, SqlValue

DAY_MS: Final = 86_400_000
_EVER: Final = 2**40
_FIRST: Final = date(1970, 1, 1)

Query = Callable[[str, Sequence[SqlValue]], list[Row]]
"""Runs a reading statement on the view's table."""

By = Literal["day", "agent", "session", "model", "person"]
"""What usage is added up by."""


class Sums(NamedTuple):
    """The total usage of some runs: tokens, and money in millionths of the currency.

    `unpriced` is the number of runs whose agents did not say what they cost, and what follows it is their part of the tokens.
    """

    runs: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total_tokens: int = 0
    cost_micros: int = 0
    unpriced: int = 0
    unpriced_input: int = 0
    unpriced_output: int = 0
    unpriced_cache_read: int = 0
    unpriced_cache_write: int = 0

    def and_also(self, more: Iterable[int]) -> "Sums":
        """Return these and others added up."""
        return Sums(*map(add, self, more))


class Used(NamedTuple):
    """The usage of one model; `day` (since 1970), `session_key` and `person` are set where it was added up by them."""

    model: str
    sums: Sums
    day: int = 0
    session_key: str = ""
    person: str = ""

    def of(self, by: By) -> str:
        """Return the day, agent, session, model or person that it belongs to; empty if that is unknown."""
        match by:
            case "day":
                return (_FIRST + timedelta(days=self.day)).isoformat()
            case "agent":
                kind, _, rest = self.session_key.partition(":")
                return rest.partition(":")[0] if kind == "agent" else ""
            case "session":
                return self.session_key
            case "model":
                return self.model
            case "person":
                return self.person


_ADD: Final = (
    f"INSERT INTO usage VALUES (?, ?, {', '.join('?' * (1 + len(Sums._fields)))}) "  # noqa: S608 - our own names
    "ON CONFLICT (day, session_key, model) DO UPDATE SET "
    + ", ".join(f"{name} = usage.{name} + excluded.{name}" for name in Sums._fields)
)


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


def sums_of(usage: Usage) -> Sums:
    """Return the usage of one run as sums."""
    parts = (usage.input, usage.output, usage.cache_read, usage.cache_write)
    unpriced = (0,) * 5 if usage.cost_micros is not None else (1, *parts)
    return Sums(1, *parts, usage.tokens, usage.cost_micros or 0, *unpriced)


class UsageView:
    """A row for each day (UTC), session and model. It counts the ends of runs, and the messages of an import, which has no runs."""

    name = "usage"
    shape = 3
    topics: Final = topics_of(RunCompleted, MessageRecorded)

    def create(self, sql: Sql) -> None:
        """Create the table if it is not there."""
        sums = ", ".join(f"{name} INTEGER NOT NULL" for name in Sums._fields)
        sql.execute(
            "CREATE TABLE IF NOT EXISTS usage (day INTEGER NOT NULL, session_key TEXT NOT NULL, model TEXT NOT NULL, "
            f"{sums}, PRIMARY KEY (day, session_key, model)) WITHOUT ROWID"
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
            usage, model = found
            session = recorded.stream.removeprefix(SESSIONS)
            sql.execute(_ADD, (recorded.time // DAY_MS, session, model, *sums_of(usage)))


def days_of(since_ms: int | None, until_ms: int | None) -> tuple[int, int]:
    """Return the first and the last day (since 1970, UTC) of a time: whole days."""
    return (
        -_EVER if since_ms is None else since_ms // DAY_MS,
        _EVER if until_ms is None else until_ms // DAY_MS,
    )


def used(
    query: Query, by: Collection[By], *, since_ms: int | None = None, until_ms: int | None = None
) -> list[Used]:
    """Return the usage of each model by day, agent or session: whole days of UTC, from that of `since_ms` to that of `until_ms`.

    Of an agent each session is a row of its own.
    """
    day = "day" if "day" in by else "0"
    session = "session_key" if {"agent", "session"} & {*by} else "''"
    rows = query(
        f"SELECT {day}, {session}, model, {', '.join(f'SUM({name})' for name in Sums._fields)} FROM usage "  # noqa: S608 - our own names
        "WHERE day BETWEEN ? AND ? GROUP BY 1, 2, 3",
        days_of(since_ms, until_ms),
    )
    return [Used(model, Sums(*map(int, sums)), day=day, session_key=key) for day, key, model, *sums in rows]
