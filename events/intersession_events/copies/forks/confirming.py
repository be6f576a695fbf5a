"""Checks that the events a fork begins with are unchanged: a prefix that can't be proven is refused (FORK-2)."""

from collections.abc import Iterable, Sequence

from intersession_events.basics.errors import CorruptEvent
from intersession_events.copies.forks.prefix import STREAM
from intersession_events.facts import Erased, decode
from intersession_events.log.envelope import FIRST, NOT_AUTHORISED, Erasing, damage_of
from intersession_events.log.erasing import erased_stream, rows_erased
from intersession_events.log.lineage import Lineage
from intersession_events.log.row_state import links_in, opened, payload_in
from intersession_events.log.sql import Row

_ERASED = erased_stream("")


def confirm(rows: Sequence[Row], lineage: Lineage, erased_later: Iterable[Erased]) -> None:
    """Prove rows against their own hashes, and that each follows the one before it in its stream.

    Rows of a stream come in its order, from its first one on; of stream `log` single ones were picked. `erased_later` authorises
    what stands in the place of words that were erased behind the cut.

    Raises:
        CorruptEvent: a row was changed since it was written, or one before it was taken away. It says which, by its position.
    """
    confirming = Confirming(
        lineage, (row for row in rows if row[1].startswith(_ERASED)), erased_later, what="fork"
    )
    for row in rows:
        confirming.take(row)


class Confirming:
    """Proves rows one by one, each stream's in its order. `erased` are the rows of all streams that authorise what was erased.

    `what` is made of them, in the words of an error.
    """

    def __init__(
        self, lineage: Lineage, erased: Iterable[Row], erased_later: Iterable[Erased], *, what: str
    ) -> None:
        self._authorised: dict[tuple[str, int], Erasing] = {}
        for position, stream, _, topic, state in erased:
            event = decode(topic, payload_in(state) or b"")
            for version, erasing in rows_erased(event, stream=stream, position=position).items():
                self._authorised[stream.removeprefix(_ERASED), version] = erasing
        # What lies behind the cut lies behind all rows.
        self._authorised |= {
            (event.stream, version): Erasing(0, stands)
            for event in erased_later
            for version, stands in event.rows
        }
        self._ends: dict[str, tuple[int, str]] = {}
        self._lineage = lineage
        self._log_id = lineage.log_id_at(0)
        self._what = what

    def take(self, row: Row) -> str:
        """Prove the next row, and return its hash.

        Raises:
            CorruptEvent: it was changed, or one before it was taken away.
        """
        position, stream, version, topic, state = row
        log_id = self._log_id if self._lineage.forked is None else self._lineage.log_id_at(position)
        links = links_in(state, log_id=log_id, stream=stream, version=version, topic=topic)
        prev, hashed = links or self._proven(row, log_id)
        if stream != STREAM and (version - 1, prev) != self._ends.get(stream, (0, FIRST)):
            raise self._changed(row, "it does not follow the event before it in its stream")
        self._ends[stream] = (version, hashed)
        return hashed

    def _proven(self, row: Row, log_id: str) -> tuple[str, str]:
        """Prove a row of any form, and return the hash before it and its own."""
        position, stream, version, topic, state = row
        try:
            envelope = opened(state, where="the row")
        except CorruptEvent as error:
            raise self._changed(row, str(error)) from None
        damage = damage_of(row, envelope, log_id)
        if damage is None and envelope.sealed:
            damage = (
                "its words are encrypted, and their key was destroyed (erase them once more, as they were erased since "
                "this copy was made), or is not at hand (bring the keys back)"
            )
        elif damage is None and (envelope.is_erased or envelope.lacks_thinking):
            erasing = self._authorised.get((stream, version))
            damage = NOT_AUTHORISED if erasing is None else erasing.problem(envelope, topic, position)
        if damage is not None:
            raise self._changed(row, damage)
        return envelope.prev, envelope.hash

    def _changed(self, row: Row, damage: str) -> CorruptEvent:
        position, stream, version, _, _ = row
        found = CorruptEvent(
            f"position {position}, {stream!r} version {version!r}: {damage}; no {self._what} is made of what is not as it was "
            f"written, {self._what} before that position"
        )
        found.position = position
        return found
