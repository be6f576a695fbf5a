"""The view of times: which position the log had reached at a time."""

from collections.abc import Sequence
from typing import Final

from intersession_events.log import Log, Recorded, Sql

_TIMED: Final = ("session:", "exchange:", "spawn:", "delivery:")
"""Streams whose events tell the time. Openings of the log, configuration and receipts carry the time of the machine
that wrote them: in an imported log it lies long after what was imported (IMP-3)."""


class PositionsView:
    """Keeps the position at which the log's time first reached each new latest time.

    The clock of a machine may be set back; the log's time is the latest time seen, which never falls.
    """

    name = "positions"
    shape = 1

    def create(self, sql: Sql) -> None:
        """Create the table."""
        sql.execute("CREATE TABLE IF NOT EXISTS clock (time_ms BIGINT PRIMARY KEY, position BIGINT NOT NULL)")

    def drop(self, sql: Sql) -> None:
        """Drop the table."""
        sql.execute("DROP TABLE IF EXISTS clock")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        """Take events in."""
        for recorded in events:
            _take(sql, recorded)


def _take(sql: Sql, recorded: Recorded) -> None:
    if not recorded.stream.startswith(_TIMED):
        return
    latest = sql.execute("SELECT MAX(time_ms) FROM clock").fetchone()[0]
    if latest is None or recorded.time > latest:
        sql.execute("INSERT INTO clock (time_ms, position) VALUES (?, ?)", (recorded.time, recorded.position))


class Positions:
    """Queries on the clock of the log."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def position_at(self, time_ms: int) -> int:
        """Return the last position before the first event that is later than a time (ms); 0 is before all."""
        head = self._log.head()
        rows = self._log.query("SELECT MIN(position) FROM clock WHERE time_ms > ?", (time_ms,))
        later = rows[0][0]
        return head if later is None else int(later) - 1

    def time_at(self, position: int) -> int | None:
        """Return the time (ms) the log had reached at a position; None before its first timed event."""
        rows = self._log.query("SELECT MAX(time_ms) FROM clock WHERE position <= ?", (position,))
        reached: int | None = rows[0][0]
        return reached

    def latest_time(self) -> int | None:
        """Return the latest time (ms) that an event of the log carries; None for an empty log."""
        rows = self._log.query("SELECT MAX(time_ms) FROM clock")
        latest: int | None = rows[0][0]
        return latest
