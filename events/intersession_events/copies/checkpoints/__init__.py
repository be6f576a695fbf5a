"""Checkpoints of a log: taken beside its writer, and proofs made of them."""
