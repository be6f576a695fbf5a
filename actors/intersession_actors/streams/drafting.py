"""Turns decided events into drafts for the log: their derived ids, their time, their causes."""

from collections.abc import Sequence

from intersession_events import ids
from intersession_events.facts import Event, encode, topic_of
from intersession_events.log import Draft, StreamAppend


def append_of(
    log_id: str,
    stream: str,
    expected: int,
    events: Sequence[Event],
    *,
    time: int,
    causation: str | None,
    correlation: str | None,
) -> StreamAppend:
    """Return the append of `events` right behind version `expected` of a stream.

    Each event's id is derived from its place and its content, so that a step that is decided again after a
    crash is recognised. The first event has the given cause, each further one the event before it.
    """
    drafts: list[Draft] = []
    for offset, event in enumerate(events, start=1):
        draft = Draft(
            event=event,
            id=ids.event_id(log_id, stream, expected + offset, topic_of(event), encode(event)),
            time=time,
            causation=drafts[-1].id if drafts else causation,
            correlation=correlation,
        )
        drafts.append(draft)
    return StreamAppend(stream=stream, expected=expected, drafts=tuple(drafts))
