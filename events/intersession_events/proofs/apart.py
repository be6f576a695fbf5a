"""A model's thinking as a row keeps it: beside the payload, by a salt and digests of its own, so that it can go while the rest stays (FORGET-6).

Where it stood, the payload that is hashed has `{"apart":["<SHA-256 of the salt and of the JSON that stood there>"]}`, with the type
of the block. So the hash covers the thinking as well, and what is left of a row that lost it is as it was written, to the byte.
No event has such a list in it. All that reads events is given the payload as a whole. Pure.
"""

import re
from hashlib import sha256
from typing import Final

import msgspec

from intersession_events.facts.base import ERASED_JSON

__all__ = ["MARK", "Apart", "has_thinking", "is_left_whole", "may_think", "parted", "problem_of", "whole"]

MARK: Final = b'{"apart":["'
"""What stands in each payload whose thinking is beside it, or was, and in no other."""

_TEXT: Final = rb'"(?:[^"\\]++|\\.)*+"'
_BLOCK: Final = re.compile(
    rb'\{(?:"extra":%b,)?"thinking":%b,(?:"thinkingSignature":%b,)?"type":"thinking"\}'
    % (_TEXT, _TEXT, _TEXT)
    + rb'|\{"json":%b,"type":"other"\}' % _TEXT
)
_KINDS: Final = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""The types of blocks that say what a model thought."""
_SOURCE: Final = re.compile(rb'(?<=,"source":)%b(?=\}\Z)' % _TEXT)
"""The line of an import that a message came from, with its thinking once more: the last field of its event."""
_GONE: Final = re.compile(rb'(,"source":)?\{"apart":\["([0-9a-f]{64})"\](?:,"type":"(thinking|other)")?\}')
_BLANK: Final = f'{{"thinking":{ERASED_JSON},"type":"thinking"}}'
_LEFT: Final = {
    b"thinking": _BLANK.encode(),
    b"other": msgspec.json.encode({"json": _BLANK, "type": "other"}),
    b"": b"",
}
"""What is read, by the type of the block, where the thinking was erased; of a line of an import nothing."""


class Apart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """The texts that stand beside a payload, JSON each, in the order of their places there, and their salt in hexadecimal digits."""

    pieces: tuple[str, ...]
    salt: str

    def digest(self, piece: str) -> bytes:
        """Return the digest that stands in the payload for a text."""
        return sha256(bytes.fromhex(self.salt) + piece.encode()).hexdigest().encode()


def has_thinking(payload: bytes) -> bool:
    """Return whether a payload, as an event is encoded, has thinking in it. It may be `[erased]` already."""
    return any(map(_thinks, _BLOCK.finditer(payload)))


def may_think(state: bytes) -> bool:
    """Return whether a row or a payload may have thinking in it or beside it: for scans over many."""
    return b"thinking" in state or b"reasoning" in state


def is_left_whole(data: bytes) -> bool:
    """Return whether a payload as it is hashed has its thinking in it, as logs had it before: it goes with all words alone."""
    return MARK not in data and may_think(data) and has_thinking(data)


def parted(payload: bytes, salt: bytes) -> tuple[bytes, Apart]:
    """Return a payload that has thinking as it is hashed, and what stands beside it."""
    pieces: list[str] = []
    apart = Apart((), salt.hex())

    def take(text: bytes, kind: bytes) -> bytes:
        pieces.append(text.decode())
        return MARK + apart.digest(pieces[-1]) + b'"]' + kind + b"}"

    def block(found: re.Match[bytes]) -> bytes:
        kind = b"other" if found[0].startswith(b'{"json":') else b"thinking"
        return take(found[0], b',"type":"%b"' % kind) if _thinks(found) else found[0]

    data = _SOURCE.sub(lambda found: take(found[0], b""), _BLOCK.sub(block, payload))
    return data, Apart(tuple(pieces), apart.salt)


def whole(data: bytes, apart: Apart | None) -> bytes:
    """Return a payload with what stands beside it in its place again; without that, with `[erased]` there."""
    if MARK not in data:
        return data
    pieces = iter(() if apart is None else apart.pieces)

    def put(found: re.Match[bytes]) -> bytes:
        piece = next(pieces, None)
        return _LEFT[found[3] or b""] if piece is None else (found[1] or b"") + piece.encode()

    return _GONE.sub(put, data)


def problem_of(data: bytes, apart: Apart) -> str | None:
    """Say in words why texts can't be those that a payload was hashed with; None if they are."""
    try:
        digests = [apart.digest(piece) for piece in apart.pieces]
    except ValueError as error:
        return f"the thinking beside the payload can't be hashed: {error}"
    if (
        not digests
        or digests != [found[2] for found in _GONE.finditer(data)]
        or apart.salt != apart.salt.lower()
    ):
        return "the thinking beside the payload does not have the digests that were hashed: it was changed"
    return None


def _thinks(found: re.Match[bytes]) -> bool:
    if not found[0].startswith(b'{"json":'):
        return True
    try:
        kind = msgspec.json.decode(msgspec.json.decode(found[0])["json"])["type"]
    except (ValueError, TypeError, KeyError):
        return False
    return kind in _KINDS
