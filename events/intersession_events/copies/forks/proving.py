"""Proves that the last events of a fork's streams are part of the log that it was made of, by that log's checkpoints.

A head is proven by the first checkpoint behind it. What it takes lies between that checkpoint and the one before, whose
peaks stand for all that was earlier: so it costs the same in a log of any size.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from intersession_events.basics.errors import CorruptEvent, UnknownTopic
from intersession_events.facts import CheckpointTaken, HeadProof, SourceCheckpoint, decode
from intersession_events.log.row_state import hash_in, payload_in
from intersession_events.log.sql import Query, Row
from intersession_events.proofs.merkle import GrowingTree, inclusion_ranges, leaf_hash, node_hash, peak_ranges
from intersession_events.proofs.statement import TAKEN, line_of

_CHECKPOINTS: Final = (
    "SELECT rowid FROM stored_events WHERE originator_id='log' AND topic=? ORDER BY originator_version"
)
_STATE: Final = "SELECT state FROM stored_events WHERE rowid=?"
# The hash of a state in the short form lies before its payload, which may be long.
_LEAVES: Final = (
    "SELECT rowid, iif(substr(state, 1, 1) = X'01', substr(state, 1, 151), state) FROM stored_events "
    "WHERE rowid > ? AND rowid <= ? ORDER BY rowid"
)
MOST_LEAVES: Final = 16_384
"""The most events read for proofs; heads that would take more are left unproven, the oldest first."""


class Proven(NamedTuple):
    """The checkpoints that prove heads, and the proofs."""

    checkpoints: tuple[SourceCheckpoint, ...] = ()
    proofs: tuple[HeadProof, ...] = ()


def heads_proven(seen: Query, heads: Sequence[Row]) -> Proven:
    """Return the proofs of those rows that the log's checkpoints cover; none if a checkpoint does not match the log."""
    taken, most = _Taken(seen), MOST_LEAVES
    within: dict[int, list[int]] = {}
    for number, row in enumerate(heads):
        checkpoint = taken.first_over(row[0])
        if checkpoint is not None:
            within.setdefault(checkpoint, []).append(number)
    checkpoints: list[SourceCheckpoint] = []
    proofs: list[HeadProof] = []
    for at in sorted(within, reverse=True):
        now, before = taken[at], taken[at - 1] if at else None
        if now is None or (at and before is None):
            continue
        size = now.count - (0 if before is None else before.count)
        if size > most:
            continue
        most -= size
        try:
            stretch = _Stretch(seen, now, before)
        except CorruptEvent:
            continue
        if not stretch.is_whole:
            continue  # the log was changed since; that is for its own verification to tell
        for number in within[at]:
            index, path = stretch.path(heads[number][0])
            proofs.append(HeadProof(head=number, checkpoint=len(checkpoints), index=index, path=path))
        checkpoints.append(_said(now))
    return Proven(tuple(checkpoints), tuple(proofs))


class _Taken:
    """The checkpoints of a log, of which few are looked at."""

    def __init__(self, seen: Query) -> None:
        self._seen = seen
        self._places = [position for (position,) in seen(_CHECKPOINTS, (TAKEN,))]
        self._known: dict[int, CheckpointTaken | None] = {}

    def __getitem__(self, at: int) -> CheckpointTaken | None:
        """Return a checkpoint; None for one that can't be read, which proves nothing."""
        if at not in self._known:
            ((state,),) = self._seen(_STATE, (self._places[at],))
            try:
                event: object = decode(TAKEN, payload_in(state) or b"")
            except (CorruptEvent, UnknownTopic):
                event = None
            self._known[at] = event if isinstance(event, CheckpointTaken) else None
        return self._known[at]

    def first_over(self, position: int) -> int | None:
        """Return the number of the first checkpoint that covers a position."""
        at = bisect_right(self._places, position)
        while at < len(self._places):
            checkpoint = self[at]
            if checkpoint is not None and checkpoint.position >= position:
                return at
            at += 1
        return None


class _Stretch:
    """The leaves between two checkpoints, and the nodes above them."""

    def __init__(self, seen: Query, now: CheckpointTaken, before: CheckpointTaken | None) -> None:
        self._first = 0 if before is None else before.count
        self._size = now.count
        self._leaves: list[bytes] = []
        self._index: dict[int, int] = {}
        self._nodes: dict[tuple[int, int], bytes] = {}
        low = 0 if before is None else before.position
        for position, state in seen(_LEAVES, (low, now.position)):
            self._index[position] = self._first + len(self._leaves)
            self._leaves.append(leaf_hash(line_of(position, hash_in(state, where=f"position {position}"))))
        try:
            peaks = [] if before is None else [bytes.fromhex(peak) for peak in before.peaks]
        except ValueError:
            peaks = []
        under = peak_ranges(self._first)
        self.is_whole = len(peaks) == len(under)
        if self.is_whole:
            tree = GrowingTree(self._first, peaks)
            for peak, part in zip(peaks, under, strict=True):
                self._nodes[part.start, part.stop] = peak
            for leaf in self._leaves:
                tree.add(leaf)
            self.is_whole = (tree.size, tree.root.hex()) == (now.count, now.events_root)

    def path(self, position: int) -> tuple[int, tuple[str, ...]]:
        """Return the leaf of an event, and the way from it to the root."""
        index = self._index[position]
        ranges = inclusion_ranges(index, self._size)
        return index, tuple(self._node(part.start, part.stop).hex() for part in ranges)

    def _node(self, start: int, stop: int) -> bytes:
        if stop - start == 1 and start >= self._first:
            return self._leaves[start - self._first]
        known = self._nodes.get((start, stop))
        if known is None:
            middle = start + (1 << (stop - start - 1).bit_length() - 1)
            known = node_hash(self._node(start, middle), self._node(middle, stop))
            self._nodes[start, stop] = known
        return known


def _said(event: CheckpointTaken) -> SourceCheckpoint:
    return SourceCheckpoint(**{name: getattr(event, name) for name in SourceCheckpoint.__struct_fields__})
