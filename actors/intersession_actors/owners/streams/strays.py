"""An event that stands in a stream of another kind: whoever folds a stream says so."""

from intersession_events.basics.errors import CorruptEvent
from intersession_events.log.recorded import Recorded


def foreign(recorded: Recorded) -> CorruptEvent:
    """Return the error of an event that no stream of its kind holds."""
    return CorruptEvent(
        f"{recorded.stream} holds {type(recorded.event).__name__} at version {recorded.version}, an event of another kind of stream"
    )
