"""The view of times: the position that the log had reached at a time."""

from collections.abc import Sequence
from typing import Final

from intersession_events.basics.ids import CLOCK
from intersession_events.log.log import Log, Moment
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Question, Row, Sql
from intersession_events.log.views import Coming, Known, Memory

_TELLING: Final = ("session:", "exchange:", "spawn:", "delivery:")
"""Streams of what sessions did. All other events are the log's own notes: openings, configurations, receipts."""


class PositionsView:
    """Stores the position of each event that carries a new latest time.

    The log's time falls only by an event that says so (L8): what had a later time before it then counts as if it had the time that
    it fell to, so times and positions still rise together. What is imported keeps its own time (IMP-3). If nothing later had happened here,
    that time counts, from the first of the notes on that have a later one: these tell the time of the machine that imported.
    """

    name = "positions"
    shape = 4

    def create(self, sql: Sql) -> None:
        """Create the tables. `noted` is 1 where only a note has that time.

        From `first` on until before `back`, times up to `time_ms` were recorded that do not count any more.
        """
        sql.execute(
            "CREATE TABLE IF NOT EXISTS clock (time_ms INTEGER PRIMARY KEY, position INTEGER NOT NULL, "
            "noted INTEGER NOT NULL)"
        )
        sql.execute(
            "CREATE TABLE IF NOT EXISTS clock_ahead (back INTEGER PRIMARY KEY, first INTEGER NOT NULL, time_ms INTEGER NOT NULL)"
        )

    def drop(self, sql: Sql) -> None:
        """Drop the tables."""
        sql.execute("DROP TABLE IF EXISTS clock")
        sql.execute("DROP TABLE IF EXISTS clock_ahead")

    def questions(self, coming: Sequence[Coming], memory: Memory) -> Sequence[Question]:
        """Ask for the latest time so far, and whether only a note has it."""
        return [_LATEST] if coming and not memory else []

    def apply_answered(self, sql: Sql, events: Sequence[Recorded], known: Known) -> None:
        """Take events in: a row for each that is later than all before it."""
        latest: int | None
        memory = known.memory
        latest, noted = memory[""] if memory else next(iter(known.answers[0]), (None, 0))
        told: int | None = None
        fresh: dict[int, Row] = {}
        for one in events:
            tells, position = one.stream.startswith(_TELLING), one.position
            if latest is not None and one.time < latest and one.stream == CLOCK:
                _add(sql, fresh)
                position, noted = _taken_back(sql, one)
                latest, told = one.time, None
                fresh[latest] = (latest, position, noted)
            if latest is not None and noted and tells and one.time < latest:
                _add(sql, fresh)
                told = _told(sql) if told is None or told <= one.time else told
                if told <= one.time:
                    position = _without_notes(sql, one.time)
                    latest, noted = told, 0
            if latest is None or one.time > latest:
                latest, noted = one.time, int(not tells)
                fresh[latest] = (latest, position, noted)
            elif noted and tells and one.time == latest:
                noted = 0
                if latest in fresh:
                    fresh[latest] = (*fresh[latest][:2], noted)
                else:
                    sql.execute("UPDATE clock SET noted = 0 WHERE time_ms = ?", (latest,))
        _add(sql, fresh)
        memory[""] = latest, noted


def _add(sql: Sql, fresh: dict[int, Row]) -> None:
    rows = list(fresh.values())
    fresh.clear()
    for first in range(0, len(rows), _ROWS):
        some = rows[first : first + _ROWS]
        sql.execute(
            f"INSERT INTO clock (time_ms, position, noted) VALUES {', '.join(['(?, ?, ?)'] * len(some))}",  # noqa: S608 - only question marks
            [value for row in some for value in row],
        )


