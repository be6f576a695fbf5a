"""An event as a line of a bundle's `events.jsonl`: the envelope by its names, and last the payload, byte for byte as it was hashed."""

from typing import Final

import msgspec

from intersession_events.basics.errors import CorruptEvent
from intersession_events.log.row_state import opened
from intersession_events.log.sql import Row
from intersession_events.proofs.apart import Apart


class _Line(msgspec.Struct, omit_defaults=True):
    # In the order of the format: what stands here is what `docs/reference/bundle.md` says.
    position: int
    index: int | None
    stream: str
    version: int
    topic: str
    id: str
    causation: str | None
    correlation: str | None
    epoch: int
    time: int
    prev: str
    hash: str
    digest: str | None
    salt: str = ""
    decision: str = ""
    apart: Apart | None = None
    withheld: str = ""


_ENCODE: Final = msgspec.json.Encoder().encode


def line_of_row(row: Row, index: int | None, withheld: str = "") -> bytes:
    """Return the line of a row, with its line feed. `index` is its leaf in the log's tree; None behind the last checkpoint.

    `withheld` is what a redacted edition took out of it.

    Raises:
        CorruptEvent: the row is no event, or its payload is not written as we write it.
    """
    position, stream, version, topic, state = row
    envelope = opened(state, where=f"position {position}")
    data = bytes(envelope.data)
    if b"\n" in data:  # canonical JSON has none, and a line of the file would end there
        raise CorruptEvent(f"position {position}: the payload is not in canonical form")
    line = _Line(
        position,
        index,
        stream,
        version,
        topic,
        envelope.id,
        envelope.causation,
        envelope.correlation,
        envelope.epoch,
        envelope.time,
        envelope.prev,
        envelope.hash,
        envelope.digest or None,
        envelope.salt or "",
        envelope.decision,
        envelope.apart,
        withheld,
    )
    return with_data(_ENCODE(line), data)


def with_data(line: bytes, data: bytes) -> bytes:
    """Return a line, an object without its payload, with the payload as its last member."""
    return b"".join((line[:-1], b',"data":', data, b"}\n"))
