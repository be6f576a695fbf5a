"""Compares plain JSON with the shape of a configuration: every unknown key and bad value, each with its path (CFG-1)."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from types import NoneType, UnionType
from typing import Final, Literal, TypeAlias, Union, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo

from intersession_actors.rules.config.settings import ChannelDelivery, Settings, ThreadBindings
from intersession_actors.rules.config.unused import IGNORED, REFUSED, restrictions_of_channel
from intersession_actors.rules.errors import ConfigProblem
from intersession_events.basics.plain_json import JsonObject, JsonValue, is_list, is_object

_SECRET: Final = re.compile(r"token|password|secret|apikey", re.IGNORECASE)
Expected: TypeAlias = object
"""A type as an annotation spells it: a class, a union, `tuple[str, ...]`."""

_WORDS: Final = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


class Checked:
    """What a check found: `problems` to refuse for, `ignored` places that mean nothing here."""

    def __init__(self) -> None:
        self.problems: list[ConfigProblem] = []
        self.ignored: list[str] = []

    def object(self, value: JsonValue, shape: type[Settings], path: str = "") -> JsonObject:
        """Return the object without the keys that mean nothing here."""
        if not is_object(value):
            self._problem(path, f"expected an object, got {_name(value)}")
            return {}
        fields = _fields_of(shape)
        ignored, restricting = IGNORED.get(_place(path), frozenset()), REFUSED.get(_place(path), {})
        kept: JsonObject = {}
        for key, inner in value.items():
            at = f"{path}.{key}" if path else str(key)
            if key in fields:
                kept[key] = self._value(inner, fields[key].type, at)
            elif key in restricting and restricting[key].is_in(inner):
                self._problem(at, restricting[key].refusal)
            elif key in ignored or key in restricting:
                self.ignored.append(at)
            else:
                self._problem(at, _unknown(str(key), [*fields]))
        for field in fields.values():
            if field.encode_name not in value and _is_required(field):
                self._problem(f"{path}.{field.encode_name}", "is missing; give it")
        return kept

    def channels(self, channels: JsonValue) -> None:
        """Check the parts of each channel's settings that are read here; the rest is the channel's own."""
        for name, channel in channels.items() if is_object(channels) else ():
            if is_object(channel) and "threadBindings" in channel:
                self.object(channel["threadBindings"], ThreadBindings, f"channels.{name}.threadBindings")
            if is_object(channel) and "deliver" in channel:
                ours = _fields_of(ChannelDelivery)
                delivery = {key: value for key, value in channel.items() if key in ours}
                self.object(delivery, ChannelDelivery, f"channels.{name}")
            self.problems.extend(restrictions_of_channel(channel, f"channels.{name}"))

    def _value(self, value: JsonValue, expected: Expected, path: str) -> JsonValue:
        if value is None:
            self._problem(path, f"null is no value{_allowed(expected)}; leave the key out for the default")
            return None
        if shape := _shape_for(value, expected):
            return self.object(value, shape, path)
        origin, arguments = get_origin(expected), get_args(expected)
        if origin in (Union, UnionType) and is_list(value):
            containers = [choice for choice in arguments if get_origin(choice) is tuple]
            if containers:
                return self._value(value, containers[0], path)
        if origin is tuple and is_list(value):
            return [self._value(item, arguments[0], f"{path}[{index}]") for index, item in enumerate(value)]
        if origin is dict and is_object(value) and arguments[1] is not JsonValue:
            return {key: self._value(item, arguments[1], f"{path}.{key}") for key, item in value.items()}
        try:
            msgspec.convert(value, expected)
        except msgspec.ValidationError as error:
            self._problem(path, _bad_value(value, expected, str(error), path))
        return value

    def _problem(self, path: str, what: str) -> None:
        self.problems.append(ConfigProblem(path, what))


@cache
def _fields_of(shape: type[Settings]) -> Mapping[str, FieldInfo]:
    """Return the fields by the names that a configuration has for them. To read their types takes long."""
    return {field.encode_name: field for field in msgspec.structs.fields(shape)}


def _place(path: str) -> str:
    if path.startswith("channels."):
        return f"channels.*.{path.rpartition('.')[2]}"
    return re.sub(r"\[\d+\]", "[]", path)


def _is_required(field: FieldInfo) -> bool:
    return field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT


def _shape_for(value: JsonValue, expected: Expected) -> type[Settings] | None:
    """Return the object that is expected here; where text would do as well, only for an object."""
    choices = [choice for choice in (get_args(expected) or (expected,)) if choice is not NoneType]
    shapes = [choice for choice in choices if isinstance(choice, type) and issubclass(choice, Settings)]
    if get_origin(expected) in (tuple, dict) or not shapes:
        return None
    return shapes[0] if is_object(value) or len(choices) == 1 else None


def _unknown(key: str, known: list[str]) -> str:
    close = get_close_matches(key, known, n=1) or get_close_matches(key.lower(), known, n=1)
    return (
        f"unknown key; did you mean {close[0]}?"
        if close
        else f"unknown key; known here: {', '.join(sorted(known))}"
    )


def _literals(expected: Expected) -> list[str]:
    if get_origin(expected) is Literal:
        return [str(value) for value in get_args(expected)]
    if get_origin(expected) in (Union, UnionType):
        return [text for choice in get_args(expected) for text in _literals(choice)]
    return []


def _allowed(expected: Expected) -> str:
    allowed = _literals(expected)
    return f", allowed: {', '.join(allowed)}" if allowed else ""


def _bad_value(value: JsonValue, expected: Expected, error: str, path: str) -> str:
    if allowed := _allowed(expected):
        shown = f"{value!r} is unknown" if isinstance(value, str) else f"{_name(value)} is no value"
        return shown + allowed
    wanted = re.sub(r"`([a-z |]+)`", lambda found: _plainly(found[1]), error.partition(" - at ")[0])
    if isinstance(value, int | float) and not isinstance(value, bool) and not _SECRET.search(path):
        return f"{wanted[:1].lower()}{wanted[1:].partition(', got')[0]}, got {value!r}"
    return wanted[:1].lower() + wanted[1:]


def _plainly(types: str) -> str:
    return " or ".join(_WORDS.get(kind, kind) for kind in types.split(" | ") if kind != "null") or "null"


def _name(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return "a string"
        case list() | tuple():
            return "a list"
        case _:
            return "an object"
