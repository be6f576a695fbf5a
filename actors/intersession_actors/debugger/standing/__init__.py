"""What stood at a place of a log: sessions, runs, flows, what was open, what was in force. The verb `state` answers it (PLACE-3)."""

from intersession_actors.debugger.standing.answers import OpenAnswer, StateAnswer, open_in
from intersession_actors.debugger.standing.place import Standing

__all__ = ["OpenAnswer", "Standing", "StateAnswer", "open_in"]
