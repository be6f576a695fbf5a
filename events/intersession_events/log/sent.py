"""Events of a log as JSON, whole, for another process that folds them: a worker that has no way to the log's database."""

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


def sent(recorded: Recorded) -> msgspec.Raw:
    """Return an event with all that the log has of it, as JSON."""
    return msgspec.Raw(
        msgspec.json.encode(
            _Sent(
                position=recorded.position,
                stream=recorded.stream,
                version=recorded.version,
                topic=recorded.topic,
                payload=msgspec.Raw(encode(recorded.event)),
                id=recorded.id,
                time=recorded.time,
                causation=recorded.causation,
                correlation=recorded.correlation,
                epoch=recorded.epoch,
                prev=recorded.prev,
                digest=recorded.digest,
                hash=recorded.hash,
                decision=recorded.decision,
            )
        )
    )


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
    return Recorded(
        position=one.position,
        stream=one.stream,
        version=one.version,
        topic=one.topic,
        event=decode(one.topic, bytes(one.payload)),
        id=one.id,
        time=one.time,
        causation=one.causation,
        correlation=one.correlation,
        epoch=one.epoch,
        prev=one.prev,
        digest=one.digest,
        hash=one.hash,
        decision=one.decision,
    )
