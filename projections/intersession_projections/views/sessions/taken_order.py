"""The messages of a session in the order in which its agent took them, backwards or forwards (HIST-3).

A message that waits for its run stands in the log where it arrived, in the middle of another run's talk. The agent
takes it when its run starts, so it is shown there; until then it stands at the end. `TranscriptFold` gives agents the
same order, forwards.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Final, NamedTuple

from msgspec.structs import replace

from intersession_events.basics.errors import CorruptEvent, UnknownTopic
from intersession_events.facts import (
    LineImported,
    Message,
    RunAborted,
    RunAttempt,
    RunFailed,
    RunInterrupted,
    RunQueued,
    RunStarted,
    generation_of,
    message_in,
)
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded

_FIRST_PAGE: Final = 16
_PAGE: Final = 256
_SHARE: Final = 4
"""Events read at a time: a few for the last messages of a session, more where somebody reads on; never many too many."""


class Taken(NamedTuple):
    """A message of a session, and its run: the one that answers it, or that wrote it.

    A line of an imported transcript that is no message has its place among them.
    """

    recorded: Recorded
    run_id: str | None


def with_run(message: Message, run_id: str | None) -> Message:
    """Return a message as part of a run."""
    return message if run_id == message.run_id else replace(message, run_id=run_id)


class _Place:
    """A place in the order; a run's message is found further back than where it is shown."""

    def __init__(self, taken: Taken | None = None) -> None:
        self.taken = taken


def taken_backwards(backwards: Iterable[Recorded], waiting: int) -> Iterator[Taken]:
    """Yield the messages and imported lines of one session's events, the one taken last first.

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
            case RunQueued(run_id=run_id):
                place = self._of_run.pop(run_id, None)
                if place is None:
                    self._places.append(_Place(Taken(recorded, run_id)))
                else:
                    place.taken = Taken(recorded, run_id)
            case LineImported():
                self._places.append(_Place(Taken(recorded, None)))
            case _:
                if (message := message_in(event)) is not None:
                    self._places.append(_Place(Taken(recorded, message.run_id)))

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
    if not isinstance(event, RunQueued | RunAttempt):
        return False
    last = event.run_id not in known
    known.add(event.run_id)
    return last and isinstance(event, RunQueued | RunInterrupted)


def taken_forwards(batch: Sequence[Recorded], log: Log) -> Iterator[Recorded]:
    """Yield the messages and imported lines of a batch of the log, in the order they were taken, with their positions.

    A message that begins to wait in this batch is left out; one whose run starts in it is read back from the log. It
    carries its run's id. A damaged row is as if it were not there.
    """
    for recorded in batch:
        event = recorded.event
        match event:
            case RunStarted(attempt=1) | RunAborted(attempt=0) | RunFailed(attempt=0):
                with suppress(CorruptEvent, UnknownTopic):
                    waited = _message_of(event.run_id, recorded, log)
                    if waited is not None:
                        yield waited
            case RunQueued():
                pass  # it waits
            case _:
                if generation_of(event) is not None:
                    yield recorded


def _message_of(run_id: str, taken: Recorded, log: Log) -> Recorded | None:
    """Return the message that a run answers, as of where it was taken; None where that was before, or it is not there."""
    for recorded in events_backwards(log, taken.stream, 1, taken.version - 1):
        match recorded.event:
            case RunStarted() as started if started.run_id == run_id:
                return None
            case RunQueued(message=Message() as message) as queued if queued.run_id == run_id:
                answered = replace(message, run_id=run_id)
                return replace(recorded, position=taken.position, event=replace(queued, message=answered))
            case _:
                pass
    return None


def events_backwards(
    log: Log,
    stream: str,
    first: int,
    to: int,
    *,
    left: Callable[[], int] | None = None,
    newest: Sequence[Recorded] = (),
) -> Iterator[Recorded]:
    """Yield events of a stream, the last first, in pages.

    `left` says how many are still wanted of what is found among them. The first page is the `newest` events, oldest first, as far as
    they were read already, else it has as many events as are wanted; each further one as many as should do, by what was found so far.

    Raises:
        CorruptEvent: one was changed; all behind it were yielded.
        UnknownTopic: one is of a newer version; the same.
    """
    wanted = 0 if left is None else left()
    size, read = wanted or _FIRST_PAGE, 0
    behind = 0
    """Whether the event behind a page is read again with it: one that is missing between two pages is noticed so."""
    while to >= first:
        after = newest[0].version - 1 if newest else max(first - 1, to - size)
        try:
            page = newest[::-1] or log.stream(stream, after=after, to=to + behind, backwards=True)
            newest = ()
        except (CorruptEvent, UnknownTopic):
            if to - after == 1:
                raise
            size = (to - after) // 2
            continue
        yield from page[behind:]
        behind = 1
        read += to - after
        still = 0 if left is None else left()
        more = read * still // (wanted - still) + 1 if still < wanted else read // _SHARE
        to, size = after, min(_PAGE, max(_FIRST_PAGE, more))
