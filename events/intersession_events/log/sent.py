"""Events of a log as JSON, whole, for another process that folds them: a worker that has no way to the log's database."""

from typing import Final

import msgspec

from intersession_events.basics.errors import CorruptEvent
from intersession_events.basics.plain_json import JsonValue
from intersession_events.facts import decode, encode, ready
from intersession_events.log.recorded import Recorded


@ready
class _Sent(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    position: int
    stream: str
    version: int
    topic: str
    payload: msgspec.Raw
    id: str
    time: int
    causation: str | None = None
    correlation: str | None = None
    epoch: int
    prev: str
    digest: str
    hash: str
    decision: str = ""


_KNOWN: Final = tuple(name for name in _Sent.__struct_fields__ if name != "payload")
"""What is sent of an event beside itself, by the names that it has in the log."""


def sent(recorded: Recorded) -> msgspec.Raw:
    """Return an event with all that the log has of it, as JSON."""
    known = {name: getattr(recorded, name) for name in _KNOWN}
    return msgspec.Raw(msgspec.json.encode(_Sent(**known, payload=msgspec.Raw(encode(recorded.event)))))


def received(event: JsonValue) -> Recorded:
    """Return an event that another process has `sent`.

    Raises:
        CorruptEvent: it is not one.
        UnknownTopic: it is of a newer version.
    """
    try:
        one = msgspec.json.decode(msgspec.json.encode(event), type=_Sent)
    except (ValueError, TypeError) as error:
        raise CorruptEvent(f"an event that was sent is not of its shape: {error}") from None
    known = {name: getattr(one, name) for name in _KNOWN}
    return Recorded(**known, event=decode(one.topic, bytes(one.payload)))
