"""The tree over the heads of all streams: what each stream's last event was, under one root that is kept up cheaply.

A head is the line `{"hash":…,"stream":…,"version":…}` (canonical JSON). Heads are sorted by the SHA-256 of their streams'
names and cut into 65,536 parts by its first two bytes. Each part is a tree as RFC 6962 has it, and the roots of the parts,
in order, are the leaves of another. So a stream that moves, or a new one, changes one small part and one path above it.
"""

from hashlib import sha256
from typing import Final

import msgspec

from intersession_events.proofs.merkle import EMPTY, leaf_hash, levels_of, node_hash, path_in, root_by_path

PARTS_BITS: Final = 16
_KEY: Final = 32
_RECORD: Final = 2 * _KEY
"""A stream in a part: the hash of its name, and that of its head."""


class _Head(msgspec.Struct):
    # Canonical order: what is encoded here is what RFC 8785 says.
    hash: str
    stream: str
    version: int


_UNWRITTEN: Final = bytes(_KEY)
_ENCODE: Final = msgspec.json.Encoder().encode
_MOST_TOLD: Final = 200_000
"""So many heads wait to be taken in at once: together they cost less, but each takes memory."""


def _empty_levels() -> tuple[bytes, ...]:
    level = leaf_hash(EMPTY)
    found = [level]
    for _ in range(PARTS_BITS):
        level = node_hash(level, level)
        found.append(level)
    return tuple(found)


_OF_NOTHING: Final = _empty_levels()
"""The nodes above parts that have no stream, by level."""


class HeadPath(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The way from a stream's head to the root over all: its place in its part, the part's size, and both audit paths."""

    index: int
    size: int
    part: tuple[str, ...]
    parts: tuple[str, ...]


class StreamHeads:
    """The heads of all streams. What is told of a stream counts from the next `root` on.

    They take 64 bytes a stream, some 160 for each part that is not empty, and at most 4 MiB for the nodes above.
    """

    def __init__(self) -> None:
        self._told: dict[str, tuple[int, str]] = {}
        self._parts: dict[int, bytes] = {}
        self._nodes: list[bytearray] = []
        """The nodes of each level in a row, zeros for one with nothing below it: pages nobody has written to take no memory."""
        self._streams = 0

    def tell(self, stream: str, version: int, hashed: str) -> None:
        """Say what the last event of a stream is now."""
        self._told[stream] = (version, hashed)
        if len(self._told) >= _MOST_TOLD:
            self._take_in()

    @property
    def streams(self) -> int:
        """How many streams there are."""
        self._take_in()
        return self._streams

    @property
    def root(self) -> bytes:
        """The root over the heads of all streams."""
        self._take_in()
        return self._node(PARTS_BITS, 0) if self._nodes else _OF_NOTHING[PARTS_BITS]

    def path(self, stream: str) -> HeadPath | None:
        """Return the way from a stream's head to the root; None if there is no such stream."""
        self._take_in()
        key = _key(stream)
        number = _part(key)
        records = self._parts.get(number, b"")
        keys = [records[at : at + _KEY] for at in range(0, len(records), _RECORD)]
        if key not in keys:
            return None
        at = keys.index(key)
        parts: list[str] = []
        for level in range(PARTS_BITS):
            parts.append(self._node(level, number ^ 1).hex())
            number >>= 1
        path = path_in(_leaves(records), at)
        return HeadPath(index=at, size=len(keys), part=tuple(node.hex() for node in path), parts=tuple(parts))

    def _take_in(self) -> None:
        if not self._told:
            return
        if not self._nodes:
            self._nodes = [bytearray(_KEY << PARTS_BITS - level) for level in range(PARTS_BITS + 1)]
        moved: dict[int, dict[bytes, bytes]] = {}
        for stream, (version, hashed) in self._told.items():
            key = _key(stream)
            moved.setdefault(_part(key), {})[key] = head_hash(stream, version, hashed)
        self._told = {}
        for number, heads in moved.items():
            records = self._parts.get(number, b"")
            known = {
                records[at : at + _KEY]: records[at + _KEY : at + _RECORD]
                for at in range(0, len(records), _RECORD)
            }
            before = len(known)
            known.update(heads)
            self._streams += len(known) - before
            records = b"".join(key + known[key] for key in sorted(known))
            self._parts[number] = records
            leaf = leaf_hash(levels_of(_leaves(records))[-1][0])
            self._nodes[0][number * _KEY : (number + 1) * _KEY] = leaf
        numbers = set(moved)
        for level in range(PARTS_BITS):
            above = self._nodes[level + 1]
            numbers = {number >> 1 for number in numbers}
            for number in numbers:
                node = node_hash(self._node(level, 2 * number), self._node(level, 2 * number + 1))
                above[number * _KEY : (number + 1) * _KEY] = node

    def _node(self, level: int, number: int) -> bytes:
        node = bytes(self._nodes[level][number * _KEY : (number + 1) * _KEY])
        return _OF_NOTHING[level] if node == _UNWRITTEN else node


def head_hash(stream: str, version: int, hashed: str) -> bytes:
    """Return the leaf of a stream's head."""
    return leaf_hash(_ENCODE(_Head(hashed, stream, version)))


def root_over_heads(stream: str, version: int, hashed: str, path: HeadPath) -> bytes | None:
    """Return the root that a head's path leads to; None if it is no path of that stream."""
    try:
        part = root_by_path(
            path.index,
            path.size,
            head_hash(stream, version, hashed),
            [bytes.fromhex(node) for node in path.part],
        )
        parts = [bytes.fromhex(node) for node in path.parts]
    except (ValueError, TypeError):
        return None
    if part is None:
        return None
    return root_by_path(_part(_key(stream)), 1 << PARTS_BITS, leaf_hash(part), parts)


def _key(stream: str) -> bytes:
    return sha256(stream.encode(errors="surrogatepass")).digest()


def _part(key: bytes) -> int:
    return key[0] << 8 | key[1]


def _leaves(records: bytes) -> list[bytes]:
    return [records[at : at + _KEY] for at in range(_KEY, len(records), _RECORD)]
