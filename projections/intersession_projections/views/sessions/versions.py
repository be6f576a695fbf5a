"""Versions of a session's row: blocks of sixteen, the first of each whole, the others as changes.

The newest block grows in the row itself, so that a change touches no other place; once it is full, it is stored beside.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from intersession_projections.basics.columns import Small, pack
from intersession_projections.views.sessions.row import STORED, SessionRow

MOST: Final = 16
"""The number of versions in a block, which bounds the bytes read for one of them."""

_HEADS: Final = [b"\xdc" + number.to_bytes(2, "big") for number in range(MOST + 1)]
"""The first bytes of a MessagePack array, by its length."""
_HEAD: Final = 3
_NUMBER: Final = 2
(_VERSION,) = STORED.numbers("version")

Version = tuple[int, Small, int | None]
"""The position from which on it holds; what is stored of it; the number of the message that came with it."""
_DECODER: Final = msgspec.msgpack.Decoder(list[Version])


def with_version(block: bytes | None, version: Version) -> bytes:
    """Return a block with another version at its end; without a block, a new one."""
    if block is None:
        return _HEADS[1] + pack(version)
    return _HEADS[block[_NUMBER] + 1] + block[_HEAD:] + pack(version)


def is_full(block: bytes) -> bool:
    """Whether a block is full."""
    return block[_NUMBER] == MOST


def versions_in(block: bytes) -> Sequence[Version]:
    """Return the versions of a block."""
    return _DECODER.decode(block)


def messages_in(versions: Sequence[Version]) -> list[tuple[int, int]]:
    """Return the numbers of the messages that came with versions, and the place of each in the session's stream."""
    return [(message, small[_VERSION]) for _, small, message in versions if message is not None]


def row_in(block: bytes | None, key: str, position: int) -> SessionRow | None:
    """Return the row at a position; None if the block begins after it."""
    row: Small = {}
    since = None
    for changed, small, _ in versions_in(block) if block else ():
        if changed > position:
            break
        since = changed
        row.update(small)
    return None if since is None else STORED.made_of(row, key=key, position=since)
