"""Which events of a stream one append made: each causes the next and stands before it, at the same time."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

from intersession_events import facts
from intersession_events.log import Recorded

_BEGINS: Final = facts.ExchangeReleased | facts.HoldRequested | facts.HoldWithdrawn
"""What somebody outside says to a flow: each begins an append."""


def of_one_append(events: Sequence[Recorded], at: int) -> Sequence[Recorded]:
    """Return the first of the events of a stream from a place on, and those that may have been recorded with it."""
    found: list[Recorded] = []
    for item in islice(events, max(at, 0), None):
        if found and (
            isinstance(item.event, _BEGINS)
            or isinstance(found[-1].event, facts.RunCompleted)  # which ends its append
            or (isinstance(item.event, facts.RunStarted) and not _queues(found[-1].event, item.event))
            or (item.causation, item.time) != (found[-1].id, found[-1].time)
            or item.position != found[-1].position + 1
        ):
            break
        found.append(item)
    return found


def first_of_append(by_id: Mapping[str, Recorded], recorded: Recorded) -> Recorded:
    """Return the first event of the append that an event was recorded with, in its stream."""
    while (before := by_id.get(recorded.causation or "")) is not None and (
        (before.stream, before.position, before.time)
        == (recorded.stream, recorded.position - 1, recorded.time)
    ):
        recorded = before
    return recorded


def _queues(event: facts.Event, started: facts.RunStarted) -> bool:
    """Whether an event queues the run that a start is of: only that append can start it, else the start is one of its own."""
    return isinstance(event, facts.RunQueued) and event.run_id == started.run_id
