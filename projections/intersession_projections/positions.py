"""The view of times: which position the log had reached at a time."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from intersession_events.log import Coming, Known, Log, Moment, Question, Recorded, Row, Sql

_TIMED: Final = ("session:", "exchange:", "spawn:", "delivery:")
"""Streams whose events tell the time. Openings of the log, configuration and receipts carry the time of the machine
that wrote them: in an imported log it lies long after what was imported (IMP-3)."""


class PositionsView:
    """Keeps the position at which the log's time first reached each new latest time.

    The clock of a machine may be set back; the log's time is the latest time seen, which never falls.
    """

    name = "positions"
    shape = 2

    def create(self, sql: Sql) -> None:
        """Create the table."""
        sql.execute(
            "CREATE TABLE IF NOT EXISTS clock (time_ms INTEGER PRIMARY KEY, position INTEGER NOT NULL)"
        )

    def drop(self, sql: Sql) -> None:
        """Drop the table."""
        sql.execute("DROP TABLE IF EXISTS clock")

    def questions(self, coming: Sequence[Coming]) -> Sequence[Question]:
        """Ask for the latest time so far."""
        return [_LATEST] if any(stream.startswith(_TIMED) for stream, _ in coming) else []

    def apply_answered(self, sql: Sql, events: Sequence[Recorded], known: Known) -> None:
        """Take events in that tell the time: a row for each that is later than all before."""
        timed = [one for one in events if one.stream.startswith(_TIMED)]
        if not timed:
            return
        latest: int | None = known.answers[0][0][0]
        for recorded in timed:
            if latest is None or recorded.time > latest:
                latest = recorded.time
                sql.execute(
                    "INSERT INTO clock (time_ms, position) VALUES (?, ?)", (latest, recorded.position)
                )


_LATEST: Final[Question] = ("SELECT MAX(time_ms) FROM clock", ())
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
            "SELECT position, (SELECT MIN(time_ms) FROM clock) FROM clock WHERE time_ms > ? ORDER BY time_ms LIMIT 1",
            (time_ms,),
        )
        if not rows:
            return head
        behind, first = int(rows[0][0]) - 1, int(rows[0][1])
        return behind if first <= time_ms else self._before_the_first(time_ms, behind)

    def _before_the_first(self, time_ms: int, behind: int) -> int:
        """Return how much of what stands before the first event that tells the time had happened by one: openings, configurations."""
        early = takewhile(
            lambda recorded: recorded.time <= time_ms, self._log.all(to=behind) if behind else ()
        )
        return max((recorded.position for recorded in early), default=0)

    def time_at(self, position: int) -> int | None:
        """Return the time (ms) the log had reached at a position; None before its first timed event."""
        with self._log.moment() as moment:
            return time_at(moment, position)

    def latest_time(self) -> int | None:
        """Return the latest time (ms) that an event of the log carries; None for an empty log."""
        rows = self._log.query("SELECT MAX(time_ms) FROM clock")
        latest: int | None = rows[0][0]
        return latest


def time_at(moment: Moment, position: int) -> int | None:
    """Return the time (ms) that a log had reached at a position; None before its first timed event."""
    return time_in(moment.query(*time_of(position)), position)


def time_of(position: int) -> Question:
    """Ask for the time that a log had reached at a position; `time_in` reads what comes.

    Times and positions rise together, so it is found without an index; by one statement, for each may be a way to another
    machine and back.
    """
    return _REACHED, (position,)


def time_in(rows: Sequence[Row], position: int) -> int | None:
    """Return the time (ms) in what `time_of` asks for; None before the log's first timed event."""
    return next((time_ms for time_ms, reached in rows if reached <= position), None)
