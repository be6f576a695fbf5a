"""Turns facts into stored rows and back: the envelope beside the payload, and the hash that chains a stream.

A row's `state` is canonical JSON (RFC 8785), so that `sqlite3` and `jq` can read it and anybody can hash it again:

    digest = SHA-256(salt ‖ data)
    hash   = SHA-256({causation, correlation, epoch, eventId, logId, payloadDigest, prev, stream, timeMs, topic, version})

`prev` is the hash of the event before it in its stream, for the first one 64 zeros. The position is outside the hash.

An erased event has no salt, and in `data` what is left of it without its words. The digest stays that of what was there, so
the chain stays true; what stands there now is proven by the event that erased it (`Erased`).
"""

from collections.abc import Callable, Iterable
from functools import cache
from hashlib import sha256
from typing import Final, cast

import msgspec
from msgspec import inspect

from intersession_events.errors import CorruptEvent, ForgedTopic, NotStorable, UnknownTopic
from intersession_events.facts import TOPICS, UPCASTERS, Event, decode, encode, latest, topic_of
from intersession_events.log.recorded import Draft, Recorded
from intersession_events.proofs import Hashed

FIRST: Final = "0" * 64
"""What the first event of a stream has for `prev`."""
SALT_BYTES: Final = 16

_LARGEST: Final = 2**53 - 1  # RFC 8785 numbers are doubles


