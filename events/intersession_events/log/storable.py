"""Checks that an event can be stored and read for ever, by any JSON reader; gives its topic and payload."""

from intersession_events.basics.errors import CorruptEvent, NotStorable, UnknownTopic
from intersession_events.facts import LARGEST, decode, encode, topic_of
from intersession_events.log.recorded import Draft


def payload_of(draft: Draft) -> tuple[str, bytes]:
    """Return the topic and payload of an event, checked to be readable for ever.

    Raises:
        NotStorable: it holds a lone surrogate, a number that is no integer below 2**53, or a value of a wrong type.
    """
    event = draft.event
    if type(draft.time) is not int or not -LARGEST <= draft.time <= LARGEST:
        raise NotStorable(f"{type(event).__name__}: its time {draft.time!r} is no integer below 2**53")
    try:
        topic = topic_of(event)
        payload = draft.payload or encode(event)
        # A value of a wrong type, or a number that is too large, is encoded without a word; and so may be another event's payload.
        same = decode(topic, payload) == event
    except KeyError:
        raise NotStorable(f"{type(event).__name__} is in no registry") from None
    except (ValueError, TypeError, RecursionError, CorruptEvent, UnknownTopic) as error:
        raise NotStorable(f"{type(event).__name__} can't be stored: {error}") from error
    if not same:
        raise NotStorable(f"{topic}: what would be read is not what was written")
    return topic, payload
