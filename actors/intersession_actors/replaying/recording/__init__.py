"""What was recorded, as far as a replay has come: all that it reads of a log it reads here."""

from intersession_actors.replaying.recording.recording import MANAGED, Recording, clock_of

__all__ = ["MANAGED", "Recording", "clock_of"]
