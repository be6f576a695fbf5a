"""When a checkpoint is due, what it may cost a process that stops, and when publishing is tried again."""

from collections.abc import Sequence
from typing import Final

from intersession_actors.rules.config.host import Checkpoints
from intersession_actors.rules.config.settings import milliseconds
from intersession_events.facts import CheckpointPublished
from intersession_events.proofs.statement import Checkpoint

SHORT: Final = 20_000
"""So many events, or streams, are read for a checkpoint by a process that is about to stop: some tenths of a second."""

_FIRST_PAUSE_MS: Final = 1_000
_LONGEST_PAUSE_MS: Final = 300_000


def is_due(settings: Checkpoints, fresh: int) -> bool:
    """Whether the number of new events makes a checkpoint due at once."""
    return 0 < settings.every_events <= fresh


def wait_ms(settings: Checkpoints) -> int | None:
    """Return how long something new may wait for its checkpoint; None: as long as it likes."""
    return milliseconds(settings.every_seconds) or None


def is_short(position: int, head: int) -> bool:
    """Whether what lies between two positions can be read by a process that is about to stop."""
    return head - position <= SHORT


def heads_are_few(last: Checkpoint | None, position: int) -> bool:
    """Whether the heads of all streams can be read by such a process: no more streams than the last checkpoint had, and new events."""
    known, since = (0, 0) if last is None else (last.streams, last.position)
    return known is not None and known + position - since <= SHORT


def pause_ms(failures: int) -> int:
    """Return how long to wait before what failed several times in a row is tried again: from a second to five minutes."""
    return int(min(_FIRST_PAUSE_MS * 2 ** min(failures - 1, 20), _LONGEST_PAUSE_MS))


def published_up_to(target: str, published: Sequence[CheckpointPublished]) -> int | None:
    """Return the position up to which a target has all checkpoints, by events in any order; None if it never had one."""
    return max((event.position for event in published if event.target == target), default=None)
