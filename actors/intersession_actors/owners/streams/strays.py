"""The error for an event in a stream of another kind: every fold of a stream raises it."""

from intersession_events.basics.errors import CorruptEvent
from intersession_events.log.recorded import Recorded


def foreign(recorded: Recorded) -> CorruptEvent:
    """Return the error for an event that no stream of this kind holds."""
    return CorruptEvent(
        f"{recorded.stream} holds {type(recorded.event).__name__} at version {recorded.version}, an event of another kind of stream"
    )
