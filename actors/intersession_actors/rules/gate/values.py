"""Checks values from outside before they have any effect: number, depth, length, and whether JSON can hold them."""

import math
from typing import Final, Literal, NamedTuple

import msgspec

from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import ARGUMENTS, DEPTH, VALUES, WAIT
from intersession_events.basics.plain_json import (
    JsonList,
    JsonMapping,
    JsonValue,
    is_list_like,
    is_object,
    is_too_deep,
)

_MOST_BITS: Final = 1023
"""What has more is beyond the range of JSON's numbers, which are doubles."""
_SCANNED: Final = 1 << 16
_TEXT: Final = frozenset({str})
_FLAT: Final = frozenset({str, int, float, bool, type(None)})
"""The types of what nearly all calls give: values side by side, of no class of the host's own."""


class Flaw(NamedTuple):
    """The problem of a value. `field` is the first name on the way to it."""

    code: Literal["invalid_request", "too_large"]
    field: str
    what: str


def is_storable(text: str) -> bool:
    """Whether UTF-8 can hold a text: it has no unpaired surrogates. Does not copy a long text."""
    if text.isascii():
        return True
    try:
        for at in range(0, len(text), _SCANNED):
            text[at : at + _SCANNED].encode()
    except UnicodeEncodeError:
        return False
    return True


def storable(text: str) -> str:
    r"""Return a text with unpaired surrogates spelled out (`\udce9`)."""
    return text if is_storable(text) else text.encode("utf-8", "backslashreplace").decode()


def storable_value(value: JsonValue) -> JsonValue:
    r"""Return a value of texts, lists and objects with unpaired surrogates spelled out (`\udce9`), also in field names."""
    if isinstance(value, str):
        return storable(plain_text(value))
    if is_object(value):
        return {storable_value(key): storable_value(item) for key, item in value.items()}
    return [storable_value(item) for item in value] if is_list_like(value) else value


def plain_text(text: str) -> str:
    """Return a text of a host's subclass (markup, a member of an enum) as a plain one: the log takes no other.

    Its own methods are not asked: they may do anything, wherever the text goes.
    """
    return text if type(text) is str else str.__str__(text)


def plain(value: JsonValue) -> JsonValue:
    """Return a value, not too deep, with plain texts alone, also in field names."""
    if isinstance(value, str):
        return plain_text(value)
    if is_object(value):
        if _TEXT.issuperset(map(type, value)) and _FLAT.issuperset(map(type, value.values())):
            return value
        return {plain(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if is_list_like(value) else value


def flaw_of(fields: JsonMapping, *, most: int = ARGUMENTS.most) -> Flaw | None:
    """Return the first problem of named values, or None. `most` is for the characters of all their texts.

    Lengths are looked at first, and nothing is copied: what is far too long costs no memory. A value outside of JSON,
    such as a host's own object, is not judged here.
    """
    if _is_flat_and_sound(fields, most):
        return None
    count = _Count(most)
    for key, value in fields.items():
        field = _field(key)
        if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
            return Flaw("invalid_request", field, "the name of a field is no text, give one")
        if is_too_deep(value):
            return Flaw("invalid_request", field, f"nested deeper than {DEPTH.most} levels, give less")
        flaw = count.flaw(field, [key, value])
        if flaw is not None:
            return flaw
    for field, text in count.texts:
        if not is_storable(text):
            return Flaw(
                "invalid_request", field, "a text is not valid Unicode (a lone surrogate), send valid text"
            )
    return None


def _is_flat_and_sound(fields: JsonMapping, most: int) -> bool:
    """Whether nothing is wrong with values that are side by side. What this can't say is looked at one by one."""
    characters = 0
    texts: list[str] = []
    for key, value in fields.items():
        if type(key) is not str or type(value) not in _FLAT:
            return False
        characters += len(key)
        texts.append(key)
        if isinstance(value, str):
            characters += len(value)
            texts.append(value)
        elif value is not None and _flaw_of_number(value) is not None:
            return False
    if characters > most or 2 * len(fields) > VALUES.most:
        return False
    return all(map(str.isascii, texts)) or all(map(is_storable, texts))


class _Count:
    """Counts what one call gives, value by value, without recursion."""

    def __init__(self, most: int) -> None:
        self.texts: list[tuple[str, str]] = []
        """All texts, each with the field that it is in."""
        self._most = most
        self._characters = 0
        self._values = 0

    def flaw(self, field: str, left: JsonList) -> Flaw | None:
        """Count all that is left of a field."""
        while left:
            item = left.pop()
            self._values += 1
            if isinstance(item, str):
                self._characters += len(item)
                self.texts.append((field, item))
            elif is_object(item):
                left += (*item.keys(), *item.values())
            elif is_list_like(item):
                left += item
            elif (what := _flaw_of_number(item)) is not None:
                return Flaw("invalid_request", field, what)
            if self._characters > self._most:
                return Flaw("too_large", field, f"more than {self._most} characters in all, give less")
            if self._values + len(left) > VALUES.most:
                return Flaw("too_large", field, f"more than {VALUES.most} values in all, give less")
        return None


def _flaw_of_number(item: object) -> str | None:
    if isinstance(item, float) and not math.isfinite(item):
        return f"{item} is no number of JSON, give a finite one"
    if isinstance(item, int) and item.bit_length() > _MOST_BITS:
        return "the number is beyond what JSON can say, give a smaller one"
    return None


def _field(key: object) -> str:
    """Return the name of a field, itself made harmless."""
    text = key if isinstance(key, str) else type(key).__name__
    return text[:128].encode("ascii", "backslashreplace").decode()


def invalid(field: str, what: str) -> ToolRefused:
    """Return the refusal of a field: `<field>: <what is wrong>, <what to do>`."""
    return ToolRefused("invalid_request", f"{field}: {what}")


def seconds_of(field: str, value: object, *, most: int = WAIT.most) -> float:
    """Return a time as a number of seconds, from 0 to `most`.

    Raises:
        ToolRefused: it is not a number (like `true` and `"3"`), or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid(field, f"it is no number but {type(value).__name__}, give seconds from 0 to {most}")
    if isinstance(value, float) and not math.isfinite(value):
        raise invalid(field, f"{value} is no time, give seconds from 0 to {most}")
    if not 0 <= value <= most:
        raise invalid(field, f"out of range, give seconds from 0 to {most}")
    return float(value)


def position_of(field: str, value: object) -> int:
    """Return a given position of the log.

    Raises:
        ToolRefused: it is no whole number from 0 on that a log could have.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise invalid(field, "it is no position, give a whole number from 0 on")
    return value


def json_or_text(source: str) -> JsonValue:
    """Return a text's value as JSON, or the text itself if it is not valid JSON."""
    try:
        value: JsonValue = msgspec.json.decode(source)
    except (ValueError, RecursionError):
        return source
    return value
