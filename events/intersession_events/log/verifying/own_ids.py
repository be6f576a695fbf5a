"""Derives the ids of events again from their places: an event that comes to stand elsewhere must get another id."""

from collections.abc import Iterator
from typing import Final

from intersession_events.basics.ids import CLOCK, derive, is_event_id
from intersession_events.facts import (
    CheckpointPublished,
    CheckpointTaken,
    Event,
    FlowAccepted,
    ImportReported,
    SessionOpened,
)
from intersession_events.log.row_state import Envelope
from intersession_events.log.sql import Row

_DECIDED: Final = ("session:", "exchange:", "spawn:", "delivery:", "inbound:", "schedule:", CLOCK)
"""Streams whose events have the ids of their places, but for what was imported."""
_DERIVED: Final = "5"
"""Which version of UUID an id is that follows from something."""


class OwnIds:
    """Checks one event after the other, those of a stream in their order."""

    def __init__(self) -> None:
        self._imported: set[str] = set()
        """Streams that say of themselves that they begin with what was imported."""
        self._of_imports = 0
        self._of_others = 0

    def problem(self, row: Row, envelope: Envelope, event: Event, *, log_id: str) -> str | None:
        """Say in words why an event, whose hash is right, can't have its id; None if it can."""
        _, stream, version, topic, _ = row
        if not stream.startswith(_DECIDED):
            wanted = _of_log(event, log_id)
            return None if wanted is None or envelope.id == wanted else _PROBLEM
        self.note(stream, event)
        if is_event_id(envelope.id, log_id, stream, version, topic, bytes(envelope.data)):
            return None
        if stream in self._imported:
            self._of_imports += 1
        elif envelope.id[14:15] != _DERIVED:
            self._of_others += 1
        else:
            return _PROBLEM
        return None

    def note(self, stream: str, event: Event | None) -> None:
        """Note whether a stream continues with imported events. An erased event tells that as well."""
        match event:
            case SessionOpened():
                is_imported = event.opened_by == "import"
            case FlowAccepted():
                is_imported = event.inferred
            case _:
                return
        if is_imported:
            self._imported.add(stream)
        else:
            self._imported.discard(stream)

    def unproven(self) -> Iterator[str]:
        """Yield what can't be checked, a sentence each."""
        if self._of_imports:
            yield (
                f"That {self._of_imports} events of imported sessions and flows have the ids that they were given: what these stand "
                "for is in the source of the import."
            )
        if self._of_others:
            yield f"That {self._of_others} events have the ids that they were given: these follow from nothing."


_PROBLEM: Final = (
    "its id does not follow from its place: it stood elsewhere, or was changed, and was hashed again"
)


def _of_log(event: Event, log_id: str) -> str | None:
    """Return the id of what a log says of itself; None where the id is drawn, or stands for more than the event says."""
    match event:
        case CheckpointTaken():
            return derive(log_id, "checkpoint", event.position)
        case CheckpointPublished(to="file" | "webhook" | "command", receipt=str()):
            return derive(log_id, "cosigned", event.target, event.position)
        case CheckpointPublished():
            return derive(log_id, "published", event.target, event.position)
        case ImportReported():
            return derive(log_id, "import", "report", event.import_id)
        case _:
            return None
