"""Decodes what LangGraph has serialised, into plain JSON. Nothing is ever constructed, imported or unpickled (IN-2)."""

import datetime as dt
import math
from base64 import b64encode
from functools import cached_property
from typing import Final

import msgspec

from intersession_events.basics.plain_json import (
    JsonObject,
    JsonValue,
    is_list,
    is_list_like,
    is_object,
    is_too_deep,
)
from intersession_events.transcripts.foreign.lines import encoded

MOST_BYTES: Final = 64 * 1024 * 1024
_MESSAGES: Final = "langchain_core.messages"
_BARE: Final = frozenset(
    ["builtins", "collections", "datetime", "decimal", "ipaddress", "pathlib", "re", "uuid", "zoneinfo"]
)
"""Modules whose values say all by themselves: a number, a text, a list."""
_OBJECTS: Final = range(6)
"""Codes of extension types that hold `[module, name, value, …]`."""
_ARRAY, _SNAPSHOT = 6, 7
_MOST_NESTED: Final = 32
_MOST_REMEMBERED: Final = 20_000
_EMPTY: Final = frozenset(["null", "empty"])


class Undecodable(Exception):
    """A value can't be read; the message is the reason for the report."""


class LangMessage(dict[str, JsonValue]):
    """A message of LangChain, as the object that it was dumped to."""

    @cached_property
    def content(self) -> bytes:
        """The bytes that tell it from every other one."""
        return encoded(self)


class Decoder:
    """Decodes values. The same bytes give the same message object: states repeat all messages of those before them."""

    def __init__(self) -> None:
        self._messages: dict[bytes, LangMessage] = {}
        self._depth = 0

    def value(self, kind: object, content: object) -> JsonValue:
        """Return a value of a serialised form `kind`; None for one that is empty.

        Raises:
            Undecodable: it is pickled, encrypted, damaged, too large or too deep.
        """
        if kind is None or kind in _EMPTY:
            return None
        data = content.encode() if isinstance(content, str) else content
        if not isinstance(data, bytes):  # as both drivers give them
            raise Undecodable(f"a value of type {type(content).__name__} where bytes should be")
        if len(data) > MOST_BYTES:
            raise Undecodable(f"longer than {MOST_BYTES} bytes")
        found = self._decoded(kind, data)
        if is_too_deep(found):
            raise Undecodable("nested too deep")
        return found

    def _decoded(self, kind: object, data: bytes) -> JsonValue:
        match kind:
            case "msgpack":
                return self._msgpack(data)
            case "json":
                try:
                    return _revived(msgspec.json.decode(data))
                except (ValueError, RecursionError) as error:
                    raise Undecodable(f"no JSON: {error}") from None
            case "bytes" | "bytearray":
                return {"base64": b64encode(data).decode()}
            case "pickle":
                raise Undecodable("pickled: reading it could run code, so it is not read")
            case str() if "+" in kind:
                raise Undecodable(f"encrypted ({kind})")
            case _:
                raise Undecodable(f"of an unknown form: {str(kind)[:64]!r}")

    def _msgpack(self, data: bytes) -> JsonValue:
        self._depth = 0
        try:
            return plain(msgspec.msgpack.decode(data, ext_hook=self._extension))
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise Undecodable(f"no msgpack: {error}") from None

    def _extension(self, code: int, data: memoryview) -> JsonValue:
        raw = bytes(data)
        if (known := self._messages.get(raw)) is not None:
            return known
        if self._depth >= _MOST_NESTED:
            raise ValueError("nested too deep")
        self._depth += 1
        try:
            found: JsonValue = msgspec.msgpack.decode(raw, ext_hook=self._extension)
        finally:
            self._depth -= 1
        if code == _SNAPSHOT:
            return found
        if code == _ARRAY:
            return {"type": "numpy.ndarray", "value": found}
        if code not in _OBJECTS or not is_list(found) or len(found) < 3:  # noqa: PLR2004 - module, name, value
            raise ValueError(f"an extension of code {code} that is not LangGraph's")
        module, name, value = found[:3]
        if is_object(value) and str(module).startswith(_MESSAGES):
            message = LangMessage(plain(value))
            if len(self._messages) < _MOST_REMEMBERED:
                self._messages[raw] = message
            return message
        return value if module in _BARE else {"type": f"{module}.{name}", "value": value}


def plain(value: JsonValue) -> JsonValue:
    """Return a decoded value as JSON: keys are texts, bytes base64, times and odd numbers texts."""
    if isinstance(value, LangMessage):
        return value
    if is_object(value):
        return {_key(key): plain(item) for key, item in value.items()}
    if is_list_like(value):  # a key may be a tuple
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return {"base64": b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, msgspec.msgpack.Ext):
        return {"code": value.code, "base64": b64encode(value.data).decode()}
    return value


def _key(key: object) -> str:
    return key if isinstance(key, str) else str(plain(key))


def _revived(value: JsonValue) -> JsonValue:
    """Return JSON of the older form with its constructors as the objects that they would make."""
    if is_list(value):
        return [_revived(item) for item in value]
    if not is_object(value):
        return value
    name, kwargs = value.get("id"), value.get("kwargs")
    if value.get("type") == "constructor" and "lc" in value and is_list(name) and is_object(kwargs):
        made: JsonObject = {key: _revived(item) for key, item in kwargs.items()}
        if "messages" in name and name[-1:] and isinstance(name[-1], str):
            kind = name[-1].removesuffix("MessageChunk").removesuffix("Message").lower()
            return LangMessage({"type": kind, **made})
        return {"type": ".".join(map(str, name)), "value": made}
    return {key: _revived(item) for key, item in value.items()}
