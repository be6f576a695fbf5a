"""Makes the proof of a bundle: that its events are those of the log, each at its position, and that no event of a stream was left out.

It takes every event of the log, in order, up to the checkpoint that proves, and keeps only what stands for the events outside.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from intersession_events.basics.errors import CorruptEvent
from intersession_events.copies.bundles.tree import PartTree
from intersession_events.copies.forks.prefix import STREAM
from intersession_events.log.held_checkpoints import checkpoints_of
from intersession_events.log.lineage import Lineage
from intersession_events.log.sql import Query
from intersession_events.proofs.merkle import consistency_ranges, leaf_hash
from intersession_events.proofs.proof import GrowthProof
from intersession_events.proofs.statement import Checkpoint, checkpoint_of, line_of
from intersession_events.proofs.stream_heads import HeadPath, StreamHeads

MOST_GROWTH: Final = 200
"""The most earlier checkpoints that are proven to be the beginning of the last: the latest half of them, and others evenly before."""
_ENCODE: Final = msgspec.json.Encoder().encode


class _Head(msgspec.Struct):
    stream: str
    version: int
    hash: str
    path: HeadPath


class PartProof:
    """The proof of a part of a log, `streams` up to a place: by the first checkpoint that covers the place, else by the last one.

    `checkpoints` are all up to that one.
    """

    def __init__(self, lineage: Lineage, seen: Query, *, at: int, streams: Collection[str]) -> None:
        self.checkpoints = _up_to(lineage, seen, at)
        self.checkpoint = self.checkpoints[-1] if self.checkpoints else None
        self.until = 0 if self.checkpoint is None else self.checkpoint.position
        """The last position that is proven."""
        self._streams = streams
        self._ends: dict[str, tuple[int, str]] = {}
        self._inside: set[str] = set()
        self._growth = [*_growth(self.checkpoints)]
        self._tree = PartTree([(one.start, one.stop) for _, ranges in self._growth for one in ranges])
        self._heads = StreamHeads()

    def take(self, position: int, stream: str, version: int, hashed: str, *, is_inside: bool) -> int | None:
        """Take the next event of the log, and return its leaf in the tree; None for one behind the checkpoint."""
        if position > self.until:
            return None
        leaf = self._tree.size
        self._tree.add(leaf_hash(line_of(position, hashed)), is_inside=is_inside)
        self._heads.tell(stream, version, hashed)
        if stream in self._streams:
            self._ends[stream] = (version, hashed)
            if is_inside:
                self._inside.add(stream)
        return leaf

    def write(self, folder: Path, left: bytes = b"") -> None:
        """Write `proof.json`, and `heads.jsonl` if it is of a part, once all events were taken.

        `left` is what checkpoints say is left of events without their words, as JSON.

        Raises:
            CorruptEvent: the log is not what the checkpoint was taken of.
            OSError: it can't be written.
        """
        self._tree.end()
        checkpoint = self.checkpoint
        if checkpoint is not None:
            self._check(checkpoint)
        nodes = [(node.start, node.stop, node.hash.hex()) for node in self._tree.outside]
        growth = [self._grown(since, ranges) for since, ranges in self._growth]
        unsaid = b',"unsaid":' + left if left else b""
        proof = _ENCODE({"checkpoint": checkpoint, "nodes": nodes, "growth": growth})
        (folder / "proof.json").write_bytes(proof[:-1] + unsaid + b"}\n")
        # With no node outside, the bundle's own events make the root: nothing can have been left out of any stream.
        if nodes and self._inside - {STREAM} and checkpoint is not None and checkpoint.heads_root is not None:
            with (folder / "heads.jsonl").open("wb") as file:
                file.writelines(_ENCODE(head) + b"\n" for head in self._heads_inside())

    def _heads_inside(self) -> Iterator[_Head]:
        for stream in sorted(self._inside - {STREAM}):
            path = self._heads.path(stream)
            assert path is not None  # noqa: S101 - it was told
            yield _Head(stream, *self._ends[stream], path)

    def _grown(self, since: Checkpoint, ranges: Sequence[range]) -> GrowthProof:
        assert self.checkpoint is not None  # noqa: S101 - there are several
        known = self._tree.known
        return GrowthProof(
            since=since,
            checkpoint=self.checkpoint,
            path=tuple(known[one.start, one.stop].hex() for one in ranges),
        )

    def _check(self, checkpoint: Checkpoint) -> None:
        said = (checkpoint.count, checkpoint.events_root)
        is_same = said == (self._tree.size, self._tree.root.hex())
        if is_same and checkpoint.heads_root is not None:
            is_same = checkpoint.heads_root == self._heads.root.hex()
        if not is_same:
            found = CorruptEvent(
                f"the log is not what the checkpoint of position {checkpoint.position} was taken of: no bundle is made of what is "
                "not as it was written; `intersession verify` says what was changed"
            )
            found.position = checkpoint.position
            raise found


def _up_to(lineage: Lineage, seen: Query, at: int) -> list[Checkpoint]:
    found: list[Checkpoint] = []
    for taken in checkpoints_of(lineage.log_id, seen):
        found.append(checkpoint_of(lineage.log_id, taken.event))
        if taken.event.position >= at:
            break
    return found


def _growth(checkpoints: Sequence[Checkpoint]) -> Iterator[tuple[Checkpoint, Sequence[range]]]:
    """Yield the earlier checkpoints that are proven, and the leaves under each node of their proofs."""
    if not checkpoints:
        return
    *earlier, last = checkpoints
    half = MOST_GROWTH // 2
    before = earlier[:-half]
    step = max(1, -(-len(before) // half))
    for since in (*before[::step], *earlier[-half:]):
        if 0 < since.count < last.count:
            yield since, consistency_ranges(since.count, last.count)
