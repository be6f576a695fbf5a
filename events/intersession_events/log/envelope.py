"""Turns facts into stored rows and back: the envelope beside the payload, and the hash that chains a stream.

How both lie in the `state` of a row is in `row_state.py`; what is hashed:

    digest = SHA-256(salt ‖ data)
    hash   = SHA-256({causation, correlation, decision?, epoch, eventId, logId, payloadDigest, prev, stream, timeMs, topic,
                      version})

`prev` is the hash of the event before it in its stream, for the first one 64 zeros. The position is outside the hash.

An erased event has no salt, and in `data` what is left of it without its words (`unsaid`). The digest stays that of what was
there, so the chain stays true; what stands there now is proven by the event that erased it (`Erased`), and by the checkpoint
that was taken before (`CheckpointTaken.unsaid`). A model's thinking is no part of `data`: `proofs/apart.py`.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from intersession_events.basics.errors import CorruptEvent, ForgedTopic, NotStorable, UnknownTopic
from intersession_events.facts import ERASED, TOPICS, Event, decode, standing
from intersession_events.log.recorded import Draft, Recorded
from intersession_events.log.row_state import Envelope, Short, as_state, in_places, is_short, opened, short_in
from intersession_events.log.sql import Row
from intersession_events.proofs.apart import parted, problem_of
from intersession_events.proofs.hashed import Hashed

FIRST: Final = "0" * 64
"""What the first event of a stream has for `prev`."""
SALT_BYTES: Final = 16
ENCRYPTED: Final = b"[encrypted]"
"""What stands for words whose key is not at hand."""


class Erasing(NamedTuple):
    """The authority for an erased payload: where its event stands, and the SHA-256 (hex) of the content that may replace it.

    `masked`: an edition of a bundle, whose content still has words. `thinking`: a model's thinking alone may be gone.
    """

    position: int
    stands: str
    masked: bool = False
    thinking: bool = False

    def problem(self, envelope: Envelope, topic: str, position: int) -> str | None:
        """Say in words why the content of an erased row can't be what is left of it; None if it can.

        Raises:
            UnknownTopic: this version does not know the topic.
        """
        if self.stands != envelope.stands or 0 < self.position <= position:
            return NOT_AUTHORISED
        try:
            self.event(envelope, topic)
        except CorruptEvent as error:
            return str(error)
        return None

    def is_done(self, envelope: Envelope) -> bool:
        """Whether a row has lost what was to be erased of it; of one whose key is not at hand that shows by its size alone."""
        if envelope.sealed:
            return self.thinking and "." not in envelope.sealed
        return envelope.is_erased or envelope.lacks_thinking

    def event(self, envelope: Envelope, topic: str) -> Event:
        """Return the event that stands there.

        Raises:
            CorruptEvent: it is not what is left of an event.
            UnknownTopic: this version does not know the topic.
        """
        if envelope.lacks_thinking:
            return decode(topic, envelope.payload)
        return (decode if self.masked else standing)(topic, bytes(envelope.data))


NOT_AUTHORISED: Final = "the payload was erased, and no event authorises what stands there"

Authorised = Callable[[str, int, str], Erasing | None]
"""Returns what authorises that a payload is erased, by stream, version and what stands there; None if nothing does."""


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
    position: int = 0,
) -> tuple[bytes, Recorded]:
    """Return the state to be stored, and the event as it will be read at its position.

    `time` is what is recorded, if it is not the draft's. The salt of a payload that has thinking is as long as two: the second
    one goes with the thinking.

    Raises:
        NotStorable: an id or the stream's name can't be encoded.
    """
    apart = None
    if len(salt) > SALT_BYTES:
        payload, apart = parted(payload, salt[SALT_BYTES:])
        salt = salt[:SALT_BYTES]
    digest = sha256(salt + payload).hexdigest()
    cause, chain, record, at = (
        draft.causation,
        draft.correlation,
        draft.decision,
        draft.time if time is None else time,
    )
    try:
        hashed = Hashed(
            causation=cause,
            correlation=chain,
            decision=record,
            epoch=epoch,
            event_id=draft.id,
            log_id=log_id,
            payload_digest=digest,
            prev=prev,
            stream=stream,
            time_ms=at,
            topic=topic,
            version=version,
        ).hash
        state = apart is None and in_places(
            bytes.fromhex(hashed),
            prev,
            salt,
            (draft.id, cause, chain),
            epoch=epoch,
            time=at,
            decision=record,
            data=payload,
        )
        state = state or as_state(
            Envelope(
                apart=apart,
                causation=cause,
                correlation=chain,
                data=msgspec.Raw(payload),
                decision=record,
                digest=digest,
                epoch=epoch,
                hash=hashed,
                id=draft.id,
                prev=prev,
                salt=salt.hex(),
                time=at,
            )
        )
    except ValueError as error:
        raise NotStorable(f"{topic} of {stream!r}: its envelope can't be encoded: {error}") from error
    return state, Recorded(
        position=position,
        stream=stream,
        version=version,
        topic=topic,
        event=draft.event,
        id=draft.id,
        time=at,
        causation=cause,
        correlation=chain,
        epoch=epoch,
        prev=prev,
        digest=digest,
        hash=hashed,
        decision=record,
    )


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
        decision=envelope.decision,
    )


def _nothing(_stream: str, _version: int, _stands: str) -> None:
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
    """Return the event of a row, after proving that nothing of the row was changed; of an erased or encrypted one, what is left of it.

    Raises:
        UnknownTopic: this version does not know the topic. Nothing is imported.
        CorruptEvent: the row does not hash to what it says (a ForgedTopic, if its topic is unknown as well).
    """
    # Nearly every row is short and as it was written. What is wrong with another is said by the way that all forms can go.
    if topic in TOPICS and (said := short_in(state)) is not None:
        recorded = _of_short(said, log_id, position, stream, version, topic)
        if recorded is not None:
            return recorded
    envelope = opened(state, where=(stream, version))
    unknown = topic not in TOPICS
    if damage := damaged(
        envelope,
        log_id=log_id,
        stream=stream,
        version=version,
        topic=topic,
        says_digest=not is_short(state),
    ):
        if unknown:
            raise ForgedTopic(topic)
        raise CorruptEvent(f"{stream!r} version {version!r}: {damage}")
    if unknown:
        raise UnknownTopic(topic)
    if envelope.sealed:
        standing(topic, bytes(envelope.data))
        event = decode(topic, bytes(envelope.data).replace(ERASED.encode(), ENCRYPTED))
    elif envelope.is_erased or envelope.lacks_thinking:
        erasing = authorised(stream, version, envelope.stands)
        problem = NOT_AUTHORISED if erasing is None else erasing.problem(envelope, topic, position)
        if erasing is None or problem:
            raise CorruptEvent(f"{stream!r} version {version!r}: {problem}")
        event = erasing.event(envelope, topic)
    else:
        event = decode(topic, envelope.payload)
    return _recorded(envelope, event, position=position, stream=stream, version=version, topic=topic)


def _of_short(  # noqa: PLR0917 - it is called for each row that is read
    said: Short, log_id: str, position: int, stream: str, version: int, topic: str
) -> Recorded | None:
    """Return the event of a row whose state has the right hash; None for any other."""
    causation, correlation, data, decision, digest, epoch, hashed, own, prev, _, time = said
    try:
        found = Hashed(
            causation=causation,
            correlation=correlation,
            decision=decision,
            epoch=epoch,
            event_id=own,
            log_id=log_id,
            payload_digest=digest,
            prev=prev,
            stream=stream,
            time_ms=time,
            topic=topic,
            version=version,
        ).hash
    except (ValueError, TypeError):
        return None
    if found != hashed:
        return None
    return Recorded(
        position=position,
        stream=stream,
        version=version,
        topic=topic,
        event=decode(topic, data),
        id=own,
        time=time,
        causation=causation,
        correlation=correlation,
        epoch=epoch,
        prev=prev,
        digest=digest,
        hash=hashed,
        decision=decision,
    )


def replaced(envelope: Envelope, payload: bytes) -> bytes:
    """Return the state of a row whose payload is erased, with what is left of it in its place."""
    return as_state(
        msgspec.structs.replace(envelope, apart=None, data=msgspec.Raw(payload), salt="", sealed="")
    )


def damaged(
    envelope: Envelope, *, log_id: str, stream: str, version: int, topic: str, says_digest: bool = True
) -> str | None:
    """Say in words what of a row was changed; None if its hash is right.

    A short state does not say its digest: it was made of salt and payload just now. Of an erased one that
    proves the envelope alone: what stands in the payload's place is proven by who erased it.
    """
    try:
        salt = bytes.fromhex(envelope.salt) if says_digest else b""
        expected = Hashed(
            causation=envelope.causation,
            correlation=envelope.correlation,
            decision=envelope.decision,
            epoch=envelope.epoch,
            event_id=envelope.id,
            log_id=log_id,
            payload_digest=envelope.digest,
            prev=envelope.prev,
            stream=stream,
            time_ms=envelope.time,
            topic=topic,
            version=version,
        ).hash
    except (ValueError, TypeError) as error:
        return f"the row can't be hashed: {error}"
    if expected != envelope.hash:
        return "the hash is another one: envelope, topic, stream or version was changed"
    if not says_digest:
        return None
    if salt.hex() != envelope.salt:
        return "the salt is not written as it was"
    if salt and sha256(salt + envelope.data).hexdigest() != envelope.digest:
        return "the payload does not have the digest that was hashed: it was changed"
    return None if envelope.apart is None else problem_of(bytes(envelope.data), envelope.apart)


def damage_of(row: Row, envelope: Envelope, log_id: str) -> str | None:
    """Say the same of a row as it lies in the table; its position is not part of what is hashed."""
    _, stream, version, topic, state = row
    says_digest = not is_short(state)
    return damaged(
        envelope, log_id=log_id, stream=stream, version=version, topic=topic, says_digest=says_digest
    )
