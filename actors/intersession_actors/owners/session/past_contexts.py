"""A session, and the context of a run, as of any version of its stream, folded from the nearest snapshot: for whoever looks back (LENS-1)."""

from collections.abc import Iterator
from typing import Final

from intersession_actors.owners.session.folding import Awake, EarlierMessages, SessionFolding
from intersession_actors.rules.prompt.transcript import RunContext
from intersession_actors.rules.prompt.window import Window
from intersession_events.basics import ids
from intersession_events.facts import Message
from intersession_events.log.log import ReadsEvents

_ROOM: Final = 1024 * 1024
"""How much of the messages is kept while the stream is folded, in bytes of JSON; the others are read when they are looked at."""


def past_context(log: ReadsEvents, key: str, run_id: str, version: int) -> RunContext | None:
    """Return the context of a run as of a version of its session's stream; None where the stream has no such run waiting.

    Raises:
        CorruptEvent: an event that was read was changed, or is missing.
    """
    transcript = session_at(log, ids.session_stream(key), version).transcript
    return transcript.context(run_id) if transcript.has(run_id) else None


def session_at(log: ReadsEvents, stream: str, version: int) -> Awake:
    """Return a session as of a version of its stream.

    Raises:
        CorruptEvent: an event that was read was changed, or is missing.
    """

    def earlier(window: Window, start: int, stop: int) -> Iterator[Message]:
        return (message for message, _ in EarlierMessages(log, stream, window.began).read(start, stop))

    return log.states.fold(stream, SessionFolding(room=_ROOM, earlier=earlier), to=version).state
