"""Reads a stream up to a position of the log: only a few of a long session's later events are read."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded

_FEW: Final = 16
_PAGE: Final = 250


class VersionRange(NamedTuple):
    """The versions of a stream's first and last event that are known to stand before a position."""

    first: int
    last: int


def read_until(
    log: Log, stream: str, last: int, *, after: int, own: VersionRange | None
) -> Sequence[Recorded]:
    """Return a stream's events behind a version, up to a position of the log."""
    found: list[Recorded] = []
    few = _FEW
    limit = few if own is None else max(own.last - after, 0) + few
    while page := log.stream(stream, after=after, limit=limit):
        found += page
        if len(page) < limit or page[-1].position > last:
            break
        few = min(2 * few, _PAGE)
        after, limit = page[-1].version, few
    while found and found[-1].position > last:
        found.pop()
    return found
