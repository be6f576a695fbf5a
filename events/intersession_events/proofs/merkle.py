"""Merkle trees as RFC 6962 has them: a tree that grows at its end, and the paths that prove what is in it.

A leaf is SHA-256(0x00 ‖ data), a node SHA-256(0x01 ‖ left ‖ right), and the tree of nothing SHA-256 of nothing. A tree of n
leaves is split at the largest power of two below n. Hashes are 32 bytes here.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import accumulate
from typing import Final

EMPTY: Final = sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf."""
    return sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node over its two children."""
    return sha256(b"\1" + left + right).digest()


class GrowingTree:
    """A tree that leaves are added to at its end, in logarithmic memory: the roots of its complete subtrees.

    `peaks` are those roots, the largest subtree first: with them and the size, a tree goes on where another one was.
    """

    def __init__(self, size: int = 0, peaks: Iterable[bytes] = ()) -> None:
        self.size = size
        self._peaks = list(peaks)

    @property
    def peaks(self) -> tuple[bytes, ...]:
        """The roots of the complete subtrees, the largest first."""
        return tuple(self._peaks)

    @property
    def root(self) -> bytes:
        """The root of the tree as it is now."""
        if not self._peaks:
            return EMPTY
        root = self._peaks[-1]
        for peak in self._peaks[-2::-1]:
            root = node_hash(peak, root)
        return root

    def add(self, leaf: bytes) -> None:
        """Add a leaf, by its hash."""
        size = self.size
        while size & 1:
            leaf = sha256(b"\1" + self._peaks.pop() + leaf).digest()  # `node_hash`, for each event
            size >>= 1
        self._peaks.append(leaf)
        self.size += 1


def levels_of(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """Return all levels of a tree of at least one leaf, from the leaves to the root; a node without a sibling goes up as it is."""
    levels = [list(leaves)]
    while len(below := levels[-1]) > 1:
        above = [node_hash(below[at], below[at + 1]) for at in range(0, len(below) - 1, 2)]
        if len(below) % 2:
            above.append(below[-1])
        levels.append(above)
    return levels


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root of a whole tree."""
    return levels_of(leaves)[-1][0] if leaves else EMPTY


def path_in(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the audit path of a leaf, from its sibling up."""
    path: list[bytes] = []
    for level in levels_of(leaves)[:-1]:
        if (index ^ 1) < len(level):
            path.append(level[index ^ 1])
        index >>= 1
    return path


def inclusion_ranges(index: int, size: int) -> list[range]:
    """Return the leaves under each node of the audit path of a leaf, from its sibling up."""
    start, end, ranges = 0, size, list[range]()
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            ranges.append(range(middle, end))
            end = middle
        else:
            ranges.append(range(start, middle))
            start = middle
    return ranges[::-1]


def consistency_ranges(old: int, new: int) -> list[range]:
    """Return the leaves under each node that proves the tree of `old` leaves to be the beginning of that of `new`."""
    start, end, whole, ranges = 0, new, True, list[range]()
    while old != end:
        middle = start + _split(end - start)
        if old <= middle:
            ranges.append(range(middle, end))
            end = middle
        else:
            ranges.append(range(start, middle))
            start, whole = middle, False
    if not whole:
        ranges.append(range(start, end))
    return ranges[::-1]


def peak_ranges(size: int) -> list[range]:
    """Return the leaves under each peak of a tree, the largest first."""
    sizes = [1 << bit for bit in range(size.bit_length() - 1, -1, -1) if size >> bit & 1]
    starts = accumulate(sizes, initial=0)
    return [range(start, start + length) for start, length in zip(starts, sizes, strict=False)]


class RangeRoots:
    """Collects the roots over ranges of leaves in one pass over a tree's leaves, in order, in logarithmic memory."""

    def __init__(self, ranges: Sequence[range]) -> None:
        self._ranges = ranges
        self._trees = [GrowingTree() for _ in ranges]
        self._in_order = sorted(range(len(ranges)), key=lambda at: ranges[at].start)
        self._next = 0

    def take(self, index: int, leaf: bytes) -> None:
        """Take the next leaf, by its place and hash. Ranges don't overlap."""
        while self._next < len(self._in_order):
            at = self._in_order[self._next]
            if index < self._ranges[at].stop:
                if index >= self._ranges[at].start:
                    self._trees[at].add(leaf)
                return
            self._next += 1

    @property
    def roots(self) -> list[bytes]:
        """The roots, in the order of the ranges; incomplete until all leaves were taken."""
        return [tree.root for tree in self._trees]


def root_by_path(index: int, size: int, leaf: bytes, path: Sequence[bytes]) -> bytes | None:
    """Return the root that a leaf's audit path leads to; None if the path does not fit that place (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return None
    at, last, root = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return None
        if at & 1 or at == last:
            root = node_hash(sibling, root)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            root = node_hash(root, sibling)
        at, last = at >> 1, last >> 1
    return root if last == 0 else None


def is_beginning(old: int, old_root: bytes, new: int, new_root: bytes, path: Sequence[bytes]) -> bool:
    """Whether a path proves that the tree of `old` leaves is the beginning of that of `new` (RFC 9162, 2.1.4.2)."""
    if old in {new, 0}:
        return not path and old <= new and old_root == (new_root if old else EMPTY)
    if old > new:
        return False
    nodes = list(path)
    if not old & (old - 1):
        nodes.insert(0, old_root)
    if not nodes:
        return False
    at, last = old - 1, new - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    first, second = nodes[0], nodes[0]
    for node in nodes[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            first, second = node_hash(node, first), node_hash(node, second)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            second = node_hash(second, node)
        at, last = at >> 1, last >> 1
    return last == 0 and first == old_root and second == new_root


def _split(size: int) -> int:
    """Return the largest power of two below a size of at least two."""
    return 1 << (size - 1).bit_length() - 1