def _taken_back(sql: Sql, step: Recorded) -> tuple[int, int]:
    """Drop the rows of what counts as of the time of a step back; return the first position, and whether all were of notes."""
    first, latest, noted = sql.execute(
        "SELECT MIN(position), MAX(time_ms), MIN(noted) FROM clock WHERE time_ms >= ?", (step.time,)
    ).fetchone()
    sql.execute("DELETE FROM clock WHERE time_ms >= ?", (step.time,))
    sql.execute(
        "INSERT INTO clock_ahead (back, first, time_ms) VALUES (?, ?, ?)", (step.position, first, latest)
    )
    return int(first), int(noted)


def _without_notes(sql: Sql, since: int) -> int:
    """Drop the rows of notes since a time, and return the position of the first: before it none of them had come."""
    (position,) = sql.execute(f"SELECT MIN(position) {_NOTES}", (since,)).fetchone()
    sql.execute(f"DELETE {_NOTES}", (since,))
    return int(position)


def _told(sql: Sql) -> int:
    """Return the latest time that more than a note has; before all times if none has."""
    rows = sql.execute("SELECT time_ms FROM clock WHERE noted = 0 ORDER BY time_ms DESC LIMIT 1").fetchall()
    return int(rows[0][0]) if rows else -(2**63)


_NOTES: Final = "FROM clock WHERE noted = 1 AND time_ms >= ?"
_ROWS: Final = 256
"""The number of rows in one statement."""
_LATEST: Final[Question] = ("SELECT time_ms, noted FROM clock ORDER BY time_ms DESC LIMIT 1", ())
_REACHED: Final = """WITH RECURSIVE cut (low, width) AS (
    SELECT ends.low, CASE WHEN ends.high - ends.low < 1073741824 THEN 536870912 WHEN ends.high - ends.low < 1099511627776
        THEN 549755813888 ELSE 2305843009213693952 END
    FROM (SELECT (SELECT MIN(time_ms) FROM clock) AS low, (SELECT MAX(time_ms) FROM clock) AS high) AS ends
    UNION ALL
    SELECT CASE WHEN (SELECT position FROM clock WHERE time_ms <= low + width ORDER BY time_ms DESC LIMIT 1) <= ?
        THEN low + width ELSE low END, width / 2
    FROM cut WHERE width > 0)
SELECT time_ms, position FROM clock WHERE time_ms <= (SELECT low FROM cut WHERE width = 0) ORDER BY time_ms DESC LIMIT 1"""
"""The last time that was reached at a position, by halving: the widths are powers of two, from half of what all can be apart."""


class Positions:
    """Queries on the clock of the log."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def position_at(self, time_ms: int) -> int:
        """Return the last position before the first event that is later than a time (ms); 0 is before all."""
        head = self._log.head()
        rows = self._log.query(
            "SELECT position FROM clock WHERE time_ms > ? ORDER BY time_ms LIMIT 1", (time_ms,)
        )
        return int(rows[0][0]) - 1 if rows else head

    def time_at(self, position: int) -> int | None:
        """Return the time (ms) the log had reached at a position; None before its first event."""
        with self._log.moment() as moment:
            return time_at(moment, position)

    def latest_time(self) -> int | None:
        """Return the latest time (ms) that an event of the log carries; None for an empty log."""
        rows = self._log.query("SELECT MAX(time_ms) FROM clock")
        latest: int | None = rows[0][0]
        return latest


def time_at(moment: Moment, position: int) -> int | None:
    """Return the time (ms) that a log had reached at a position; None before its first event."""
    return time_in(moment.query(*time_of(position)), position)


def time_of(position: int) -> Question:
    """Ask for the time that a log had reached at a position; `time_in` reads the answer.

    Times and positions rise together, so it is found without an index; by one statement, for each may be a way to another
    machine and back.
    """
    return _REACHED, (position,)


def ahead_at(position: int) -> Question:
    """Ask for the latest time (ms) of events up to a position that no longer counts; None if there is none."""
    return "SELECT MAX(time_ms) FROM clock_ahead WHERE first <= ? AND back > ?", (position, position)


def time_in(rows: Sequence[Row], position: int) -> int | None:
    """Return the time (ms) in the answer to `time_of`; None before the log's first timed event."""
    return next((time_ms for time_ms, reached in rows if reached <= position), None)
