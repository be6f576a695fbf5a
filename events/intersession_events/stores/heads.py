"""The last version and hash of each stream: what the next event must follow."""

from collections import OrderedDict
from typing import Final, NamedTuple

from eventsourcing.sqlite import SQLiteCursor

from intersession_events.mapper import FIRST, unseal

CACHED: Final = 20_000
"""This many streams are remembered (a few megabytes); the others are read again."""

_LAST: Final = (
    "SELECT rowid, originator_version, topic, state FROM stored_events "
    "WHERE originator_id=? ORDER BY originator_version DESC LIMIT 1"
)


class Head(NamedTuple):
    """Where a stream ends."""

    version: int
    hash: str


EMPTY: Final = Head(0, FIRST)


class Heads:
    """A bounded memory of stream heads. Only the writer has one: its word is the file's as long as it alone writes."""

    def __init__(self, log_id: str) -> None:
        self._log_id = log_id
        self._known: OrderedDict[str, Head] = OrderedDict()

    def of(self, cursor: SQLiteCursor, stream: str) -> Head:
        """Return the head of a stream, from the file if need be.

        Raises:
            CorruptEvent: the stream's last row is damaged, so nothing can follow it.
        """
        head = self._known.get(stream)
        if head is None:
            cursor.execute(_LAST, (stream,))
            row = cursor.fetchone()
            head = EMPTY
            if row is not None:
                position, version, topic, state = row
                last = unseal(
                    log_id=self._log_id,
                    position=position,
                    stream=stream,
                    version=version,
                    topic=topic,
                    state=state,
                )
                head = Head(last.version, last.hash)
            self._known[stream] = head
        else:
            self._known.move_to_end(stream)
        return head

    def learn(self, heads: dict[str, Head]) -> None:
        """Take in what was just written."""
        for stream, head in heads.items():
            self._known[stream] = head
            self._known.move_to_end(stream)
        while len(self._known) > CACHED:
            self._known.popitem(last=False)

    def forget(self) -> None:
        """Trust nothing that was learnt: a transaction was rolled back."""
        self._known.clear()
