"""A fact before and after it was recorded: what an actor hands to the log, and what the log gives back."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from intersession_events.facts import Deciding, Event, Frame, Words, parts_of, topic_of, words_of
from intersession_events.log.sql import Question, Row

ANY_VERSION: Final = -1
"""An expected version that always fits: for streams whose events don't depend on each other.

An event that is told again is known by its id among the last ones; with an expected version it is known for ever.
"""


class Draft(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An event on its way into the log. `id` is derived (`ids.py`), `time` is in milliseconds.

    The log records the latest time that it has seen, if `time` is earlier: its times never fall. An event that happened
    elsewhere and is imported keeps its own (`is_dated`).

    `decision` says what the decision that led to the append was asked and what it knew, as canonical JSON; empty for none. It
    stands at the first event of what an owner appends to its own stream. It never holds words of people or agents, for no
    erasure reaches it.

    `payload` is the event as it was encoded for its id, so that it is not encoded again; empty where it was not.
    """

    event: Event
    id: str
    time: int
    causation: str | None = None
    correlation: str | None = None
    decision: str = ""
    is_dated: bool = False
    payload: bytes = b""


class StreamPart(NamedTuple):
    """The events of a stream with `after < version <= to`."""

    stream: str
    after: int
    to: int


class StreamAppend(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Events for one stream, to follow directly on version `expected` (0: a new stream)."""

    stream: str
    expected: int
    drafts: tuple[Draft, ...]


class Recorded(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An event as the log has it.

    `position` is its place in the whole log, `version` its place in its stream (from 1). `hash` covers
    everything but the position, through `prev` also everything before it in the stream. Hashes are lower-case hex. `decision`
    is the decision record of its draft.
    """

    position: int
    stream: str
    version: int
    topic: str
    event: Event
    id: str
    time: int
    causation: str | None
    correlation: str | None
    epoch: int
    prev: str
    digest: str
    hash: str
    decision: str = ""

    @property
    def kind(self) -> str:
        """The name of the event, without the version of its shape."""
        return self.topic.rpartition(".")[0]

    def parts(self) -> Sequence["Recorded"]:
        """Return the first event and those that follow in it, as if each had been recorded by itself, at this place and with this id."""
        if not isinstance(self.event, Deciding) or self.event.then is None:
            return (self,)
        return [
            msgspec.structs.replace(self, event=part, topic=topic_of(part)) for part in parts_of(self.event)
        ]

    def in_words(self) -> Words:
        """Return the event in words, as far as its stream and it itself tell."""
        kind, _, name = self.stream.partition(":")
        return words_of(self.event, Frame(key=name if kind == "session" else None))

    @property
    def originator_id(self) -> str:
        """The stream, as the eventsourcing library calls it."""
        return self.stream

    @property
    def originator_version(self) -> int:
        """The version, as the eventsourcing library calls it."""
        return self.version


def parts_in(events: Iterable[Recorded]) -> Iterator[Recorded]:
    """Yield events, each followed by the events in its `then`."""
    for recorded in events:
        yield from recorded.parts()


class StreamEnd(NamedTuple):
    """Events of a stream up to a limit, with `after < version <= to`: the first ones, or backwards the last ones."""

    stream: str
    after: int
    to: int | None
    backwards: bool
    limit: int


class Reads(NamedTuple):
    """What to read of a log in one round trip."""

    questions: Sequence[Question] = ()
    positions: Collection[int] = ()
    parts: Sequence[StreamPart] = ()
    streams: Sequence[str] = ()
    ends: Sequence[StreamEnd] = ()


class Gathered(NamedTuple):
    """What was read: rows for each question, events at the positions, events of each stream or part."""

    rows: Sequence[list[Row]] = ()
    events: Sequence[Recorded] = ()
    parts: Sequence[Sequence[Recorded]] = ()
    streams: Sequence[Sequence[Recorded]] = ()
    ends: Sequence[Sequence[Recorded]] = ()


class Committed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The append is durable. `again` is True if the same events (by id) had been recorded before."""

    recorded: tuple[Recorded, ...]
    again: bool = False

    @property
    def position(self) -> int:
        """The position of the last event."""
        return self.recorded[-1].position if self.recorded else 0


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """A stream was not at the expected version; nothing was recorded."""

    stream: str
    expected: int
    actual: int


class Unavailable(msgspec.Struct, frozen=True, kw_only=True):
    """The store could not take the append; nothing was recorded, as far as is known."""

    error: Exception


class SetAside(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a view could not take in, and why. The log has the event unchanged."""

    view: str
    position: int
    stream: str
    version: int
    topic: str
    reason: str


Outcome = Committed | Conflict | Unavailable
OnOutcome = Callable[[Outcome], None]
