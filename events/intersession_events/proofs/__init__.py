"""Proofs: Merkle trees, checkpoints as they are hashed, signed and published, and the walk that compares them with a log."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_events.proofs.hashed import Hashed
    from intersession_events.proofs.merkle import (
        GrowingTree,
        RangeRoots,
        consistency_ranges,
        inclusion_ranges,
        leaf_hash,
        node_hash,
        root_by_path,
    )
    from intersession_events.proofs.proof import (
        GrowthProof,
        Proof,
        ProvenEvent,
        StreamProof,
        check_proof,
        read_proof,
    )
    from intersession_events.proofs.published import published_in
    from intersession_events.proofs.signatures import (
        PrivateKey,
        PublicKey,
        Trusted,
        new_private,
        public_keys,
        read_private,
        write_private,
    )
    from intersession_events.proofs.statement import (
        PUBLISHED,
        STREAM,
        TAKEN,
        Checkpoint,
        checkpoint_of,
        line_of,
        unsaid_line,
    )
    from intersession_events.proofs.stream_heads import HeadPath, StreamHeads
    from intersession_events.proofs.walk import CheckpointsSeen, CheckpointWalk, Taken

__all__ = [
    "PUBLISHED",
    "STREAM",
    "TAKEN",
    "Checkpoint",
    "CheckpointWalk",
    "CheckpointsSeen",
    "GrowingTree",
    "GrowthProof",
    "Hashed",
    "HeadPath",
    "PrivateKey",
    "Proof",
    "ProvenEvent",
    "PublicKey",
    "RangeRoots",
    "StreamHeads",
    "StreamProof",
    "Taken",
    "Trusted",
    "check_proof",
    "checkpoint_of",
    "consistency_ranges",
    "inclusion_ranges",
    "leaf_hash",
    "line_of",
    "new_private",
    "node_hash",
    "public_keys",
    "published_in",
    "read_private",
    "read_proof",
    "root_by_path",
    "unsaid_line",
    "write_private",
]
