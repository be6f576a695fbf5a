"""Finds the checkpoints in a log, to compare them with its events."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress

from intersession_events.basics.errors import BadCheckpoint, CorruptEvent, UnknownTopic
from intersession_events.facts import CheckpointPublished, CheckpointTaken, decode
from intersession_events.log.envelope import unseal
from intersession_events.log.row_state import payload_in
from intersession_events.log.sql import Query
from intersession_events.proofs.notes import NoteSignature, signature_lines
from intersession_events.proofs.statement import PUBLISHED, STREAM, TAKEN
from intersession_events.proofs.walk import Taken

_FOUND = (
    "SELECT rowid, originator_version, state FROM stored_events WHERE originator_id=? AND topic=? "
    "ORDER BY originator_version"
)


_PUBLISHED = "SELECT state FROM stored_events WHERE originator_id=? AND topic=? AND rowid > ? ORDER BY originator_version"
_NEWEST = (
    "SELECT originator_version, state FROM stored_events WHERE originator_id=? AND topic=? AND originator_version < ? "
    "ORDER BY originator_version DESC LIMIT 100"
)
_BEYOND = 1 << 62


def checkpoint_with(query: Query, count: int) -> CheckpointTaken | None:
    """Return the last checkpoint with that count of events; None if there is none. It looks from the newest on."""
    before = _BEYOND
    while page := query(_NEWEST, (STREAM, TAKEN, before)):
        for before, state in page:  # noqa: B007 - where the next page begins
            event = decode(TAKEN, payload_in(state) or b"")
            if isinstance(event, CheckpointTaken) and event.count <= count:
                return event if event.count == count else None
    return None


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


def receipts_of(query: Query, *, after: int = 0) -> Sequence[CheckpointPublished]:
    """Return what witnesses and timestamp authorities answered behind a position, in the order of the log; unproven, as their rows say it."""
    found: list[CheckpointPublished] = []
    for (state,) in query(_PUBLISHED, (STREAM, PUBLISHED, after)):
        with suppress(CorruptEvent, UnknownTopic, TypeError):
            event = decode(PUBLISHED, payload_in(state) or b"")
            if isinstance(event, CheckpointPublished) and event.receipt is not None:
                found.append(event)
    return found


def cosignatures_of(query: Query) -> Mapping[int, Sequence[NoteSignature]]:
    """Return the cosignatures that a log has of its checkpoints, by their positions. Each proves itself, or does not."""
    return cosignatures_in(receipts_of(query))


def cosignatures_in(receipts: Sequence[CheckpointPublished]) -> Mapping[int, Sequence[NoteSignature]]:
    """Return the cosignatures among what was answered, by the positions of their checkpoints."""
    found: defaultdict[int, list[NoteSignature]] = defaultdict(list)
    for event in receipts:
        with suppress(BadCheckpoint):
            if event.to == "witness":
                found[event.position] += signature_lines(event.receipt or "")
    return found
