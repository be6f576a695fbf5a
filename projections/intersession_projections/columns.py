"""Rows of views as canonical JSON text: one column holds a whole struct, beside the few that are searched by.

JSON text also carries a NUL, which a text column of PostgreSQL refuses.
"""

from typing import Any, Final, TypeVar

import msgspec

T = TypeVar("T")

_ENCODER: Final = msgspec.json.Encoder(order="sorted")
# Each decodes to its own key, which no type can say.
_DECODERS: Final[dict[type[object], "msgspec.json.Decoder[Any]"]] = {}


def to_text(value: object) -> str:
    """Return a value as JSON text, for a column."""
    return _ENCODER.encode(value).decode()


def from_text(text: str, kind: type[T]) -> T:
    """Return what `to_text` stored."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        decoder = _DECODERS[kind] = msgspec.json.Decoder(kind)
    decoded: T = decoder.decode(text)
    return decoded
