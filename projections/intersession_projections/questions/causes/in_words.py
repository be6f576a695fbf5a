"""Tells an event for `why`: who did what to whom, in which words; names that stand in other events are looked up."""

from collections.abc import Iterable
from typing import Final

import msgspec

from intersession_events import facts
from intersession_events.facts import Frame
from intersession_events.facts.message_words import writer_of
from intersession_events.facts.parts import words_of
from intersession_events.facts.words import Kind, Words
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded, StreamPart
from intersession_projections.basics.speakers import as_read, speaker
from intersession_projections.views.run_outcomes.replies import told_in

_SESSION: Final = "session"
_DELIVERY: Final = "delivery"
_FLOWS: Final = frozenset({"exchange", "spawn", _DELIVERY})


class EventInWords(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An event in words. `time_ms` is when it was recorded; `topic` is its stored name.

    `who` acts and `to` is acted on: session keys, routes, people; None where there is nobody. `text` is what was said, or
    what happened in brief: raw text of anybody's making. `how` is for people: a sentence, or a verb after `who`; it is
    empty where a story leaves the event out, because another one says the same. `way` is how it is to be told.
    """

    position: int
    event_id: str
    time_ms: int
    stream: str
    topic: str
    way: Kind
    who: str | None
    to: str | None
    text: str
    how: str


class Telling:
    """Tells events. What the first event of a flow says of it is read once."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._begun: dict[str, facts.Event | None] = {}

    def at(self, position: int) -> Recorded | None:
        """Return the event at a position; None if there is none."""
        return next(iter(self._log.all(after=position - 1, to=position)), None)

    def describe(self, recorded: Recorded) -> EventInWords:
        """Return an event in words."""
        return self.told_each([recorded])[0]

    def told_each(self, events: Iterable[Recorded]) -> list[EventInWords]:
        """Return some events in words."""
        each = told_in(self._log, events)
        self._begin(recorded.stream for recorded in each)
        return [self._told(recorded) for recorded in each]

    def _told(self, recorded: Recorded) -> EventInWords:
        words = self._words(recorded)
        return EventInWords(
            position=recorded.position,
            event_id=recorded.id,
            time_ms=recorded.time,
            stream=recorded.stream,
            topic=recorded.topic,
            way=words.kind,
            who=words.who,
            to=words.to,
            text=words.text if words.kind == "said" and words.text is not None else words.brief,
            how=words.how,
        )

    def _words(self, recorded: Recorded) -> Words:
        kind, _, name = recorded.stream.partition(":")
        event = recorded.event
        if kind == _SESSION:
            words = _of_session(words_of(event, Frame(key=name)), event)
            return words if event.begins is None or event.doer is None else words._replace(who=event.doer)
        first = self._begun.get(recorded.stream)
        frame = Frame() if first is None else first.frame()
        words = words_of(event, frame)
        return words._replace(to=frame.place) if words.to is None and kind == _DELIVERY else words

    def _begin(self, streams: Iterable[str]) -> None:
        """Read the first events of streams of flows, as far as they are not known."""
        flows = (one for one in dict.fromkeys(streams) if one.partition(":")[0] in _FLOWS)
        new = [one for one in flows if one not in self._begun]
        firsts = self._log.parts([StreamPart(stream, 0, 1) for stream in new]) if new else ()
        for stream, first in zip(new, firsts, strict=True):
            self._begun[stream] = first[0].event if first else None


def _of_session(words: Words, event: facts.Event) -> Words:
    """Name whoever speaks: a message says that itself. Its text is told by the event that it came with, if one does."""
    if isinstance(event, facts.RunCompleted):
        return words._replace(kind="said", text=words.brief, how="answers")
    message = as_read(event)
    if message is None:
        return words
    is_heard = message.role in {"user", "system"}
    said = words._replace(kind="said", text=facts.text_of(message) if is_heard else words.brief)
    if is_heard:
        return said._replace(who=speaker(message), how="says")
    writer = writer_of(message)
    return said if writer is None else said._replace(how=f"says, in the words of {writer}")
