"""The stored names and versions of all facts, and their classes. A topic that is not here is a typed error.

A topic is `<name>.<version>`, frozen for ever and independent of where the class lives.
"""

from collections.abc import Mapping
from typing import Final, get_args

import msgspec

from intersession_events.basics.errors import CorruptEvent, UnknownTopic, UnknownWord
from intersession_events.facts import access, delivery, exchange, log, run, schedule, session, spawn

__all__ = ["EVENT_KINDS", "SAYING", "TOPICS", "Event", "decode", "encode", "topic_of", "topics_of"]

Event = (
    session.SessionEvent
    | run.RunEvent
    | exchange.ExchangeEvent
    | spawn.SpawnEvent
    | delivery.DeliveryEvent
    | access.AccessEvent
    | schedule.ScheduleEvent
    | log.SystemEvent
)

TOPICS: Final[Mapping[str, type[Event]]] = {kind.topic: kind for kind in get_args(Event)}
EVENT_KINDS: Final = frozenset(topic.rpartition(".")[0] for topic in TOPICS)
"""The names of all events, without the versions of their shapes."""
_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_DECODERS: Final[Mapping[str, "msgspec.json.Decoder[Event]"]] = {
    topic: msgspec.json.Decoder(cls) for topic, cls in TOPICS.items()
}


SAYING: Final = frozenset(kind.topic for kind in get_args(run.Saying))
"""The stored names of the events that can bring a message into a transcript."""


def topic_of(event: Event) -> str:
    """Return the stored name of an event."""
    return event.topic


def topics_of(*kinds: type[Event]) -> frozenset[str]:
    """Return the stored names that kinds of events have."""
    return frozenset(kind.topic for kind in kinds)


def encode(event: Event) -> bytes:
    """Return the canonical JSON (RFC 8785) of an event."""
    return _ENCODER.encode(event)


def decode(topic: str, payload: bytes) -> Event:
    """Return the event stored under a topic.

    Raises:
        UnknownTopic: the topic is not in the registry. Nothing is imported.
        UnknownWord: the payload holds a word that this version does not know where only some can stand.
        CorruptEvent: the payload is not of the topic's shape.
    """
    decoder = _DECODERS.get(topic)
    if decoder is None:
        raise UnknownTopic(topic)
    try:
        return decoder.decode(payload)
    except msgspec.ValidationError as error:
        if str(error).startswith(_NEW_WORDS):
            raise UnknownWord(topic, str(error)) from error
        raise CorruptEvent(f"topic {topic}: the payload is not of its shape: {error}") from error
    except (ValueError, RecursionError) as error:
        raise CorruptEvent(f"topic {topic}: the payload is not of its shape: {error}") from error


_NEW_WORDS: Final = ("Invalid enum value", "Invalid value")
"""The beginnings of msgspec errors for a word outside of a `Literal`, or a tag outside of a union."""
