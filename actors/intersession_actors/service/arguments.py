"""Reads a tool's arguments: strictly, and so that a refusal names the field and what to do."""

import math
import re
from typing import Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from intersession_actors.errors import ToolRefused
from intersession_events.plain_json import JsonMapping, JsonObject

A = TypeVar("A", bound=msgspec.Struct)

_MISSING: Final = re.compile(
    r"Object missing required field `(?P<field>[^`]+)`(?: - at `\$\.?(?P<at>[^`]*)`)?"
)
_UNKNOWN: Final = re.compile(
    r"Object contains unknown field `(?P<field>[^`]+)`(?: - at `\$\.?(?P<at>[^`]*)`)?"
)
_WRONG: Final = re.compile(r"(?P<what>.*) - at `\$\.?(?P<at>[^`]*)`", re.DOTALL)
_TYPES: Final = {"int": "integer", "float": "number", "str": "string", "bool": "boolean"}
_TYPE: Final = re.compile(r"\b(?:int|float|str|bool)\b")


def read_arguments(kind: type[A], arguments: JsonMapping) -> A:
    """Return the arguments as the tool's struct.

    Raises:
        ToolRefused: `invalid_request`, naming the field: missing, unknown, of the wrong type, or no valid Unicode.
    """
    try:
        msgspec.json.encode(arguments)
    except UnicodeEncodeError:
        raise invalid(
            _not_unicode(arguments), "a text is not valid Unicode (a lone surrogate), send valid text"
        ) from None
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise invalid("arguments", f"they are not a JSON object ({error}), send one") from None
    try:
        return msgspec.convert(arguments, kind)
    except msgspec.ValidationError as error:
        raise _named(str(error), kind) from None


def shown_arguments(arguments: JsonMapping) -> JsonObject:
    """Return the arguments as a receipt shows them: without the words, which are in the log already."""
    return {
        name: value for name, value in arguments.items() if name not in {"message", "task", "attachments"}
    }


def whole(value: float, field: str) -> int:
    """Return a number without its fraction.

    Raises:
        ToolRefused: it is infinite or none.
    """
    if not math.isfinite(value):
        raise invalid(field, f"{value} is no number to count by, give a finite one")
    return math.floor(value)


def clamped(value: int, low: int, high: int) -> int:
    """Return the number, or the bound that it is beyond."""
    return max(low, min(high, value))


def invalid(field: str, what: str) -> ToolRefused:
    """Return the refusal of a field: `<field>: <what is wrong>, <what to do>`."""
    return ToolRefused("invalid_request", f"{field}: {what}")


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
    return invalid(at or "arguments", f"{_in_words(what)}, {_what_to_do(what, kind, at)}")


def _in_words(what: str) -> str:
    """Return what is wrong, with JSON's names of types in the place of Python's."""
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


def _not_unicode(arguments: JsonMapping) -> str:
    """Return the field whose text can't be encoded, itself made harmless."""
    for name, value in arguments.items():
        try:
            msgspec.json.encode({name: value})
        except UnicodeEncodeError:
            return name.encode("ascii", "backslashreplace").decode()
    return "arguments"


def _path(at: str | None, field: str) -> str:
    return f"{at}.{field}" if at else field