Authorised = Callable[[str, int], str | None]
"""Returns the SHA-256 (hex) of what may stand in the place of an erased payload, by stream and version; None if nothing may."""


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The `state` of a row. The fields stand in canonical order; `data` is the payload as it is stored."""

    causation: str | None
    correlation: str | None
    data: msgspec.Raw
    digest: str
    epoch: int
    hash: str
    id: str
    prev: str
    salt: str
    time: int

    @property
    def is_erased(self) -> bool:
        """Whether what stands in `data` is not what was hashed: the salt goes with the payload."""
        return not self.salt

    @property
    def stands(self) -> str:
        """The SHA-256 (hex) of what stands in `data` now."""
        return sha256(self.data).hexdigest()


_ENCODE: Final = msgspec.json.Encoder().encode
_DECODE: Final = msgspec.json.Decoder(Envelope).decode


def seal(
    draft: Draft,
    topic: str,
    payload: bytes,
    *,
    log_id: str,
    stream: str,
    version: int,
    epoch: int,
    prev: str,
    salt: bytes,
    time: int | None = None,
) -> tuple[bytes, Recorded]:
    """Return the state to be stored, and the event as it will be read (its position still 0).

    `time` is what is recorded, if it is not the draft's.

    Raises:
        NotStorable: an id or the stream's name can't be encoded.
    """
    digest = sha256(salt + payload).hexdigest()
    at = draft.time if time is None else time
    try:
        hashed = Hashed(
            draft.causation,
            draft.correlation,
            epoch,
            draft.id,
            log_id,
            digest,
            prev,
            stream,
            at,
            topic,
            version,
        ).hash
        envelope = Envelope(
            draft.causation,
            draft.correlation,
            msgspec.Raw(payload),
            digest,
            epoch,
            hashed,
            draft.id,
            prev,
            salt.hex(),
            at,
        )
        state = _ENCODE(envelope)
    except ValueError as error:
        raise NotStorable(f"{topic} of {stream!r}: its envelope can't be encoded: {error}") from error
    return state, _recorded(envelope, draft.event, position=0, stream=stream, version=version, topic=topic)


def _recorded(
    envelope: Envelope, event: Event, *, position: int, stream: str, version: int, topic: str
) -> Recorded:
    return Recorded(
        position=position,
        stream=stream,
        version=version,
        topic=topic,
        event=event,
        id=envelope.id,
        time=envelope.time,
        causation=envelope.causation,
        correlation=envelope.correlation,
        epoch=envelope.epoch,
        prev=envelope.prev,
        digest=envelope.digest,
        hash=envelope.hash,
    )


def payload_of(draft: Draft) -> tuple[str, bytes]:
    """Return topic and payload of an event that will be readable for ever.

    Raises:
        NotStorable: it holds a lone surrogate, a number that is no integer below 2**53, or a value of a wrong type.
    """
    event = draft.event
    try:
        topic = topic_of(event)
        if (where := _unfit(event, topic) or _unfit(draft.time, "time")) is not None:
            raise NotStorable(f"{topic}: {where} holds a value that is no text, truth or integer below 2**53")
        payload = encode(event)
        same = decode(topic, payload) == event
    except KeyError:
        raise NotStorable(f"{type(event).__name__} is in no registry") from None
    except (ValueError, TypeError, RecursionError, CorruptEvent, UnknownTopic) as error:
        if isinstance(error, NotStorable):
            raise
        raise NotStorable(f"{type(event).__name__} can't be stored: {error}") from error
    if not same:
        raise NotStorable(f"{topic}: what would be read is not what was written")
    return topic, payload


def _nothing(_stream: str, _version: int) -> None:
    return None


def unseal(
    *,
    log_id: str,
    position: int,
    stream: str,
    version: int,
    topic: str,
    state: bytes,
    authorised: Authorised = _nothing,
) -> Recorded:
    """Return the event of a row, after proving that nothing of the row was changed; of an erased one, what is left of it.

    Raises:
        UnknownTopic: this version does not know the topic. Nothing is imported.
        CorruptEvent: the row does not hash to what it says (a ForgedTopic, if its topic is unknown as well).
    """
    envelope = opened(state, where=f"{stream!r} version {version!r}")
    unknown = topic not in TOPICS and topic not in UPCASTERS
    if damage := damaged(envelope, log_id=log_id, stream=stream, version=version, topic=topic):
        if unknown:
            raise ForgedTopic(topic)
        raise CorruptEvent(f"{stream!r} version {version!r}: {damage}")
    if unknown:
        raise UnknownTopic(topic)
    if envelope.is_erased and authorised(stream, version) != envelope.stands:
        raise CorruptEvent(
            f"{stream!r} version {version!r}: the payload was erased, and no event authorises what stands there"
        )
    # What is left of an erased one was made anew by who erased it.
    event = decode(latest(topic) if envelope.is_erased else topic, bytes(envelope.data))
    return _recorded(envelope, event, position=position, stream=stream, version=version, topic=topic)


def replaced(envelope: Envelope, payload: bytes) -> bytes:
    """Return the state of a row whose payload is erased, with what is left of it in its place."""
    return _ENCODE(msgspec.structs.replace(envelope, data=msgspec.Raw(payload), salt=""))


def opened(state: bytes, *, where: str) -> Envelope:
    """Return the envelope of a row's state; only its form is checked.

    Raises:
        CorruptEvent: it is no envelope, or not written as we write it.
    """
    try:
        envelope = _DECODE(state)
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptEvent(f"{where}: the state is no envelope: {error}") from error
    if _ENCODE(envelope) != state:
        raise CorruptEvent(f"{where}: the state is not in canonical form")
    return envelope


def damaged(envelope: Envelope, *, log_id: str, stream: str, version: int, topic: str) -> str | None:
    """Say in words what of a row was changed, or None if it hashes to what it says.

    Of an erased one that proves the envelope alone: what stands in the payload's place is proven by who erased it.
    """
    try:
        salt = bytes.fromhex(envelope.salt)
        expected = Hashed(
            envelope.causation,
            envelope.correlation,
            envelope.epoch,
            envelope.id,
            log_id,
            envelope.digest,
            envelope.prev,
            stream,
            envelope.time,
            topic,
            version,
        ).hash
    except (ValueError, TypeError) as error:
        return f"the row can't be hashed: {error}"
    if expected != envelope.hash:
        return "the hash is another one: envelope, topic, stream or version was changed"
    if salt.hex() != envelope.salt:
        return "the salt is not written as it was"
    if salt and sha256(salt + envelope.data).hexdigest() != envelope.digest:
        return "the payload does not have the digest that was hashed: it was changed"
    return None


_PLAIN: Final = frozenset({str, bool, type(None)})


def _unfit(value: object, where: str) -> str | None:
    """Name the first number at or below a value that RFC 8785 would not write as we do."""
    # Runs for every field of every event: exact types first, and many at once.
    if type(value) in _PLAIN:
        return None
    if isinstance(value, msgspec.Struct):
        return _unfit_field(value)
    if isinstance(value, int):
        return None if -_LARGEST <= value <= _LARGEST else where
    if isinstance(value, tuple):
        if _PLAIN.issuperset(map(type, cast("tuple[object, ...]", value))):
            return None
        return _first((where, item) for item in cast("tuple[object, ...]", value))
    if isinstance(value, dict):
        return _first(cast("dict[str, object]", value).items())
    return where


def _unfit_field(value: msgspec.Struct) -> str | None:
    for name in _doubtful(type(value)):
        field = getattr(value, name)
        if field is None or (type(field) is int and -_LARGEST <= field <= _LARGEST):
            continue
        if (found := _unfit(field, name)) is not None:
            return found
    return None


@cache
def _doubtful(cls: type[msgspec.Struct]) -> tuple[str, ...]:
    """Name the fields that can hold a number. In the others, what is no text or truth is not what is read again."""
    info = cast("inspect.StructType", inspect.type_info(cls))
    return tuple(field.name for field in info.fields if not _holds_no_number(field.type))


def _holds_no_number(kind: inspect.Type) -> bool:
    match kind:
        case inspect.StrType() | inspect.BoolType() | inspect.NoneType():
            return True
        case inspect.LiteralType(values=values):
            return all(isinstance(value, str) for value in values)
        case inspect.UnionType(types=kinds):
            return all(map(_holds_no_number, kinds))
        case inspect.VarTupleType(item_type=item):
            return _holds_no_number(item)
        case inspect.DictType(key_type=key, value_type=item):
            return _holds_no_number(key) and _holds_no_number(item)
        case _:
            return False


def _first(values: Iterable[tuple[str, object]]) -> str | None:
    for where, value in values:
        if (found := _unfit(value, where)) is not None:
            return found
    return None
