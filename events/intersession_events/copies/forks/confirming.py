"""Checks that the events a fork begins with are unchanged: a prefix that can't be proven is refused (FORK-2)."""

from collections.abc import Iterable, Mapping, Sequence

from intersession_events.basics.errors import CorruptEvent
from intersession_events.copies.forks.prefix import STREAM
from intersession_events.facts import Erased, decode
from intersession_events.log.envelope import FIRST, NOT_AUTHORISED, Erasing, damaged
from intersession_events.log.erasing import erased_stream, rows_erased
from intersession_events.log.lineage import Lineage
from intersession_events.log.row_state import is_short, links_in, opened, payload_in
from intersession_events.log.sql import Row

_ERASED = erased_stream("")


def confirm(rows: Sequence[Row], lineage: Lineage, erased_later: Iterable[Erased]) -> None:
    """Prove rows against their own hashes, and that each follows the one before it in its stream.

    Rows of a stream come in its order, from its first one on; of stream `log` single ones were picked. `erased_later` authorises
    what stands in the place of words that were erased behind the cut.

    Raises:
        CorruptEvent: a row was changed since it was written, or one before it was taken away. It says which, by its position.
    """
    authorised: dict[tuple[str, int], Erasing] = {}
    for position, stream, _, topic, state in rows:
        if stream.startswith(_ERASED):
            event = decode(topic, payload_in(state) or b"")
            for version, erasing in rows_erased(event, stream=stream, position=position).items():
                authorised[stream.removeprefix(_ERASED), version] = erasing
    # What lies behind the cut lies behind all rows.
    authorised |= {
        (event.stream, version): Erasing(0, stands)
        for event in erased_later
        for version, stands in event.rows
    }
    before, of, log_id = (0, FIRST), "", lineage.log_id_at(0)
    is_fork = lineage.forked is not None
    for row in rows:
        position, stream, version, topic, state = row
        if stream != of:
            before, of = (0, FIRST), stream
        if is_fork:
            log_id = lineage.log_id_at(position)
        links = links_in(state, log_id=log_id, stream=stream, version=version, topic=topic)
        prev, hashed = links or _proven(row, log_id, authorised)
        if stream != STREAM and (version - 1, prev) != before:
            raise _changed(row, "it does not follow the event before it in its stream")
        before = (version, hashed)


def _proven(row: Row, log_id: str, authorised: Mapping[tuple[str, int], Erasing]) -> tuple[str, str]:
    """Prove a row of any form, and return the hash before it and its own."""
    position, stream, version, topic, state = row
    try:
        envelope = opened(state, where="the row")
    except CorruptEvent as error:
        raise _changed(row, str(error)) from None
    damage = damaged(
        envelope,
        log_id=log_id,
        stream=stream,
        version=version,
        topic=topic,
        says_digest=not is_short(state),
    )
    if damage is None and envelope.is_erased:
        erasing = authorised.get((stream, version))
        damage = NOT_AUTHORISED if erasing is None else erasing.problem(envelope, topic, position)
    if damage is not None:
        raise _changed(row, damage)
    return envelope.prev, envelope.hash


def _changed(row: Row, damage: str) -> CorruptEvent:
    position, stream, version, _, _ = row
    return CorruptEvent(
        f"position {position}, {stream!r} version {version!r}: {damage}; no fork is made of what is not as it was written, fork "
        "before that position"
    )
