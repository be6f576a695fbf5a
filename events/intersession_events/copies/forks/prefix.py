"""Reads the part of a log that a fork begins with: whole streams up to a position, and the events of stream `log` that they rest on."""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from intersession_events.log.erasing import erased_stream
from intersession_events.log.lineage import FORKED
from intersession_events.log.row_state import hash_in
from intersession_events.log.sql import COLUMNS, Query, Row

STREAM: Final = "log"
_UP_TO: Final = (
    COLUMNS + "WHERE originator_id IN ({}) AND rowid<=? ORDER BY originator_id, originator_version"
)
_AT_ONCE: Final = 200
"""The most streams in one statement."""
_OF_LOG: Final = "SELECT rowid, originator_version, topic FROM stored_events WHERE originator_id='log' ORDER BY originator_version"
_ROW: Final = COLUMNS + "WHERE rowid=?"


class Prefix(NamedTuple):
    """The rows that a fork takes over, and the last row of each stream; every row of stream `log`."""

    rows: list[Row]
    heads: list[Row]

    @property
    def named(self) -> tuple[tuple[str, int, str], ...]:
        """Stream, version and hash of each head.

        Raises:
            CorruptEvent: a head can't be read.
        """
        return tuple(
            (stream, version, hash_in(state, where=f"{stream!r} version {version}"))
            for _, stream, version, _, state in self.heads
        )


def prefix_of(seen: Query, streams: Collection[str], at: int) -> Prefix:
    """Return the rows of some streams up to a position, with the events that authorise erased rows, and the rules in force then."""
    names = sorted({*streams, *map(erased_stream, streams)} - {STREAM})
    rows: list[Row] = []
    for first in range(0, len(names), _AT_ONCE):
        part = names[first : first + _AT_ONCE]
        rows += seen(_UP_TO.format(", ".join("?" * len(part))), (*part, at))
    heads = list({row[1]: row for row in rows}.values())
    # What was in force is found by its place: a run's own is what was loaded last before it.
    positions = sorted(row[0] for row in rows)
    picked = [seen(_ROW, (position,))[0] for position in in_force(seen, positions, at)]
    return Prefix(rows=rows + picked, heads=heads + picked)


def in_force(seen: Query, positions: Sequence[int], at: int) -> list[int]:
    """Return where those events of stream `log` stand that others rest on: starts, configurations, and how a fork began."""
    chosen: set[int] = set()
    last: dict[str, int] = {}
    for position, _, topic in seen(_OF_LOG, ()):
        if position > at:
            break
        kind = topic.partition(".")[0]
        if topic == FORKED:
            chosen.add(position)
        elif kind in _RESTED_ON:
            if kind in last and _is_between(positions, last[kind], position):
                chosen.add(last[kind])
            last[kind] = position
    return sorted(chosen | set(last.values()))


_RESTED_ON: Final = frozenset({"log_opened", "config_loaded"})


def _is_between(positions: Sequence[int], low: int, high: int) -> bool:
    at = bisect_left(positions, low)
    return at < len(positions) and positions[at] < high
