"""The time between the cut of a fork and its birth, in which nothing happened: limits of what had begun before don't count it."""

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
    """Return the pauses of a log: one for each fork that it comes of; none for a log that is no fork.

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
    """Return what says, of a time (ms) at which something began, when it would have begun without the pauses since then."""

    def begun(time_ms: int) -> int:
        return time_ms + sum(pause.born_ms - pause.cut_ms for pause in pauses if time_ms < pause.born_ms)

    return begun
