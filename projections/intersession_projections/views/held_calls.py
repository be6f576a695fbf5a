"""The view of held tool calls: where each was held, and where it was released (ASK)."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import ToolCallHeld, ToolCallReleased, topics_of
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Ask, Sql

_EVER: Final = 2**62


class HeldCallsView:
    """Stores a row for each tool call that was held."""

    name = "held_calls"
    shape = 1
    topics: Final = topics_of(ToolCallHeld, ToolCallReleased)

    def create(self, sql: Sql) -> None:
        """Create the table."""
        sql.execute(
            "CREATE TABLE IF NOT EXISTS held_calls "
            "(hold_id TEXT PRIMARY KEY, held INTEGER NOT NULL, released INTEGER) WITHOUT ROWID"
        )
        sql.execute("CREATE INDEX IF NOT EXISTS open_calls ON held_calls (held) WHERE released IS NULL")

    def drop(self, sql: Sql) -> None:
        """Drop the table."""
        sql.execute("DROP TABLE IF EXISTS held_calls")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        """Take events in: a call that is held, and its release."""
        for recorded in events:
            event, position = recorded.event, recorded.position
            if isinstance(event, ToolCallHeld):
                sql.execute("INSERT INTO held_calls VALUES (?, ?, NULL)", (event.hold_id, position))
            elif isinstance(event, ToolCallReleased):
                sql.execute("UPDATE held_calls SET released = ? WHERE hold_id = ?", (position, event.hold_id))


class CallHold(NamedTuple):
    """A tool call that was held: the event, and its release, None while it waits."""

    recorded: Recorded
    held: ToolCallHeld
    released: ToolCallReleased | None

    @property
    def session_key(self) -> str:
        """The session whose agent made the call."""
        return self.recorded.stream.removeprefix("session:")


def held_call_value(hold: CallHold) -> JsonObject:
    """Return a held call in an answer, without its arguments. Times in milliseconds since 1970."""
    held, since = hold.held, hold.recorded.time
    return {
        "holdId": held.hold_id,
        "sessionKey": hold.session_key,
        "runId": held.run_id,
        "callId": held.call_id,
        "tool": held.tool,
        "rule": held.rule,
        "since": since,
    } | present({"until": since + held.timeout_ms if held.timeout_ms else None})


class HeldCalls:
    """Queries on held calls."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def ask_open(self) -> Ask[list[tuple[int, int | None]]]:
        """Ask for the positions of the calls that wait for a release, the longest-held first."""
        return Ask(
            [("SELECT held, released FROM held_calls WHERE released IS NULL ORDER BY held", ())],
            lambda rows: list(rows[0]),
        )

    def waiting(self) -> list[CallHold]:
        """Return the calls that wait for a release, the longest-held first."""
        (rows,) = self._log.answers(self.ask_open())
        return self.at(rows)

    def released_behind(self, position: int) -> list[CallHold]:
        """Return the calls that somebody, or time, released behind a position, in that order."""
        asked = "SELECT held, released FROM held_calls WHERE released > ? ORDER BY released"
        found = self.at(self._log.query(asked, (position,)))
        return [one for one in found if one.released is not None and one.released.action != "ended"]

    def named(self, hold_id: str, *, most: int = 2) -> list[CallHold]:
        """Return the holds whose ids begin so, up to `most`."""
        upper = hold_id + "\U0010ffff"
        asked = Ask(
            [
                (
                    "SELECT held, released FROM held_calls WHERE hold_id >= ? AND hold_id < ? ORDER BY held LIMIT ?",
                    (hold_id, upper, most),
                )
            ],
            lambda rows: list(rows[0]),
        )
        (rows,) = self._log.answers(asked)
        return self.at(rows)

    def between(self, after: int, to: int | None) -> list[CallHold]:
        """Return the calls that were held behind a position, up to another."""
        asked = "SELECT held, released FROM held_calls WHERE held > ? AND held <= ? ORDER BY held"
        return self.at(self._log.query(asked, (after, _EVER if to is None else to)))

    def at(self, rows: Sequence[tuple[int, int | None]]) -> list[CallHold]:
        """Return the holds of some rows of the view."""
        positions = [position for row in rows for position in row if position is not None]
        found = {one.position: one for one in self._log.at(positions)}
        holds: list[CallHold] = []
        for held, released in rows:
            recorded = found.get(held)
            end = None if released is None else found.get(released)
            if recorded is not None and isinstance(recorded.event, ToolCallHeld):
                over = None if end is None or not isinstance(end.event, ToolCallReleased) else end.event
                holds.append(CallHold(recorded, recorded.event, over))
        return holds
