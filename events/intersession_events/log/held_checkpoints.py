"""Finds the checkpoints in a log, to compare them with its events."""

from collections.abc import Sequence
from contextlib import suppress

from intersession_events.basics.errors import CorruptEvent, UnknownTopic
from intersession_events.facts import CheckpointTaken
from intersession_events.log.envelope import unseal
from intersession_events.log.sql import Query
from intersession_events.proofs.statement import STREAM, TAKEN
from intersession_events.proofs.walk import Taken

_FOUND = (
    "SELECT rowid, originator_version, state FROM stored_events WHERE originator_id=? AND topic=? "
    "ORDER BY originator_version"
)


def checkpoints_of(log_id: str, query: Query) -> Sequence[Taken]:
    """Return the checkpoints in a log, in their order. One whose row was changed is left out: its row says so itself."""
    found: list[Taken] = []
    for position, version, state in query(_FOUND, (STREAM, TAKEN)):
        with suppress(CorruptEvent, UnknownTopic, TypeError):
            recorded = unseal(
                log_id=log_id, position=position, stream=STREAM, version=version, topic=TAKEN, state=state
            )
            if isinstance(recorded.event, CheckpointTaken):
                found.append(Taken(recorded.event, position, version))
    return found
