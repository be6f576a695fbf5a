"""The tree over the heads of all streams: each stream's last event, under one root that is cheap to keep current.

A head is the line `{"hash":…,"stream":…,"version":…}` (canonical JSON). Heads are sorted by the SHA-256 of their streams'
names and cut into 65,536 parts by its first two bytes. Each part is a tree as RFC 6962 has it, and the roots of the parts,
in order, are the leaves of another. So a stream that moves, or a new one, changes one small part and one path above it.
"""

from hashlib import sha256
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Final

import msgspec

from intersession_events.proofs.merkle import EMPTY, leaf_hash, levels_of, node_hash, path_in, root_by_path

PARTS_BITS: Final = 16
_LEAVES: Final = 1 << PARTS_BITS
"""The node of the first part; those of the others follow."""
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
"""The number of heads that are collected before they are added: together they cost less, but each takes memory."""


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
    """The heads of all streams. Changes count from the next `root` on.

    They take 64 bytes a stream, some 160 for each part that is not empty, and at most 4 MiB for the nodes above.
    """

    def __init__(self) -> None:
        self._told: dict[str, tuple[int, str]] = {}
        self._parts: dict[int, bytes] = {}
        self._nodes = mmap(-1, _KEY << PARTS_BITS + 1, MAP_PRIVATE | MAP_ANONYMOUS)
        """The nodes, 1 the root, below each n 2n and 2n+1, zeros where there is no stream: unwritten pages take no memory."""
        self._streams = 0

    def tell(self, stream: str, version: int, hashed: str) -> None:
        """Set the last event of a stream."""
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
        return self._node(1)

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
        nodes = [_LEAVES + number >> level for level in range(PARTS_BITS)]
        path = path_in(_leaves(records), at)
        return HeadPath(
            index=at,
            size=len(keys),
            part=tuple(node.hex() for node in path),
            parts=tuple(self._node(node ^ 1).hex() for node in nodes),
        )

    def _take_in(self) -> None:
        if not self._told:
            return
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
            at = (_LEAVES + number) * _KEY
            self._nodes[at : at + _KEY] = leaf_hash(levels_of(_leaves(records))[-1][0])
        nodes, above = self._nodes, {_LEAVES + number for number in moved}
        for nothing in _OF_NOTHING[:PARTS_BITS]:
            above = {node >> 1 for node in above}
            for node in above:
                # Written out: a stream that moves changes sixteen nodes.
                at = 2 * node * _KEY
                left, right = nodes[at : at + _KEY], nodes[at + _KEY : at + 2 * _KEY]
                nodes[node * _KEY : (node + 1) * _KEY] = node_hash(
                    nothing if left == _UNWRITTEN else left, nothing if right == _UNWRITTEN else right
                )

    def _node(self, node: int) -> bytes:
        hashed = self._nodes[node * _KEY : (node + 1) * _KEY]
        return _OF_NOTHING[PARTS_BITS + 1 - node.bit_length()] if hashed == _UNWRITTEN else hashed


def head_hash(stream: str, version: int, hashed: str) -> bytes:
    """Return the leaf of a stream's head."""
    return leaf_hash(_ENCODE(_Head(hashed, stream, version)))


def root_over_heads(stream: str, version: int, hashed: str, path: HeadPath) -> bytes | None:
    """Return the root that a head's path leads to; None if the path does not fit that stream."""
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
