"""The tree over all events of a log while a bundle of some of them is made: the nodes that stand for all others (RFC 6962)."""

from collections.abc import Collection, Sequence
from typing import Final, Literal, NamedTuple

from intersession_events.proofs.merkle import EMPTY, node_hash

_OUTSIDE: Final = 0
_INSIDE: Final = 1
_MIXED: Final = 2
_Kind = Literal[0, 1, 2]


class Node(NamedTuple):
    """The root over the leaves from `start` up to `stop`."""

    start: int
    stop: int
    hash: bytes


class _Peak(NamedTuple):
    start: int
    hash: bytes
    kind: _Kind


class PartTree:
    """Takes all leaves of a tree in order, some of which are inside a part, in logarithmic memory beside its result.

    `outside` are the nodes over the maximal ranges of leaves outside: with the leaves inside they make the root. `known` are
    the roots over the ranges that were `wanted`, each a node of the finished tree. Both are whole after `end`.
    """

    def __init__(self, wanted: Collection[tuple[int, int]] = ()) -> None:
        self.size = 0
        self.root = EMPTY
        self.known: dict[tuple[int, int], bytes] = {}
        self._wanted = frozenset(wanted)
        self._peaks: list[_Peak] = []
        self._outside: list[Node] = []

    @property
    def outside(self) -> Sequence[Node]:
        """The nodes over what is outside, in the order of their leaves."""
        return sorted(self._outside)

    def add(self, leaf: bytes, *, is_inside: bool) -> None:
        """Add a leaf, by its hash."""
        size = self.size
        self.size = stop = size + 1
        peak = _Peak(size, leaf, _INSIDE if is_inside else _OUTSIDE)
        self._note(peak, stop)
        while size & 1:
            peak = self._joined(self._peaks.pop(), peak, stop)
            size >>= 1
        self._peaks.append(peak)

    def end(self) -> None:
        """Make the root."""
        if not self._peaks:
            return
        peak = self._peaks.pop()
        while self._peaks:
            peak = self._joined(self._peaks.pop(), peak, self.size)
        if peak.kind == _OUTSIDE:
            self._outside.append(Node(peak.start, self.size, peak.hash))
        self.root = peak.hash

    def _joined(self, left: _Peak, right: _Peak, stop: int) -> _Peak:
        kind = left.kind
        if kind != right.kind:
            kind = _MIXED
            if left.kind == _OUTSIDE:
                self._outside.append(Node(left.start, right.start, left.hash))
            elif right.kind == _OUTSIDE:
                self._outside.append(Node(right.start, stop, right.hash))
        joined = _Peak(left.start, node_hash(left.hash, right.hash), kind)
        self._note(joined, stop)
        return joined

    def _note(self, peak: _Peak, stop: int) -> None:
        if self._wanted and (peak.start, stop) in self._wanted:
            self.known[peak.start, stop] = peak.hash
