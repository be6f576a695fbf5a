"""How views store values in little space: ids as bytes, search keys as numbers, rows of rare columns as MessagePack."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import compress, count
from operator import is_not
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

import msgspec

from intersession_events.log.sql import ID_TEXT, IdText

S = TypeVar("S", bound=msgspec.Struct)

_ENCODER: Final = msgspec.json.Encoder(order="sorted")

Small = dict[int, Any]  # by the fields' own types
"""Fields of a struct by their numbers, as MessagePack has them."""

pack: Final = msgspec.msgpack.Encoder().encode
"""Returns values as they are stored."""
unpack: Final = msgspec.msgpack.Decoder(Small).decode
"""Returns what was stored of a struct."""
_values: Final = msgspec.structs.astuple
_NONE: Final = MappingProxyType(dict[str, type[msgspec.Struct]]())

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_FORM: Final = "00000000-0000-0000-0000-000000000000"
_BYTES: Final = 16
_UUID_LENGTH: Final = len(_FORM)
_REMEMBERED: Final = 4_096
"""Ids, each of which comes in several events and rows: what was made of them is kept, one or two megabytes."""


def to_text(value: object) -> str:
    """Return a value as JSON text, for a column.

    JSON text also carries a NUL, which a text column of PostgreSQL refuses.
    """
    return _ENCODER.encode(value).decode()


@lru_cache(_REMEMBERED)
def packed(text: str) -> IdText | bytes:
    """Return a UUID in its usual form as its 16 bytes, any other text as it is, for a column of bytes."""
    return _uuid_bytes(text) or IdText(text)


def _uuid_bytes(text: str) -> bytes | None:
    if len(text) == _UUID_LENGTH and text[8] == "-" and _UUID.fullmatch(text):
        return bytes.fromhex(text.replace("-", ""))
    return None


@lru_cache(_REMEMBERED)
def unpacked(value: str | bytes) -> str:
    """Return the text that was packed."""
    if isinstance(value, str):
        return value
    if len(value) > _BYTES:
        return value.removeprefix(ID_TEXT).decode()
    digits = value.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def ranges(beginning: str) -> list[tuple[str | bytes, str | bytes]]:
    """Return the bounds, both included, of the packed texts that begin with a text."""
    found: list[tuple[str | bytes, str | bytes]] = [(IdText(beginning), IdText(f"{beginning}\U0010ffff"))]
    if len(beginning) <= _UUID_LENGTH and _UUID.fullmatch(beginning + _FORM[len(beginning) :]):
        digits = beginning.replace("-", "")
        found.append(
            (bytes.fromhex(digits.ljust(2 * _BYTES, "0")), bytes.fromhex(digits.ljust(2 * _BYTES, "f")))
        )
    return found


def beginning_with(
    query: Callable[[str, Sequence[str | int | bytes]], Iterable[tuple[Any, ...]]],  # of one packed text each
    statement: str,
    beginning: str,
    limit: int,
    *more: str,
) -> list[str]:
    """Return packed texts that begin with a text, sorted, up to a limit.

    The statement takes both ends of a range, then `more`, then the limit.
    """
    found = {
        unpacked(text)
        for low, high in ranges(beginning)
        for (text,) in query(statement, (low, high, *more, limit))
    }
    return sorted(found)[:limit]


def hashed(text: str) -> int:
    """Return a number that stands for a text in an index. Texts can share one: compare the text after a lookup."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


class Packing(Generic[S]):
    """How structs of one kind are stored, by the numbers of their fields: whole, or as the changes since the previous one.

    What equals its default is left out, and what has a column of its own (`apart`). Ids are stored as their bytes. A field that
    is a struct itself is named in `nested`.

    What is left to be stored is `Small`: whoever stores the same thing again and again keeps it, and what has changed in it.
    """

    def __init__(
        self,
        kind: type[S],
        *,
        apart: Collection[str] = (),
        nested: Mapping[str, type[msgspec.Struct]] = _NONE,
    ) -> None:
        fields = kind.__struct_fields__
        defaults = dict(zip(reversed(fields), reversed(kind.__struct_defaults__), strict=False))
        self._kind = kind
        self._fields = fields
        self._nested = {fields.index(name): inner for name, inner in nested.items()}
        self._apart = frozenset(map(fields.index, apart))
        self._defaults = [defaults.get(name, msgspec.NODEFAULT) for name in fields]
        self._made_small: dict[type[object], Callable[[Any], Any]] = {  # of each the values of its kind
            str: _small_text,
            tuple: _small_items,
        }  # as `Small`
        self._made_small.update(dict.fromkeys(nested.values(), _small_struct))

    def small(self, value: S, since: S | None = None) -> Small:
        """Return the stored form of a struct: all of it, or its changes from another one."""
        values, made_small, apart = _values(value), self._made_small, self._apart
        others = self._defaults if since is None else _values(since)
        small: Small = {}
        # Most fields are what they were, and the same object: they are passed over without a line of Python each.
        for number, one, other in compress(zip(count(), values, others), map(is_not, values, others)):
            if number not in apart and one != other:
                make = made_small.get(one.__class__)
                small[number] = one if make is None else make(one)
        return small

    def restored(self, stored: bytes, **apart: Any) -> S:  # each is a value of the column of its name
        """Return the struct of a stored form."""
        return self.made_of(unpack(stored), **apart)

    def made_of(self, small: Small, **apart: Any) -> S:  # as of `restored`
        """Return the struct that a stored form was made from."""
        fields = self._fields
        for number, value in small.items():
            kind: type[object] = value.__class__
            if kind is bytes:
                apart[fields[number]] = unpacked(value)
            elif kind is list:
                inner, items = self._nested.get(number), _large(value)
                names = () if inner is None else inner.__struct_fields__
                apart[fields[number]] = (
                    items if inner is None else inner(**dict(zip(names, items, strict=True)))
                )
            else:
                apart[fields[number]] = value
        return self._kind(**apart)

    def numbers(self, *names: str) -> tuple[int, ...]:
        """Return the numbers of some fields."""
        return tuple(map(self._fields.index, names))


def _large(values: Sequence[Any]) -> tuple[Any, ...]:  # of a tuple's or a struct's types
    return tuple(unpacked(one) if isinstance(one, bytes) else one for one in values)


@lru_cache(_REMEMBERED)
def _small_text(text: str) -> str | bytes:
    return _uuid_bytes(text) or text


def _small_items(values: Iterable[Any]) -> list[Any]:  # texts and numbers
    return [_small_text(one) if isinstance(one, str) else one for one in values]


def _small_struct(value: msgspec.Struct) -> list[Any]:  # as they are stored
    return _small_items(_values(value))
