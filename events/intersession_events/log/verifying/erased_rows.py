"""Holds payloads that were erased against the events that authorise it, in both directions."""

from collections.abc import Iterator
from typing import Literal

from intersession_events.facts import Erased
from intersession_events.log.erasing import erased_stream
from intersession_events.log.log import Log
from intersession_events.log.row_state import Envelope
from intersession_events.log.sql import Row
from intersession_events.log.verifying.rows import envelope_in

_ROW = (
    "SELECT rowid, originator_id, originator_version, topic, state FROM stored_events "
    "WHERE originator_id=? AND originator_version=?"
)


class ErasedRows:
    """What came by of either in one pass over a log."""

    def __init__(self) -> None:
        self._erased: dict[tuple[str, int], tuple[int, str]] = {}
        """Rows without their payloads: where each is, and the digest of what stands there."""
        self._authorised: dict[tuple[str, int], str] = {}

    def __len__(self) -> int:
        """Return how many payloads are erased."""
        return len(self._erased)

    def found(self, row: Row, envelope: Envelope) -> None:
        """Take note of a row without its payload."""
        self._erased[row[1], row[2]] = (row[0], envelope.stands)

    def authorise(self, row: Row, event: Erased) -> str | None:
        """Take note of what an event authorises; return what is wrong with it if it can't."""
        if row[1] != erased_stream(event.stream):
            return f"authorises nothing: it belongs into {erased_stream(event.stream)!r}"
        self._authorised.update(((event.stream, version), stands) for version, stands in event.rows)
        return None

    def problems(self, log: Log) -> Iterator[tuple[Literal["erased", "not_erased"], str, Row]]:
        """Yield what does not fit, once all rows have come by: a code, the problem, and where it is."""
        for (stream, version), (position, stands) in self._erased.items():
            if self._authorised.get((stream, version)) != stands:
                problem = "the payload was erased, and no event authorises what stands there"
                yield "erased", problem, (position, stream, version)
        for stream, version in sorted(self._authorised.keys() - self._erased.keys()):
            # It may have been erased since it was looked at.
            found = log.query(_ROW, (stream, version))
            envelope = envelope_in(found[0]) if found else ""
            if isinstance(envelope, str) or not envelope.is_erased:
                problem = "an event says that the payload was erased, and it was not"
                yield "not_erased", problem, (found[0][0] if found else None, stream, version)
