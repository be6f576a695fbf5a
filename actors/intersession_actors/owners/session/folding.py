"""How a session's stream is folded, up to its head or to any version, and what a snapshot of it holds: where the session stands, and how far its transcript has come.

A snapshot never holds the transcript itself. `EarlierMessages` reads that from the log, from the nearest snapshot on.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Final, NamedTuple

import msgspec

from intersession_actors.owners.session.state import EMPTY, Session, evolve
from intersession_actors.rules.prompt.transcript import RunContext, TranscriptFold, TranscriptState
from intersession_actors.rules.prompt.window import Earlier, Window
from intersession_events.basics import ids
from intersession_events.basics.errors import CorruptEvent
from intersession_events.facts import Message
from intersession_events.log.log import ReadsEvents
from intersession_events.log.recorded import Recorded

SHAPE: Final = "session_state.3"
"""Another number whenever the same events lead to another state, or the state has other fields: a test says when."""


class SessionState(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a session's snapshot."""

    session: Session
    transcript: TranscriptState


class Awake(NamedTuple):
    """What a waking session's actor continues from."""

    session: Session
    transcript: TranscriptFold


class _OnlyTranscript(msgspec.Struct, frozen=True):
    transcript: TranscriptState


_ENCODE: Final = msgspec.json.Encoder(order="sorted").encode
_DECODE: Final = msgspec.json.Decoder(SessionState).decode
_DECODE_TRANSCRIPT: Final = msgspec.json.Decoder(_OnlyTranscript).decode


def session_in(data: bytes) -> Session:
    """Return a session's state from a snapshot's content.

    Raises:
        ValueError: it does not belong to a session.
    """
    return _DECODE(data).session


def begun_in(data: bytes, version: int) -> Awake:
    """Return a session with its transcript after a snapshot's content; without one from its beginning.

    Raises:
        ValueError: it does not belong to a session.
    """
    if not version:
        return Awake(EMPTY, TranscriptFold())
    kept = _DECODE(data)
    return Awake(kept.session, TranscriptFold(kept.transcript, version=version))


class SessionFolding:
    """Folds a session's stream; it keeps the last messages, `room` bytes of them. `earlier` reads the others."""

    topic = SHAPE

    def __init__(self, *, room: int, earlier: Earlier) -> None:
        self._transcript = partial(TranscriptFold, room=room, earlier=earlier)

    def begin(self) -> Awake:
        """Return a session without any events."""
        return Awake(EMPTY, self._transcript())

    def apply(self, state: Awake, recorded: Sequence[Recorded]) -> Awake:
        """Return the session after some more events."""
        session, transcript = state
        for item in recorded:
            session = evolve(session, item)
            transcript.apply(item)
        return Awake(session, transcript)

    def encode(self, state: Awake) -> bytes:
        """Return a snapshot's content."""
        return _ENCODE(SessionState(session=state.session, transcript=state.transcript.state()))

    def decode(self, data: bytes, version: int) -> Awake:
        """Read a snapshot's content.

        Raises:
            ValueError: it does not belong to a session.
        """
        kept = _DECODE(data)
        return Awake(kept.session, self._transcript(kept.transcript, version=version))


class TranscriptFolding:
    """Folds the transcript alone, from the session's snapshots; it stores none."""

    topic = SHAPE

    def begin(self) -> "Collected":
        """Return the transcript of a session without any events."""
        return Collected(TranscriptFold(), [])

    def apply(self, state: "Collected", recorded: Sequence[Recorded]) -> "Collected":
        """Return the transcript after some more events, and the window of each ended session id."""
        transcript, ended = state
        for item in recorded:
            window = transcript.window
            transcript.apply(item)
            if transcript.window is not window:
                ended.append(window)
        return state

    def encode(self, state: "Collected") -> None:  # noqa: ARG002 - the protocol's
        """Return None: no snapshot is stored."""
        return

    def decode(self, data: bytes, version: int) -> "Collected":
        """Return the transcript of a snapshot.

        Raises:
            ValueError: it does not belong to a session.
        """
        return Collected(TranscriptFold(_DECODE_TRANSCRIPT(data).transcript, version=version), [])


class Collected(NamedTuple):
    """A folded transcript, and the windows of session ids that ended on the way."""

    transcript: TranscriptFold
    ended: list[Window]


def messages_of(
    parts: Iterable[Collected], stream: str, began: int, start: int, stop: int
) -> Iterator[tuple[Message, int]]:
    """Yield the messages with `start <= number < stop` of the session id that `began` at a version, and the size of each as JSON.

    `parts` are what a stream's transcript comes to, again and again on the way; it is emptied each time.

    Raises:
        CorruptEvent: the log does not have them.
    """
    for transcript, ended in parts:
        for window in (*ended, transcript.window):
            first, messages, sizes = window.take_out()
            if window.began == began:
                for number, message, size in zip(count(first), messages, sizes, strict=False):
                    if start <= number < stop:
                        yield message, size
                    if number + 1 >= stop:
                        return
        ended.clear()
    raise CorruptEvent(f"{stream!r}: the log has no message {stop} of this session id any more")


class EarlierMessages:
    """Reads earlier messages of one session id's transcript, in one stream."""

    def __init__(self, log: ReadsEvents, stream: str, began: int) -> None:
        self._log = log
        self._stream = stream
        self.began = began
        self._folding = TranscriptFolding()
        self._counts: dict[int, int | None] = {}

    def read(self, start: int, stop: int) -> Iterator[tuple[Message, int]]:
        """Yield the messages with `start <= number < stop`, and the size of each as JSON.

        Raises:
            CorruptEvent: the log does not have them, or not as they were.
        """
        walked = self._log.states.walk(self._stream, self._folding, since=self._base(start))
        yield from messages_of((folded.state for folded in walked), self._stream, self.began, start, stop)

    def _base(self, number: int) -> int:
        """Return the version of the last snapshot before a message; 0 if there is none."""
        versions = self._log.states.versions(self._stream, SHAPE)
        at = bisect_left(versions, True, key=lambda version: self._is_behind(version, number))
        return versions[at - 1] if at else 0

    def _is_behind(self, version: int, number: int) -> bool:
        if version < self.began:
            return False
        if version not in self._counts:
            window = self._log.states.fold(self._stream, self._folding, to=version).state.transcript.window
            self._counts[version] = window.end if window.began == self.began else None
        counted = self._counts[version]
        return counted is None or counted > number


_ROOM: Final = 1024 * 1024
"""How much of the messages is kept while the stream is folded, in bytes of JSON; the others are read when they are looked at."""


def past_context(log: ReadsEvents, key: str, run_id: str, version: int) -> RunContext | None:
    """Return a run's context as of a version of its session's stream; None if no such run waits there.

    Raises:
        CorruptEvent: an event that was read was changed, or is missing.
    """
    transcript = session_at(log, ids.session_stream(key), version).transcript
    return transcript.context(run_id) if transcript.has(run_id) else None


def session_at(log: ReadsEvents, stream: str, version: int | None) -> Awake:
    """Return a session as of a version of its stream (None: now).

    Raises:
        CorruptEvent: an event that was read was changed, or is missing.
    """

    def earlier(window: Window, start: int, stop: int) -> Iterator[Message]:
        return (message for message, _ in EarlierMessages(log, stream, window.began).read(start, stop))

    return log.states.fold(stream, SessionFolding(room=_ROOM, earlier=earlier), to=version).state
