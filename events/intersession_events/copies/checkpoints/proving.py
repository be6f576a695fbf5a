"""Makes proofs of a log that travel without it, in one pass over its events up to a checkpoint."""

from collections.abc import Sequence

from intersession_events.basics.errors import BadCheckpoint, CorruptEvent
from intersession_events.basics.progress import Progress
from intersession_events.copies.checkpoints.taking import tree_of
from intersession_events.facts import CheckpointTaken
from intersession_events.log.held_checkpoints import checkpoints_of
from intersession_events.log.log import Log
from intersession_events.log.row_state import hash_in, opened
from intersession_events.proofs.merkle import (
    GrowingTree,
    RangeRoots,
    consistency_ranges,
    inclusion_ranges,
    leaf_hash,
    peak_ranges,
)
from intersession_events.proofs.proof import GrowthProof, ProvenEvent, StreamProof
from intersession_events.proofs.statement import Checkpoint, checkpoint_of, line_of
from intersession_events.proofs.stream_heads import HeadPath, StreamHeads

_PAGE = 2000
_LAST = (
    "SELECT rowid, originator_version, topic, state FROM stored_events WHERE originator_id=? AND rowid BETWEEN 1 AND ? "
    "ORDER BY originator_version DESC LIMIT 1"
)


def prove_stream(
    log: Log, stream: str, *, at: int | None = None, progress: Progress | None = None
) -> StreamProof:
    """Return the proof that a stream is part of the last checkpoint at or before a position; the last one of all without one.

    Raises:
        BadCheckpoint: there is no such checkpoint, or no event of the stream before it.
        CorruptEvent: the log is not what the checkpoint was taken of; `verify` says where.
    """
    checkpoint = checkpoint_of(log.log_id, _taken(log, at))
    found = log.query(_LAST, (stream, checkpoint.position))
    if not found:
        raise BadCheckpoint(f"no event of {stream!r} lies before position {checkpoint.position}")
    position, version, topic, state = found[0]
    envelope = opened(state, where=f"position {position}")
    event = ProvenEvent(
        position=position,
        stream=stream,
        version=version,
        topic=topic,
        event_id=envelope.id,
        time_ms=envelope.time,
        causation=envelope.causation,
        correlation=envelope.correlation,
        epoch=envelope.epoch,
        prev=envelope.prev,
        payload_digest=envelope.digest,
        decision=envelope.decision,
    )
    # The leaves before it: positions without a gap would say it, but what is proven is not assumed.
    ((index,),) = log.query("SELECT COUNT(*) FROM stored_events WHERE rowid BETWEEN 1 AND ?", (position - 1,))
    heads = None if checkpoint.heads_root is None else StreamHeads()
    path = _walk(log, checkpoint, inclusion_ranges(index, checkpoint.count), progress, heads=heads)
    head: HeadPath | None = None
    if heads is not None:
        if heads.root.hex() != checkpoint.heads_root:
            raise CorruptEvent(
                f"the streams of the log are not those of its checkpoint of {checkpoint.position}"
            )
        head = heads.path(stream)
    return StreamProof(checkpoint=checkpoint, event=event, index=index, path=path, head=head)


def prove_growth(
    log: Log, since: int, *, at: int | None = None, progress: Progress | None = None
) -> GrowthProof:
    """Return the proof that the last checkpoint at or before `since` is the beginning of the one at or before `at`.

    Raises:
        BadCheckpoint: there is no such checkpoint.
        CorruptEvent: the log is not what the later one was taken of; `verify` says where.
    """
    first, last = _taken(log, since), _taken(log, at)
    if first.position > last.position:
        raise BadCheckpoint(
            f"the checkpoint of {first.position} is not before that of {last.position}: give the earlier one first"
        )
    now = checkpoint_of(log.log_id, last)
    path = growth_path(log, first, now, progress=progress)
    return GrowthProof(since=checkpoint_of(log.log_id, first), checkpoint=now, path=path)


def growth_path(
    log: Log, since: CheckpointTaken, last: Checkpoint, *, progress: Progress | None = None
) -> tuple[str, ...]:
    """Return the path from an earlier checkpoint of the log to a later one, by the events between them alone.

    Raises:
        CorruptEvent: the log is not what they were taken of.
    """
    ranges = consistency_ranges(since.count, last.count)
    return _walk(log, last, ranges, progress, since=since)


def _taken(log: Log, at: int | None) -> CheckpointTaken:
    taken = [one.event for one in checkpoints_of(log.log_id, log.query)]
    found = [one for one in taken if at is None or one.position <= at]
    if not found:
        where = "" if at is None else f" of position {at} or before"
        raise BadCheckpoint(f"the log has no checkpoint{where}; `intersession checkpoint` takes one")
    return found[-1]


def _walk(
    log: Log,
    checkpoint: Checkpoint,
    ranges: Sequence[range],
    progress: Progress | None,
    *,
    heads: StreamHeads | None = None,
    since: CheckpointTaken | None = None,
) -> tuple[str, ...]:
    tree, after, peaks = GrowingTree(), 0, dict[tuple[int, int], str]()
    if since is not None:
        # Below an earlier checkpoint a path has nothing but its peaks.
        tree, after = tree_of(since, where=f"position {since.position}"), since.position
        under = peak_ranges(since.count)
        peaks = {(part.start, part.stop): peak for part, peak in zip(under, since.peaks, strict=True)}
    roots = RangeRoots([part for part in ranges if part.start >= tree.size])
    while after < checkpoint.position and (page := log.rows(after=after, limit=_PAGE)):
        for position, stream, version, _, state in page:
            if position > checkpoint.position:
                break
            hashed = hash_in(state, where=f"position {position}")
            leaf = leaf_hash(line_of(position, hashed))
            roots.take(tree.size, leaf)
            tree.add(leaf)
            if heads is not None:
                heads.tell(stream, version, hashed)
        after = page[-1][0]
        if progress is not None:
            progress(min(after, checkpoint.position), checkpoint.position)
    if (tree.size, tree.root.hex()) != (checkpoint.count, checkpoint.events_root):
        raise CorruptEvent(
            f"the events of the log are not those of its checkpoint of {checkpoint.position}; `intersession verify` says where"
        )
    fresh = iter(roots.roots)
    return tuple(peaks.get((part.start, part.stop)) or next(fresh).hex() for part in ranges)
