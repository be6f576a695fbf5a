"""What an erasing event says, and what it leaves of the rows that it names. Pure: the store writes it, readers ask for it."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

from intersession_events.basics.errors import CorruptEvent, NotStorable
from intersession_events.facts import (
    Erased,
    Event,
    decode,
    encode,
    has_words,
    left_of_payload,
    unsaid,
)
from intersession_events.log.envelope import Erasing, damaged, replaced
from intersession_events.log.recorded import Recorded
from intersession_events.log.row_state import SHORT, opened, payload_in
from intersession_events.log.sql import Row
from intersession_events.proofs.apart import MARK

_NEVER: Final = "erased.1"
"""What authorises is not erased itself."""


ERASURES: Final = "erased:"
"""What the names of streams of erasing events begin with."""


def erased_stream(stream: str) -> str:
    """Name the stream of the events that authorise what was erased in a stream."""
    return f"{ERASURES}{stream}"


def left_of(recorded: Recorded) -> str | None:
    """Return the SHA-256 (hex) of what is left of an event without its texts; None for an event that has no text."""
    left = unsaid(recorded.event)
    if left == recorded.event or recorded.topic == _NEVER:
        return None
    return sha256(encode(left)).hexdigest()


def left_in(state: bytes, topic: str, *, where: str) -> bytes | None:
    """Return the payload of a row's state without its texts; None for a kind that has no text.

    Raises:
        CorruptEvent: it is no envelope, or its payload can't be read.
        UnknownTopic: this version does not know the topic.
    """
    if type(state) is bytes and state[:1] == SHORT:  # `is_short`, for each event
        return left_of_payload(topic, payload_in(state) or b"")  # such a row was never erased
    if not has_words(topic):
        return None
    envelope = opened(state, where=where)
    return bytes(envelope.data) if envelope.is_erased else left_of_payload(topic, envelope.payload)


def rows_erased(event: Event, *, stream: str, position: int) -> dict[int, Erasing]:
    """Return the versions that an event at a place authorises to erase; empty unless it is such an event in its stream."""
    if not isinstance(event, Erased) or stream != erased_stream(event.stream):
        return {}
    masked = event.edition == "secrets"
    return {version: Erasing(position, stands, masked, event.thinking) for version, stands in event.rows}


def erasures(recorded: Sequence[Recorded]) -> Iterator[tuple[str, int, str]]:
    """Yield stream, version and the digest of the replacement, for all rows that events erase.

    Raises:
        NotStorable: one is in another stream than the one where readers look for it.
    """
    for one in recorded:
        event = one.event
        if isinstance(event, Erased):
            if one.stream != erased_stream(event.stream):
                raise NotStorable(
                    f"erased.1 of {event.stream!r} belongs into {erased_stream(event.stream)!r}, not {one.stream!r}"
                )
            yield from ((event.stream, version, stands) for version, stands in event.rows)


def erased_state(row: Row | None, stands: str, *, log_id: str) -> bytes | None:
    """Return the state of a row without its texts, or without its thinking alone; None if they are erased already.

    Raises:
        NotStorable: there is no such row, or something else is left of it.
        CorruptEvent: it was changed before.
    """
    if row is None:
        raise NotStorable("erased.1 names a row that is not there")
    _, stream, version, topic, state = row
    where = f"{stream!r} version {version}"
    envelope = opened(state, where=where)
    if damage := damaged(envelope, log_id=log_id, stream=stream, version=version, topic=topic):
        raise CorruptEvent(f"{where}: {damage}")
    if envelope.is_erased and envelope.stands == stands:
        # What is still encrypted then can't be read any more: its key was destroyed.
        return replaced(envelope, bytes(envelope.data)) if envelope.sealed else None
    if stands == envelope.digest and MARK in bytes(envelope.data):
        return envelope.without_thinking if envelope.apart is not None else None
    left = encode(unsaid(decode(topic, envelope.payload)))
    if envelope.is_erased or topic == _NEVER or sha256(left).hexdigest() != stands:
        raise NotStorable(f"erased.1 says of {where} what is not left of it without its words")
    return replaced(envelope, left)
