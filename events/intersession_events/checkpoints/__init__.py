"""Checkpoints of a log: taken beside its writer, and proofs made of them."""

from intersession_events.checkpoints.taking import CheckedLog, CheckpointTaker, append_of

__all__ = ["CheckedLog", "CheckpointTaker", "append_of"]
