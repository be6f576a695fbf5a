"""Wraps keys by a master key, and proves that what is noted with them was written by its holder (CRYPT-3)."""

import base64
from collections.abc import Callable
from typing import Final

import msgspec

from intersession_events.stores.keys.box import NONCE_BYTES, locked, unlocked
from intersession_events.stores.keys.records import Header, Wrapped
from intersession_events.stores.keys.source import Sessions, Source

ID_BYTES: Final = 16
"""Of the random id of a key."""
_KEY: Final = b"intersession key 1"
_NEXT: Final = b"intersession next key 1"


def header_of(
    source: Source,
    master: bytes,
    sessions: Sessions,
    entropy: Callable[[int], bytes],
    *,
    before: bytes | None = None,
) -> Header:
    """Return how a log is kept with a master key; `before` is the one that it takes the place of."""
    header = Header(check="", master=noted(source), sessions=sessions)
    header = msgspec.structs.replace(header, check=_mark(master, _KEY, header, entropy))
    return (
        header
        if before is None
        else msgspec.structs.replace(header, vouched=_mark(before, _NEXT, header, entropy))
    )


def _mark(key: bytes, purpose: bytes, header: Header, entropy: Callable[[int], bytes]) -> str:
    """Return a proof that a holder of a key has written a header."""
    nonce = entropy(NONCE_BYTES)
    return base64.b64encode(nonce + locked(key, nonce, b"", purpose + _said(header))).decode()


def _said(header: Header) -> bytes:
    return msgspec.json.encode(header, order="sorted")


def noted(source: Source) -> Source | None:
    """Return what is noted of a source: no file says which program others run."""
    return None if source.command else source


def is_checked(header: Header, master: bytes) -> bool:
    """Whether a header is of a master key."""
    plain = msgspec.structs.replace(header, check="", vouched="")
    return _is_marked(header.check, master, _KEY, plain)


def is_vouched(header: Header, before: bytes) -> bool:
    """Whether a holder of the master key before has written a header."""
    return _is_marked(header.vouched, before, _NEXT, msgspec.structs.replace(header, vouched=""))


def _is_marked(mark: str, key: bytes, purpose: bytes, header: Header) -> bool:
    box = decoded(mark)
    return unlocked(key, box[:NONCE_BYTES], box[NONCE_BYTES:], purpose + _said(header)) is not None


def wrapped(master: bytes, name: str, owner: str, key: bytes, entropy: Callable[[int], bytes]) -> Wrapped:
    """Return a key of an owner, by its id, wrapped by the master key."""
    nonce = entropy(NONCE_BYTES)
    box = nonce + locked(master, nonce, key, _KEY + bytes.fromhex(name) + owner.encode())
    return Wrapped(name, base64.b64encode(box).decode(), owner)


def unwrapped(master: bytes, kept: Wrapped) -> bytes | None:
    """Return a key; None if another master key wrapped it, or it was changed."""
    box = decoded(kept.key)
    try:
        bound = _KEY + bytes.fromhex(kept.id) + kept.owner.encode()
    except ValueError:
        return None
    return unlocked(master, box[:NONCE_BYTES], box[NONCE_BYTES:], bound)


def decoded(text: str | bytes) -> bytes:
    """Return the bytes of a base64; none of one that is not written as we write it: each changed letter is noticed."""
    said = text.encode() if isinstance(text, str) else text
    try:
        data = base64.b64decode(said, validate=True)
    except ValueError:
        return b""
    return data if base64.b64encode(data) == said else b""
