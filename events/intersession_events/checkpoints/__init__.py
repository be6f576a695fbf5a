"""Checkpoints of a log: taken beside its writer, and proofs made of them."""

from intersession_events.checkpoints.proving import prove_growth, prove_stream
from intersession_events.checkpoints.taking import CheckpointTaker, append_of

__all__ = ["CheckpointTaker", "append_of", "prove_growth", "prove_stream"]
