"""Checkpoints of a running system: when they are due, how they are taken, and where they are published."""
