"""The messages of a session in the order in which its agent took them, read backwards (HIST-3). Pure.

A message that waits for its run stands in the log where it arrived, in the middle of another run's talk. The agent
takes it when its run starts, so it is shown there; until then it stands at the end. `TranscriptFold` gives agents the
same order, forwards.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from intersession_events.facts import (
    MessageRecorded,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunQueued,
    RunStarted,
)
from intersession_events.log import Recorded


class Taken(NamedTuple):
    """A message of a session, and the run that it belongs to: the one that answers it or that said it."""

    event: MessageRecorded
    run_id: str | None


class _Place:
    """A place in the order; a run's message is found further back than where it is shown."""

    def __init__(self, taken: Taken | None = None) -> None:
        self.taken = taken


def taken_backwards(backwards: Iterable[Recorded], waiting: int) -> Iterator[Taken]:
    """Yield the messages among events of one session's stream, the last that was taken first.

    `backwards` are the events of one generation, the newest first; `waiting` is how many runs wait after the newest of
    them, as the session's row counts them.
    """
    events = iter(backwards)
    newest = list(_until_found(events, waiting))
    order = _Order(_waiting_runs(newest, waiting))
    for recorded in chain(newest, events):
        order.take(recorded)
        yield from order.ready()
    yield from order.rest()


class _Order:
    def __init__(self, waiting: Iterable[str]) -> None:
        self._of_run = {run_id: _Place() for run_id in waiting}
        self._places = deque(self._of_run.values())
        self._answered_by: dict[str, str] = {}

    def take(self, recorded: Recorded) -> None:
        event = recorded.event
        match event:
            case RunStarted(attempt=1) | RunAborted(attempt=0) | RunFailed(attempt=0):
                # A run that ended in the queue has its message where it was given up, unless it had started before.
                given_up = self._of_run.pop(event.run_id, None)
                if given_up is not None:
                    self._places.remove(given_up)
                self._of_run[event.run_id] = _Place()
                self._places.append(self._of_run[event.run_id])
            case RunQueued():
                self._answered_by[event.message_id] = event.run_id
            case MessageRecorded(message=message):
                run_id = self._answered_by.pop(message.id, None)
                place = None if run_id is None else self._of_run.pop(run_id, None)
                taken = Taken(event, run_id or message.run_id)
                if place is None:
                    self._places.append(_Place(taken))
                else:
                    place.taken = taken
            case _:
                pass

    def ready(self) -> Iterator[Taken]:
        """Yield what nothing that is still to be found can come before."""
        while self._places and (taken := self._places[0].taken) is not None:
            self._places.popleft()
            yield taken

    def rest(self) -> Iterator[Taken]:
        """Yield the rest, without the places of messages that were never found."""
        for place in self._places:
            if place.taken is not None:
                yield place.taken


def _until_found(events: Iterator[Recorded], waiting: int) -> Iterator[Recorded]:
    """Yield the newest events, as far back as the first of the runs that wait was queued."""
    known: set[str] = set()
    while waiting > 0 and (recorded := next(events, None)) is not None:
        yield recorded
        waiting -= _waits(recorded, known)


def _waiting_runs(newest: Iterable[Recorded], waiting: int) -> Iterator[str]:
    """Yield the runs that wait for their first start, the last that was queued first."""
    known: set[str] = set()
    for recorded in newest if waiting else ():
        if _waits(recorded, known) and isinstance(recorded.event, RunQueued):
            yield recorded.event.run_id


def _waits(recorded: Recorded, known: set[str]) -> bool:
    """Whether an event, read backwards, says of a run not `known` yet that it waits: queued, or cut off and put back."""
    event = recorded.event
    if not isinstance(event, RunQueued | RunInterrupted | RunStarted | RunCompleted | RunFailed | RunAborted):
        return False
    last = event.run_id not in known
    known.add(event.run_id)
    return last and isinstance(event, RunQueued | RunInterrupted)
