"""What was recorded, as far as a replay has come: all that it reads of a log it reads here."""

from intersession_actors.replaying.recording.recording import (
    MANAGED,
    Place,
    Recording,
    clock_of,
    derived_id,
    erased_by,
)

__all__ = ["MANAGED", "Place", "Recording", "clock_of", "derived_id", "erased_by"]
