"""The time between the cut of a fork and its creation, in which nothing happened: limits of earlier work don't count it."""

from collections.abc import Callable
from typing import NamedTuple

from intersession_events.facts import ForkedFrom
from intersession_events.log.log import Log
from intersession_projections.basics.spans import Span, backwards


class Pause(NamedTuple):
    """From the last event before a cut to the event that the fork begins with, in ms."""

    cut_ms: int
    born_ms: int


def pauses_in(log: Log) -> tuple[Pause, ...]:
    """Return the pauses of a log: one for each fork in its lineage; none for a log that is not a fork.

    Raises:
        CorruptEvent: an event that is needed was changed.
        StoreUnavailable: the log can't be read.
    """
    if log.forked is None:
        return ()
    found: list[Pause] = []
    for recorded in log.stream("log"):
        if isinstance(recorded.event, ForkedFrom):
            last = next(backwards(log, Span(to=recorded.position - 1)), recorded)
            found.append(Pause(last.time, recorded.time))
    return tuple(found)


def without_pauses(pauses: tuple[Pause, ...]) -> Callable[[int], int]:
    """Return a function that moves a start time (ms) forward by the pauses since then."""

    def begun(time_ms: int) -> int:
        return time_ms + sum(pause.born_ms - pause.cut_ms for pause in pauses if time_ms < pause.born_ms)

    return begun
