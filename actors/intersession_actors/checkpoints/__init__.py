"""Checkpoints of a running system: when they are due, how they are taken, and where they are published."""

from intersession_actors.checkpoints.checkpointer import Checkpointer
from intersession_actors.checkpoints.publishing import Publisher
from intersession_actors.checkpoints.still_waiting import unpublished
from intersession_actors.checkpoints.targets import Target, publishing_targets, signing_key

__all__ = ["Checkpointer", "Publisher", "Target", "publishing_targets", "signing_key", "unpublished"]
