"""The sessions whose calls a worker has, folded from their streams as the log's writer folds them (WORK-11).

The last ones stay in memory, so that for the next call of a session only its new events are read.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from intersession_actors.owners.session.folding import (
    Awake,
    Collected,
    SessionFolding,
    TranscriptFolding,
    messages_of,
)
from intersession_actors.owners.session.state import Running
from intersession_actors.rules.prompt.transcript import RunContext, hash_as_recorded
from intersession_actors.rules.prompt.window import Window
from intersession_events.basics.errors import CorruptEvent
from intersession_events.facts import Message, RunStarted, SessionOpened
from intersession_events.log.recorded import Recorded
from intersession_events.log.work_queue import Offer

MOST_OF_ONE: Final = 1024 * 1024
"""How much of the messages of one transcript is kept at hand, in bytes of JSON, as in the writer."""

MOST_BYTES: Final = 64 * 1024 * 1024
MOST_SESSIONS: Final = 1024
"""How many sessions are kept, and how many bytes of their messages. The one that was used least recently goes first."""

Events = Callable[[Offer, int], Sequence[Recorded]]
"""Reads events of the stream of a call that the worker has, behind a version (`TakesWork.events`)."""


class _OtherContext(CorruptEvent):
    """What the worker makes of the log is not what its writer has recorded: another version made it, or the log was changed."""


class Attempt(NamedTuple):
    """An attempt as it began: where it stands, what its agent is given, and how its session was opened."""

    running: Running
    context: RunContext
    started: RunStarted
    opened: SessionOpened | None


class _Session:
    """One session, as of a version of its stream. `offer` is the call for which it was last read."""

    def __init__(self, events: Events, offer: Offer) -> None:
        self.lock = threading.Lock()
        self.version = 0
        self.offer = offer
        self._events = events
        self._folding = SessionFolding(room=MOST_OF_ONE, earlier=self._earlier)
        self._awake: Awake = self._folding.begin()

    @property
    def size(self) -> int:
        return self._awake.transcript.window.size

    def attempt(self, offer: Offer) -> Attempt:
        """Read on up to the start of an attempt."""
        self.offer = offer
        for part in self._parts(offer, self.version):
            is_there = part[-1].version == offer.version
            self._awake = self._folding.apply(self._awake, part[:-1] if is_there else part)
            if is_there:
                return self._started(offer, part[-1])
        raise CorruptEvent(f"{offer.stream!r}: the log has no event {offer.version}")

    def _started(self, offer: Offer, last: Recorded) -> Attempt:
        started = last.event
        if not isinstance(started, RunStarted) or (started.run_id, started.attempt) != (
            offer.id,
            offer.attempt,
        ):
            raise CorruptEvent(f"{offer.stream!r}: its event {offer.version} did not begin the call")
        context = self._awake.transcript.context(started.run_id)
        if hash_as_recorded(context, started) != started.context_hash or (
            offer.context_hash and offer.context_hash != started.context_hash
        ):
            raise _OtherContext(
                f"the context of run {offer.id} (attempt {offer.attempt}) is another one here than its writer recorded"
            )
        self._awake = self._folding.apply(self._awake, [last])
        self.version = last.version
        running = self._awake.session.running
        if running is None:
            raise CorruptEvent(f"{offer.stream!r}: nothing runs behind its event {offer.version}")
        return Attempt(running, context, started, self._awake.session.opened)

    def _parts(self, offer: Offer, after: int) -> Iterator[Sequence[Recorded]]:
        """Yield the events of a call's stream behind a version, in parts."""
        while after < offer.version and (part := self._events(offer, after)):
            yield part
            after = part[-1].version

    def _earlier(self, window: Window, start: int, stop: int) -> Iterator[Message]:
        """Yield messages that are not at hand: the stream is read again."""
        folding, offer = TranscriptFolding(), self.offer

        def collected() -> Iterator[Collected]:
            state = folding.begin()
            for part in self._parts(offer, 0):
                state = folding.apply(state, part)
                yield state

        for message, _ in messages_of(collected(), offer.stream, window.began, start, stop):
            yield message


class Sessions:
    """The sessions that a worker keeps. Its methods may be called from any thread."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _Session] = OrderedDict()

    def attempt(self, offer: Offer) -> Attempt:
        """Return the attempt that an offer is for, as its writer began it.

        Raises:
            CorruptEvent: an event is missing, or is not what it was; or what is made of the log here is not what was recorded.
            StoreUnavailable: the events can't be read now.
        """
        for kept in (self._of(offer), _Session(self._events, offer)):
            is_new = not kept.version
            try:
                with kept.lock:
                    if kept.version < offer.version:
                        attempt = kept.attempt(offer)
                        self._keep(offer.stream, kept)
                        return attempt
            except _OtherContext:
                if is_new:  # else words may have been erased since they were read
                    raise
            finally:
                # What was folded in part is not used again.
                if kept.version != offer.version:
                    self._drop(offer.stream)
        raise CorruptEvent(f"{offer.stream!r}: its call is older than what is known of it")

    def _of(self, offer: Offer) -> _Session:
        with self._lock:
            return self._kept.get(offer.stream) or _Session(self._events, offer)

    def _keep(self, stream: str, kept: _Session) -> None:
        with self._lock:
            self._kept[stream] = kept
            self._kept.move_to_end(stream)
            size = sum(one.size for one in self._kept.values())
            while len(self._kept) > 1 and (size > MOST_BYTES or len(self._kept) > MOST_SESSIONS):
                size -= self._kept.popitem(last=False)[1].size

    def _drop(self, stream: str) -> None:
        with self._lock:
            self._kept.pop(stream, None)
