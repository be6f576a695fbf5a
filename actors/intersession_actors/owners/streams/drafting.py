"""Turns decided events into appends: their derived ids, their time, their causes. Used for every append."""

from collections.abc import Sequence

import msgspec

from intersession_events.basics import ids
from intersession_events.basics.errors import NotStorable
from intersession_events.facts import Budget, DeliveryDecided, Event, encode, topic_of
from intersession_events.log.recorded import Draft, Recorded, StreamAppend


def append_of(
    log_id: str,
    stream: str,
    expected: int,
    events: Sequence[Event],
    *,
    time: int,
    causation: str | None,
    correlation: str | None,
    decision: str = "",
) -> StreamAppend:
    """Return the append of `events` right behind version `expected` of a stream.

    Each event's id is derived from its place: the log tells by the payload whether a step that is decided again after a
    crash is the same. The first event has the given cause and the record of the decision, each further one the event
    before it for its cause.

    Raises:
        NotStorable: an event holds what no store takes, such as a lone surrogate or a number beyond 64 bits.
    """
    drafts: list[Draft] = []
    for offset, event in enumerate(events, start=1):
        topic = topic_of(event)
        try:
            payload = encode(event)
            event_id = ids.event_id(log_id, stream, expected + offset, topic)
        except (ValueError, OverflowError, TypeError, RecursionError) as error:
            raise NotStorable(f"{topic}: it can't be encoded: {error}") from error
        draft = Draft(
            event=event,
            id=event_id,
            time=time,
            causation=drafts[-1].id if drafts else causation,
            correlation=correlation,
            decision="" if drafts else decision,
            payload=payload,
        )
        drafts.append(draft)
    return StreamAppend(stream=stream, expected=expected, drafts=tuple(drafts))


def recorded_as(append: StreamAppend) -> Sequence[Recorded]:
    """Return an append's events in the form that folds take, before the log has them: without positions and hashes."""
    return [
        Recorded(
            position=0,
            stream=append.stream,
            version=version,
            topic=topic_of(draft.event),
            event=draft.event,
            id=draft.id,
            time=draft.time,
            causation=draft.causation,
            correlation=draft.correlation,
            epoch=0,
            prev="",
            digest="",
            hash="",
            decision=draft.decision,
        )
        for version, draft in enumerate(append.drafts, start=append.expected + 1)
    ]


def caused_by(event_id: str, append: StreamAppend) -> StreamAppend:
    """Return an append whose first event has another event as its cause."""
    first, *rest = append.drafts
    drafts = (msgspec.structs.replace(first, causation=event_id), *rest)
    return msgspec.structs.replace(append, drafts=drafts)


def into_outbox(
    log_id: str, decided: DeliveryDecided, *, budget: Budget, time: int, causation: str | None
) -> StreamAppend:
    """Return the append that begins a delivery: it is part of the append that decides the text.

    `budget` is of the causal chain that the text is of: a channel may say it to another session (LOOP-5).

    Raises:
        NotStorable: the text or the address can't be encoded.
    """
    stream = ids.delivery_stream(decided.delivery_id)
    event = msgspec.structs.replace(decided, budget=budget)
    return append_of(log_id, stream, 0, (event,), time=time, causation=causation, correlation=budget.root)
