"""Sealed replay: what was recorded, executed again by today's rules and actors with nothing but the recorded inputs (SEAL)."""

from intersession_actors.replaying.difference import Difference, Field
from intersession_actors.replaying.replayed import Recordings, Replayed, replay_all, replay_file, replay_run

__all__ = [
    "Difference",
    "Field",
    "Recordings",
    "Replayed",
    "replay_all",
    "replay_file",
    "replay_run",
]
