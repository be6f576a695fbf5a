"""Compares the beginning of a fork with the log that it was made of, if that is available (FORK-2)."""

from collections.abc import Iterator

from intersession_events.facts import ForkedFrom
from intersession_events.log.erasing import left_in
from intersession_events.log.lineage import STREAM, lineage_of
from intersession_events.log.log import Log
from intersession_events.log.row_state import hash_in
from intersession_events.log.sql import COLUMNS, Row, marks
from intersession_events.log.verifying.report import Finding

_PAGE = 200
_LAST = "SELECT MAX(originator_version) FROM stored_events WHERE originator_id=? AND rowid<=?"


def prefix_compared(log: Log, source: Log) -> Iterator[Finding]:
    """Yield how the beginning of a fork differs from the log that it was made of.

    Each event has to stand in that log, at its position, with its hash, and say the same, but for words that were erased in one
    of them; and each stream has to end where it did there.

    Raises:
        StoreUnavailable: one of the logs can't be read.
    """
    fork = _made_of(log, source)
    if fork is None:
        yield Finding(code="other_log", problem=f"it was not made of the log {source.log_id}")
        return
    after = 0
    while page := [row for row in log.rows(after=after, limit=_PAGE) if row[0] <= fork.position]:
        after = page[-1][0]
        yield from _differences(page, source)
    for stream, version, _ in fork.heads:
        ((last,),) = source.query(_LAST, (stream, fork.position))
        if stream != STREAM and last != version:
            yield Finding(
                code="prefix_mismatch",
                problem=f"the log had version {last} of it at position {fork.position}, the fork ends it at {version}",
                stream=stream,
                version=version,
            )


def _made_of(log: Log, source: Log) -> ForkedFrom | None:
    """Return how a log was made from another one, which may be a fork itself."""
    written = lineage_of(source.log_id, source.query)
    return next(
        (
            fork
            for fork in lineage_of(log.log_id, log.query).forks
            if source.log_id != log.log_id
            and written.log_id_at(fork.position) == fork.log_id
            and fork.position <= source.head()
        ),
        None,
    )


def _differences(page: list[Row], source: Log) -> Iterator[Finding]:
    found = source.query(COLUMNS + f"WHERE rowid IN ({marks(page)})", [row[0] for row in page])
    there = {row[0]: row for row in found}
    for row in page:
        position, stream, version, topic, state = row
        other = there.get(position)
        where = f"position {position}"
        if (
            other is None
            or other[1:4] != (stream, version, topic)
            or hash_in(other[4], where=where) != hash_in(state, where=where)
            or (
                other[4] != state
                and left_in(other[4], topic, where=where) != left_in(state, topic, where=where)
            )
        ):
            yield Finding(
                code="prefix_mismatch",
                problem="is not what the log that the fork was made of has there",
                position=position,
                stream=stream,
                version=version,
            )
