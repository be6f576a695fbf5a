"""How an envelope is stored in the `state` of a row: as bytes of fixed places before its record and its payload, or as JSON.

The short form has fixed places, so that plain SQL can take it apart. Its ids are UUIDs as their 16 bytes:

    1        the form, 0x01
    2-33     hash
    34-65    prev, zeros for the first event of a stream
    66-81    salt
    82-97    id
    98-113   causation, zeros for none
    114-129  correlation, zeros for none
    130-133  epoch, big-endian
    134-146  time (ms), 13 digits
    147-150  how many bytes the decision record has, 4 digits
    151-     the decision record, canonical JSON, or nothing
    behind   data: the payload as canonical JSON

The digest of the payload is not stored: it is made of salt and data. Each state of this form says one envelope, and each
envelope that fits has one. One that does not fit is canonical JSON (RFC 8785): an id that is no UUID, a payload that was
erased or is encrypted, whose digest can't be made anew, one whose thinking stands beside it, or did, a decision record of
more than 9,999 bytes.
"""

import re
import struct
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from intersession_events.basics.errors import CorruptEvent
from intersession_events.proofs.apart import MARK, Apart, whole

SHORT: Final = b"\x01"
"""What the short form begins with."""
_PLACES: Final = struct.Struct(">c32s32s16s16s16s16sI13s4s")
_NONE: Final = bytes(16)
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ANY_UUID: Final = "00000000-0000-0000-0000-000000000000"
_SALT: Final = 32
_HASH: Final = 64
"""Hexadecimal digits; an erased payload has no salt."""
_BEHIND: Final = len(_ANY_UUID + '","prev":"' + '","salt":"' + '","time":' + "}") + _HASH + _SALT + 13
"""How far before the end of a JSON state its id begins, if it is a UUID and the time has 13 digits; less without a salt."""
_LENGTHS: Final = (_HASH // 2, _SALT // 2, _HASH)
"""Of the hash and the salt in bytes, and of the hash before in digits."""
_LATEST: Final = 10**13
_LONGEST: Final = 9_999
"""Bytes of a decision record in the short form."""
_EPOCHS: Final = 2**32
_REMEMBERED: Final = 4_096
"""Ids, each of which comes in several events: as itself, as a cause, as the root of a chain."""


class Envelope(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """The `state` of a row. The fields stand in canonical order; `data` is the payload as it is stored.

    `decision` is the decision record, empty for none, and left out then; so is `sealed`, which holds salt and payload encrypted
    where a log is kept so (base64): `data` is then what is left without words. `apart` is the thinking that stands beside the
    payload; encrypted it stands in `sealed`, behind a point.
    """

    apart: Apart | None = None
    causation: str | None
    correlation: str | None
    data: msgspec.Raw
    decision: str = ""
    digest: str
    epoch: int
    hash: str
    id: str
    prev: str
    salt: str
    sealed: str = ""
    time: int

    @property
    def is_erased(self) -> bool:
        """Whether `data` was erased or is encrypted, and is not what was hashed: the salt goes with the payload."""
        return not self.salt

    @property
    def lacks_thinking(self) -> bool:
        """Whether the thinking that stood beside `data` was erased, and all else is as it was hashed."""
        return self.apart is None and not self.is_erased and MARK in bytes(self.data)

    @property
    def payload(self) -> bytes:
        """The payload as readers of events are given it: with what stands beside it in its place."""
        return whole(bytes(self.data), self.apart)

    @property
    def stands(self) -> str:
        """The SHA-256 (hex) of the present content of `data`; of what is as it was hashed, that digest, which tells nothing of it."""
        return sha256(self.data).hexdigest() if self.is_erased else self.digest

    @property
    def without_thinking(self) -> bytes:
        """The state without the thinking that stands beside the payload."""
        return as_state(msgspec.structs.replace(self, apart=None, sealed=self.sealed.partition(".")[0]))


class Named(msgspec.Struct, frozen=True, gc=False):
    """An envelope's names without its payload: the event, its cause, and its causal chain."""

    id: str
    causation: str | None
    correlation: str | None


class _Data(msgspec.Struct, frozen=True, gc=False):
    data: msgspec.Raw
    apart: Apart | None = None


_ENCODE: Final = msgspec.json.Encoder().encode
_DECODE: Final = msgspec.json.Decoder(Envelope).decode
_NAMED: Final = msgspec.json.Decoder(Named).decode
_DATA: Final = msgspec.json.Decoder(_Data).decode


def as_state(envelope: Envelope) -> bytes:
    """Return the state of a row: in the short form, if the envelope fits, else as JSON.

    Raises:
        ValueError: an id can't be encoded.
    """
    if envelope.apart is not None or MARK in bytes(envelope.data):
        return _ENCODE(envelope)
    with suppress(ValueError):  # one that was damaged can have anything for a hash
        state = in_places(
            bytes.fromhex(envelope.hash),
            envelope.prev,
            bytes.fromhex(envelope.salt),
            (envelope.id, envelope.causation, envelope.correlation),
            epoch=envelope.epoch,
            time=envelope.time,
            decision=envelope.decision,
            data=envelope.data,
        )
        if state is not None:
            return state
    return _ENCODE(envelope)


def in_places(
    hashed: bytes,
    prev: str,
    salt: bytes,
    ids: tuple[str, str | None, str | None],
    *,
    epoch: int,
    time: int,
    decision: str,
    data: bytes | msgspec.Raw,
) -> bytes | None:
    """Return the state of a row in the short form; None if the envelope does not fit. `ids` are those of the event, its cause and its chain.

    Raises:
        ValueError: the decision record can't be encoded.
    """
    own, causation, correlation = ids
    id_, cause, chain = (
        _bytes_of(own),
        _NONE if causation is None else _bytes_of(causation),
        _NONE if correlation is None else _bytes_of(correlation),
    )
    record = decision.encode()
    if (
        id_ is None
        or cause is None
        or chain is None
        or (len(hashed), len(salt), len(prev)) != _LENGTHS
        or not (0 <= time < _LATEST and 0 <= epoch < _EPOCHS)
        or len(record) > _LONGEST
    ):
        return None
    return b"".join(
        (
            _PLACES.pack(
                SHORT,
                hashed,
                bytes.fromhex(prev),
                salt,
                id_,
                cause,
                chain,
                epoch,
                b"%013d" % time,
                b"%04d" % len(record),
            ),
            record,
            data,
        )
    )


@lru_cache(_REMEMBERED)
def _bytes_of(name: str) -> bytes | None:
    """Return an id as its bytes; None for one that is no UUID, or that of none."""
    value = bytes.fromhex(name.replace("-", "")) if _UUID.fullmatch(name) else _NONE
    return None if value == _NONE else value


def is_short(state: object) -> bool:
    """Whether a state is in the short form. A damaged file can hold anything there."""
    return type(state) is bytes and state[:1] == SHORT


SEALED: Final = b'"sealed":"'
"""What stands in each state whose payload is encrypted, and nowhere else but in words."""


WHOLE: Final = b'{"sealed":"'
"""How data begins that is encrypted as a whole, such as a snapshot."""


def is_sealed(state: bytes) -> bool:
    """Whether a state may be one whose payload is encrypted; its envelope says so for sure."""
    return state[:1] != SHORT and SEALED in state


def of_id(beginning: str) -> list[tuple[str, tuple[bytes | int, ...]]]:
    """Return SQL conditions, with their parameters, for rows whose event may have an id that begins with a text.

    They look at each row, for the log keeps no index of ids. The first looks at the places where an id nearly always is, the
    last at the whole of a JSON state, which may have the text in its payload: who finds nothing by one tries the next.
    """
    as_json = f'"id":"{beginning}'.encode(errors="replace")
    anywhere = ("substr(state, 1, 1) <> ? AND instr(state, ?) > 0", (SHORT, as_json))
    if not beginning or not _UUID.fullmatch(beginning + _ANY_UUID[len(beginning) :]):
        return [anywhere]
    digits = beginning.replace("-", "")
    low, high = (bytes.fromhex(digits.ljust(32, digit)) for digit in "0f")
    text, length = beginning.encode(), len(beginning)
    behind = "substr(state, 82, 16) BETWEEN ? AND ? OR substr(state, ?, ?) = ? OR substr(state, ?, ?) = ?"
    places = (low, high, -_BEHIND, length, text, -_BEHIND + _SALT, length, text)
    return [(behind, places), anywhere]


def hash_in(state: bytes, *, where: str) -> str:
    """Return the hash in a state; only the form of the state is checked.

    Raises:
        CorruptEvent: it is no envelope, or not written as we write it.
    """
    if type(state) is bytes and state[:1] == SHORT and len(state) > _PLACES.size:
        return state[1:33].hex()
    return opened(state, where=where).hash


def opened(state: bytes, *, where: str | tuple[str, int]) -> Envelope:
    """Return the envelope of a row's state; only its form is checked.

    `where` is what an error says, in words or as stream and version: only an error puts those into words.

    Raises:
        CorruptEvent: it is no envelope, or not written as we write it.
    """
    if is_short(state):
        return _of_places(state, where)
    if type(state) is not bytes:
        raise CorruptEvent(f"{_said(where)}: the state is no envelope: it is not stored as bytes")
    try:
        envelope = _DECODE(state)
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptEvent(f"{_said(where)}: the state is no envelope: {error}") from error
    if _ENCODE(envelope) != state:
        raise CorruptEvent(f"{_said(where)}: the state is not in canonical form")
    return envelope


def links_in(state: bytes, *, log_id: str, stream: str, version: int, topic: str) -> tuple[str, str] | None:
    """Return the previous hash and the hash of a short state, after checking it: the fast path for proving many rows.

    None says only that it has to be looked at: it was changed, or has another form. What is hashed is what `Hashed` says, put
    together without making an object of it.
    """
    if not is_short(state) or len(state) <= _PLACES.size:
        return None
    _, hashed, prev, salt, own, causation, correlation, epoch, time, _ = _PLACES.unpack_from(state)
    behind = _behind(state)
    if behind is None or not time.isdigit() or MARK in behind[1]:
        return None
    record, data = behind
    decision = f'"decision":{_ENCODE(record).decode()},' if record else ""
    said = (
        f'{{"causation":{_quoted(causation)},"correlation":{_quoted(correlation)},{decision}"epoch":{epoch},'
        f'"eventId":{_quoted(own) if own != _NONE else _NIL},"logId":{_text(log_id)},'
        f'"payloadDigest":"{sha256(salt + data).hexdigest()}","prev":"{prev.hex()}",'
        f'"stream":{_text(stream)},"timeMs":{int(time)},"topic":{_text(topic)},"version":{version}}}'
    )
    return (prev.hex(), hashed.hex()) if sha256(said.encode()).digest() == hashed else None


def _behind(state: bytes) -> tuple[str, bytes] | None:
    """Return what stands behind the places of a short state: the decision record, and the payload; None if it is damaged."""
    length = state[_PLACES.size - 4 : _PLACES.size]
    if length == b"0000":
        return "", state[_PLACES.size :]
    if not length.isdigit():
        return None
    end = _PLACES.size + int(length)
    if len(state) <= end:
        return None
    try:
        return state[_PLACES.size : end].decode(), state[end:]
    except UnicodeDecodeError:
        return None


def _quoted(value: bytes) -> str:
    if value == _NONE:
        return "null"
    digits = value.hex()
    return f'"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"'


_NIL: Final = f'"{_ANY_UUID}"'


@lru_cache(_REMEMBERED)
def _text(text: str) -> str:
    return _ENCODE(text).decode()


def named_in(state: bytes) -> Named | None:
    """Return the names in the state of a row, unproven, for scans over many rows; None if it is not an envelope."""
    if is_short(state) and len(state) > _PLACES.size:
        _, _, _, _, own, causation, correlation, _, _, _ = _PLACES.unpack_from(state)
        return Named(
            _uuid(own),
            None if causation == _NONE else _uuid(causation),
            None if correlation == _NONE else _uuid(correlation),
        )
    try:
        return _NAMED(state)
    except (ValueError, TypeError, RecursionError):
        return None


def packed_names_in(state: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Return the same as `named_in` with ids as bytes of their UUIDs, or as texts; empty for none."""
    if is_short(state) and len(state) > _PLACES.size:
        causation, correlation = state[97:113], state[113:129]
        return (
            state[81:97],
            b"" if causation == _NONE else causation,
            b"" if correlation == _NONE else correlation,
        )
    named = named_in(state)
    if named is None:
        return None
    own, causation, correlation = (
        (_bytes_of(name) or name.encode(errors="replace")) if name else b""
        for name in (named.id, named.causation, named.correlation)
    )
    return own, causation, correlation


def name_of(packed: bytes) -> str:
    """Return the text of an id that was packed."""
    return _uuid(packed) if len(packed) == len(_NONE) else packed.decode(errors="replace")


def time_in(state: bytes) -> int:
    """Return the time (ms) in the state of a row, unproven, for scans over many rows; 0 where that takes reading all of it."""
    digits = state[133:146] if is_short(state) else b""
    return int(digits) if digits.isdigit() else 0


def payload_in(state: bytes) -> bytes | None:
    """Return the payload in the state of a row, unproven, for scans over many rows; None if it is not an envelope."""
    if type(state) is bytes and state[:1] == SHORT:  # `is_short`, for each event
        behind = _behind(state)
        return None if behind is None else behind[1]
    try:
        found = _DATA(state)
        return whole(bytes(found.data), found.apart)
    except (ValueError, TypeError, RecursionError):
        return None


class Short(NamedTuple):
    """The fields of a row's state in the short form. The digest is computed from them."""

    causation: str | None
    correlation: str | None
    data: bytes
    decision: str
    digest: str
    epoch: int
    hash: str
    id: str
    prev: str
    salt: bytes
    time: int


def short_in(state: bytes) -> Short | None:
    """Return the fields of a state in the short form, unproven; None for another form, or a damaged one."""
    if not is_short(state) or len(state) <= _PLACES.size:
        return None
    _, hashed, prev, salt, own, causation, correlation, epoch, time, _ = _PLACES.unpack_from(state)
    behind = _behind(state)
    if behind is None or not time.isdigit():
        return None
    decision, data = behind
    return Short(
        None if causation == _NONE else _uuid(causation),
        None if correlation == _NONE else _uuid(correlation),
        data,
        decision,
        sha256(salt + data).hexdigest(),
        epoch,
        hashed.hex(),
        _uuid(own),
        prev.hex(),
        salt,
        int(time),
    )


def _of_places(state: bytes, where: str | tuple[str, int]) -> Envelope:
    said = short_in(state)
    if said is None:
        if len(state) <= _PLACES.size:
            raise CorruptEvent(f"{_said(where)}: the state is no envelope: it ends after {len(state)} bytes")
        raise CorruptEvent(
            f"{_said(where)}: the state is no envelope: its time or the length of its decision record is invalid, "
            f"{state[_PLACES.size - 17 : _PLACES.size]!r}"
        )
    causation, correlation, data, decision, digest, epoch, hashed, own, prev, salt, time = said
    if MARK in data:
        raise CorruptEvent(f"{_said(where)}: the state is not in canonical form")
    return Envelope(
        causation=causation,
        correlation=correlation,
        data=msgspec.Raw(data),
        decision=decision,
        digest=digest,
        epoch=epoch,
        hash=hashed,
        id=own,
        prev=prev,
        salt=salt.hex(),
        time=time,
    )


def _said(where: str | tuple[str, int]) -> str:
    return where if isinstance(where, str) else f"{where[0]!r} version {where[1]!r}"


@lru_cache(_REMEMBERED)
def _uuid(value: bytes) -> str:
    digits = value.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
