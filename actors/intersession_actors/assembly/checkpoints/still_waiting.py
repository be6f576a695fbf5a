"""Reads from the log which checkpoints a target has not got yet."""

from collections.abc import Sequence
from typing import Final

from intersession_actors.assembly.checkpoints.rules import published_up_to
from intersession_events.facts import CheckpointPublished, CheckpointTaken
from intersession_events.log.log import Log
from intersession_events.proofs.statement import PUBLISHED, STREAM, TAKEN, Checkpoint, checkpoint_of

MOST_WAITING: Final = 1_000
"""So many checkpoints wait for one target; older ones are left out, for each covers all before it."""

_RECENT: Final = 100
"""So many publications are looked at: a target that is none of them is new."""

_VERSIONS: Final = (
    "SELECT originator_version FROM stored_events WHERE originator_id=? AND topic=? "
    "ORDER BY originator_version DESC LIMIT ?"
)


def unpublished(log: Log, target: str) -> Sequence[Checkpoint]:
    """Return the checkpoints behind the last one that a target got, newest first; the last one alone if it never got one.

    Raises:
        LogError: the log can't be read.
    """
    published = [
        event for event in _newest(log, PUBLISHED, _RECENT) if isinstance(event, CheckpointPublished)
    ]
    position = published_up_to(target, published)
    found: list[Checkpoint] = []
    for event in _newest(log, TAKEN, 1 if position is None else MOST_WAITING):
        if not isinstance(event, CheckpointTaken) or (position is not None and event.position <= position):
            break
        found.append(checkpoint_of(log.log_id, event))
    return found


def _newest(log: Log, topic: str, most: int) -> Sequence[object]:
    versions = log.query(_VERSIONS, (STREAM, topic, most))
    return [log.stream(STREAM, after=version - 1, to=version)[0].event for (version,) in versions]
