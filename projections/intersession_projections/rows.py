"""Rows of views as canonical JSON text: one column holds a whole struct, beside the few that are searched by.

JSON text also carries a NUL, which a text column of PostgreSQL refuses.
"""

from functools import cache
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_ENCODER = msgspec.json.Encoder(order="sorted")


def to_text(value: Any) -> str:
    """Return a value as JSON text, for a column."""
    return _ENCODER.encode(value).decode()


def from_text(text: str, kind: type[T]) -> T:
    """Return what `to_text` stored."""
    decoded: T = _decoder(kind).decode(text)
    return decoded


@cache
def _decoder(kind: Any) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(kind)
