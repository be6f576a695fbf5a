"""Proofs that travel without the log: that a stream is part of a checkpoint, and a checkpoint the beginning of a later one.

They are checked with nothing but the proof, and a key or a published checkpoint that is trusted.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from intersession_events.basics.errors import BadCheckpoint
from intersession_events.facts import ready
from intersession_events.proofs.hashed import Hashed
from intersession_events.proofs.merkle import is_beginning, leaf_hash, root_by_path
from intersession_events.proofs.published import Published
from intersession_events.proofs.signatures import Trusted
from intersession_events.proofs.statement import Checkpoint, line_of
from intersession_events.proofs.stream_heads import HeadPath, root_over_heads

_MOST_BYTES: Final = 1 << 20


@ready
class ProvenEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An event without its texts: everything that its hash covers, and its place. Its hash covers all events before it in its stream."""

    position: int
    stream: str
    version: int
    topic: str
    event_id: str
    time_ms: int
    causation: str | None
    correlation: str | None
    epoch: int
    prev: str
    payload_digest: str
    decision: str = ""

    def hash_in(self, log_id: str) -> str:
        """Return the event's hash, as an event of that log."""
        said = {name: getattr(self, name) for name in Hashed.__struct_fields__ if name != "log_id"}
        return Hashed(log_id=log_id, **said).hash


class StreamProof(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag="stream", tag_field="kind"):
    """Proves that a stream, up to `event`, is part of `checkpoint`; with a `head` also that no event of it follows up to there.

    `index` is the event's leaf in the tree over all events, `path` the way from it to `eventsRoot`.
    """

    checkpoint: Checkpoint
    event: ProvenEvent
    index: int
    path: tuple[str, ...]
    head: HeadPath | None = None


class GrowthProof(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag="growth", tag_field="kind"):
    """Proves that the events of the checkpoint `since` are the beginning of those of `checkpoint`, by a path between their trees."""

    since: Checkpoint
    checkpoint: Checkpoint
    path: tuple[str, ...]


Proof = StreamProof | GrowthProof


class ProofReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a proof shows, what is wrong with it, and in words what it leaves open. It shows nothing if anything is wrong."""

    shows: str
    wrong: tuple[str, ...]
    unproven: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong


_DECODE: Final = msgspec.json.Decoder[Proof](Proof).decode


def read_proof(text: bytes) -> Proof:
    """Return a proof that was written as JSON.

    Raises:
        BadCheckpoint: it is not one.
    """
    try:
        if len(text) > _MOST_BYTES:
            raise BadCheckpoint(f"a proof has some kilobytes, this has {len(text)}")
        proof: Proof = _DECODE(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadCheckpoint(f"this is no proof ({error}); `verify --prove` makes one") from error
    return proof


def check_proof(proof: Proof, *, trusted: Trusted, published: Sequence[Published] = ()) -> ProofReport:
    """Say what a proof shows, given trusted keys and published checkpoints.

    Raises:
        MissingExtra: there is a signature to be checked, and the extra `sign` is not installed.
    """
    match proof:
        case StreamProof():
            shows, wrong, unproven = _of_stream(proof)
        case GrowthProof():
            shows, wrong, unproven = _of_growth(proof)
    checkpoints = [proof.checkpoint, *([proof.since] if isinstance(proof, GrowthProof) else [])]
    known = {one.hash for one in published}
    for checkpoint in checkpoints:
        key = trusted.of(checkpoint.key_id)
        if key is not None:
            if not key.has_signed(checkpoint.text, checkpoint.signature or ""):
                wrong.append(
                    f"the checkpoint of position {checkpoint.position} was not signed by the key {key.id}"
                )
        elif checkpoint.hash not in known:
            unproven.append(
                f"That the checkpoint of position {checkpoint.position} is genuine: "
                + (
                    "it is not signed"
                    if checkpoint.key_id is None
                    else f"it names the key {checkpoint.key_id}, which is not trusted, so that its signature was not checked"
                )
                + ", and it is not among the published ones."
            )
    return ProofReport(shows="" if wrong else shows, wrong=tuple(wrong), unproven=tuple(unproven))


def _of_stream(proof: StreamProof) -> tuple[str, list[str], list[str]]:
    event, checkpoint = proof.event, proof.checkpoint
    hashed = event.hash_in(checkpoint.log_id)
    root = _root(proof, hashed)
    wrong: list[str] = []
    if root != checkpoint.events_root:
        wrong.append("the path does not lead from the event to the checkpoint: one of them was changed")
    if event.position > checkpoint.position:
        wrong.append(f"the event lies behind position {checkpoint.position}, which the checkpoint is of")
    unproven: list[str] = []
    if proof.head is None:
        unproven.append(
            f"That version {event.version} was the last of {event.stream} up to position {checkpoint.position}: the "
            "proof says nothing of that."
        )
    else:
        found = root_over_heads(event.stream, event.version, hashed, proof.head)
        if found is None or checkpoint.heads_root != found.hex():
            wrong.append("the path over the heads of streams does not lead to the checkpoint: it was changed")
    shows = (
        f"{event.stream}, up to its {'version' if proof.head is None else 'last version'} {event.version} at position "
        f"{event.position} (hash {hashed}), is part of the log {checkpoint.log_id} as of position {checkpoint.position}"
    )
    return shows, wrong, unproven


def _root(proof: StreamProof, hashed: str) -> str | None:
    leaf = leaf_hash(line_of(proof.event.position, hashed))
    try:
        root = root_by_path(
            proof.index, proof.checkpoint.count, leaf, [bytes.fromhex(node) for node in proof.path]
        )
    except ValueError:
        return None
    return None if root is None else root.hex()


def _of_growth(proof: GrowthProof) -> tuple[str, list[str], list[str]]:
    since, until = proof.since, proof.checkpoint
    wrong = list(_growth_problems(proof))
    shows = (
        f"the {since.count} events up to position {since.position} are, unchanged and in their order, the beginning of "
        f"the {until.count} up to position {until.position} of the log {until.log_id}"
    )
    return shows, wrong, []


def _growth_problems(proof: GrowthProof) -> Iterator[str]:
    since, until = proof.since, proof.checkpoint
    if since.log_id != until.log_id:
        yield f"the checkpoints are of two logs, {since.log_id} and {until.log_id}"
        return
    try:
        path = [bytes.fromhex(node) for node in proof.path]
        roots = bytes.fromhex(since.events_root), bytes.fromhex(until.events_root)
    except ValueError:
        yield "the path holds something that is not a hash"
        return
    if not is_beginning(since.count, roots[0], until.count, roots[1], path):
        yield "the path does not lead from the one checkpoint to the other: one is not the beginning of the other"
