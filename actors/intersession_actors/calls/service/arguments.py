"""Reads a tool's arguments strictly: a refusal names the field and what to do."""

import math
import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import flaw_of, invalid, plain
from intersession_events.basics.plain_json import JsonMapping, JsonObject

A = TypeVar("A", bound=msgspec.Struct)

_MISSING: Final = re.compile(
    r"Object missing required field `(?P<field>[^`]+)`(?: - at `\$\.?(?P<at>[^`]*)`)?"
)
_UNKNOWN: Final = re.compile(
    r"Object contains unknown field `(?P<field>[^`]+)`(?: - at `\$\.?(?P<at>[^`]*)`)?"
)
_WRONG: Final = re.compile(r"(?P<what>.*) - at `\$\.?(?P<at>[^`]*)`", re.DOTALL)
_LONGER: Final = re.compile(r"Expected `(?P<kind>str|array)` of length <= (?P<most>[0-9]+)")
_PATTERN: Final = re.compile(r"Expected `str` matching regex ")
_MOST_SHOWN: Final = 128
"""The length of typed input in an error."""
_TYPES: Final = {"int": "integer", "float": "number", "str": "string", "bool": "boolean"}
_TYPE: Final = re.compile(r"\b(?:int|float|str|bool)\b")


def read_arguments(kind: type[A], arguments: JsonMapping) -> A:
    """Return the arguments as the tool's struct.

    Raises:
        ToolRefused: `too_large`, or `invalid_request`, naming the field: missing, unknown, of the wrong type, too long,
            nested too deep, or no valid Unicode.
    """
    if not isinstance(arguments, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
        raise invalid("arguments", "they are not a JSON object, send one")
    # Before anything copies them: what is far too long must not cost its length again.
    flaw = flaw_of(arguments)
    if flaw is not None:
        raise ToolRefused(flaw.code, f"{flaw.field}: {flaw.what}")
    try:
        return msgspec.convert(plain({**arguments}), kind)
    except msgspec.ValidationError as error:
        raise _named(str(error), kind) from None


def whole(value: float, field: str) -> int:
    """Return a number without its fraction.

    Raises:
        ToolRefused: it is infinite or none.
    """
    if not math.isfinite(value):
        raise invalid(field, f"{value} is no number to count by, give a finite one")
    return math.floor(value)


class Bounded(NamedTuple):
    """A number within its bounds, and the note in an answer if it differs from the requested one."""

    value: int
    told: JsonObject


def bounded(given: float | None, field: str, low: int, high: int, *, default: int = 0) -> Bounded:
    """Return a number without its fraction, or the bound that it exceeds: then the answer has it as `<field>Applied`.

    Raises:
        ToolRefused: it is infinite or none.
    """
    asked = default if given is None else whole(given, field)
    value = max(low, min(high, asked))
    return Bounded(value, {} if value == asked else {f"{field}Applied": value})


def _named(error: str, kind: type[msgspec.Struct]) -> ToolRefused:
    if missing := _MISSING.fullmatch(error):
        return invalid(_path(missing["at"], missing["field"]), "required, give it")
    if unknown := _UNKNOWN.fullmatch(error):
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(kind))
        return invalid(
            _path(unknown["at"], unknown["field"]), f"unknown field, leave it out (known: {known})"
        )
    wrong = _WRONG.fullmatch(error)
    at, what = (wrong["at"], wrong["what"]) if wrong else ("", error)
    if long := _LONGER.fullmatch(what):
        unit = "characters" if long["kind"] == "str" else "items"
        return invalid(at or "arguments", f"too long, give at most {long['most']} {unit}")
    if _PATTERN.match(what):
        return invalid(at or "arguments", "it has control characters, take them out")
    if len(what) > 2 * _MOST_SHOWN:
        what = f"{what[: 2 * _MOST_SHOWN]}…"
    return invalid(at or "arguments", f"{_in_words(what)}, {_what_to_do(what, kind, at)}")


def _in_words(what: str) -> str:
    """Return the problem, with JSON's names of types in place of Python's."""
    said = what[:1].lower() + what[1:].replace("`", "")
    return _TYPE.sub(lambda match: _TYPES[match[0]], said) if said.startswith("expected") else said


def _what_to_do(what: str, kind: object, at: str) -> str:
    if "enum value" not in what:
        return "give it as that type" if what.startswith("Expected") else "give another"
    for name in re.findall(r"[^.\[\]]+", at):
        if not name.isdigit() and name != "...":
            kind = _field(kind, name)
    return f"give one of {', '.join(_choices(kind))}"


def _field(kind: object, name: str) -> object:
    """Return the type of a field of a struct, or of whatever holds structs."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        attributes = {field.encode_name: field.name for field in msgspec.structs.fields(kind)}
        return get_type_hints(kind, include_extras=True).get(attributes.get(name, name))
    return next((found for inner in get_args(kind) if (found := _field(inner, name)) is not None), None)


def _choices(kind: object) -> list[str]:
    """Return the words that a type allows, if it is one of a few words."""
    if get_origin(kind) is Literal:
        return [str(choice) for choice in get_args(kind)]
    return [choice for inner in get_args(kind) for choice in _choices(inner)]


def _path(at: str | None, field: str) -> str:
    path = f"{at}.{field}" if at else field
    return path if len(path) <= _MOST_SHOWN else f"{path[:_MOST_SHOWN]}…"
