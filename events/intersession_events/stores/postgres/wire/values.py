"""The encoding of values for PostgreSQL: texts in columns of bytes and sums as SQLite has them, arrays in binary."""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Any, Final

from psycopg import Connection
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types.numeric import NumericBinaryLoader
from psycopg.types.string import StrDumperUnknown

from intersession_events.log.sql import ID_TEXT, IdText


class _IdTextDumper(Dumper):
    """Puts a text into a column of bytes, behind what no id of a UUID's length begins with."""

    format = Format.BINARY
    oid = 17  # bytea

    def dump(self, obj: IdText) -> Buffer:
        return ID_TEXT + obj.encode()


_NUL: Final = "\ufdd0"
"""What stands for the one character that PostgreSQL has in no text: no character, so none of anybody's."""
_NUL_BYTES: Final = _NUL.encode()


class _TextDumper(StrDumperUnknown):
    """Takes any text: what holds a NUL can be asked for, and stand in a view."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace("\0", _NUL) if "\0" in obj else obj)


class _TextLoader(Loader):
    """Returns a text as it was given."""

    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        raw = bytes(data)
        return raw.replace(_NUL_BYTES, b"\0").decode() if _NUL_BYTES in raw else raw.decode()


class _WholeLoader(NumericBinaryLoader):
    """Returns whole numbers as such: a sum of big integers is a numeric."""

    def load(self, data: Buffer) -> Any:  # an int where it is one, else the Decimal
        found = super().load(data)
        return int(found) if found == found.to_integral_value() else found


def adapt(connection: Connection[Any]) -> None:  # whatever its rows are
    """Make a connection take and give values as SQLite does."""
    connection.adapters.register_dumper(str, _TextDumper)
    connection.adapters.register_loader("text", _TextLoader)
    connection.adapters.register_dumper(IdText, _IdTextDumper)
    connection.adapters.register_loader("numeric", _WholeLoader)


NUMBER: Final = 20
TEXT: Final = 25
BYTE_STRING: Final = 17
REAL: Final = 701
TEXTS: Final = 1009
NUMBERS: Final = 1016
BYTES: Final = 1001
TRUTH: Final = 16
"""What PostgreSQL calls these types and arrays of them."""

_NUMBER: Final = Struct("!q").pack
_REAL: Final = Struct("!d").pack
_ARRAY: Final = Struct("!iiIii").pack
_SIZE: Final = Struct("!i").pack


def number(value: int) -> bytes:
    """Return a whole number as a parameter in binary."""
    return _NUMBER(value)


def truth(value: bool) -> bytes:
    """Return a boolean as a parameter in binary."""
    return b"\1" if value else b"\0"


def numbers(values: Iterable[int]) -> bytes:
    """Return whole numbers as an array in binary."""
    return _array(NUMBER, [_NUMBER(value) for value in values])


def texts(values: Iterable[str]) -> bytes:
    """Return texts as an array in binary."""
    return _array(TEXT, [value.encode() for value in values])


def byte_strings(values: Sequence[bytes]) -> bytes:
    """Return byte strings as an array in binary."""
    return _array(BYTE_STRING, values)


def typed_value(value: Any) -> tuple[int, bytes | None]:  # what a column takes
    """Return PostgreSQL's type of a parameter, 0 where the statement gives it, and the value in binary.

    Raises:
        TypeError: no column takes such a value.
    """
    kind: type[object] = value.__class__
    if kind is int:
        return NUMBER, _NUMBER(value)
    if kind is str:
        return TEXT, (value.replace("\0", _NUL) if "\0" in value else value).encode()
    if kind is bytes:
        return BYTE_STRING, value
    if value is None:
        return 0, None
    if kind is IdText:
        return BYTE_STRING, ID_TEXT + value.encode()
    if kind is list:
        return TEXTS, texts(value)
    if kind is float:
        return REAL, _REAL(value)
    if kind is bool:
        return TRUTH, truth(value)
    raise TypeError(f"no column takes {value!r}")


def _array(of: int, values: Sequence[bytes]) -> bytes:
    """Return an array of one dimension, without nulls: psycopg's own way takes ten times as long."""
    parts = [_ARRAY(1, 0, of, len(values), 1)]
    for value in values:
        parts += (_SIZE(len(value)), value)
    return b"".join(parts)
