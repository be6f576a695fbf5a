"""JSON values of others: what one is, how deep it is nested, a walk over its strings.

A value of JSON is `Any` here, and not a union that names itself: the readers of JSON (msgspec, json, json5, tomllib)
promise no more than that, so each value that comes in would need a cast; and a list of a narrower type is no list of
the union for a type checker, so each value that goes out would need one, too. A reader checks the type first. Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeGuard

JsonValue: TypeAlias = Any  # whatever a reader of JSON returns: see above
"""One value of JSON."""

JsonObject: TypeAlias = dict[str, JsonValue]
"""A JSON object, by whoever makes it."""

JsonMapping: TypeAlias = Mapping[str, JsonValue]
"""A JSON object, for whoever only reads it."""

JsonList: TypeAlias = list[JsonValue]
"""A JSON list."""

MOST_LEVELS: Final = 64
"""The deepest nesting of lists and objects in the log: readers with a deep stack could not read more."""


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Whether this is a JSON object. Its keys have to be known to be strings."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[JsonList]:
    """Whether this is a JSON list."""
    return isinstance(value, list)


def is_list_like(value: object) -> TypeGuard[Sequence[JsonValue]]:
    """Whether this is a JSON list, or a host's tuple that stands for one."""
    return isinstance(value, list | tuple)


def present(fields: JsonMapping) -> JsonObject:
    """Return the fields that have a value: what is None is left out."""
    return {name: value for name, value in fields.items() if value is not None}


def is_too_deep(value: object) -> bool:
    """Whether lists and objects are nested deeper than may be recorded. Does not recurse."""
    if not isinstance(value, dict | list | tuple):
        return False  # as nearly all are
    level: JsonList = [value]
    for _ in range(MOST_LEVELS):
        level = [
            inner
            for item in level
            for inner in (item.values() if is_object(item) else item if is_list_like(item) else ())
        ]
        if not level:
            return False
    return any(is_object(item) or is_list_like(item) for item in level)


def map_strings(
    value: JsonValue,
    change: Callable[[str | None, str], str],
    name_of: Callable[[str | None, str], str | None] = lambda _, key: key,
    named_in: Callable[[JsonObject | JsonList], Mapping[str | int, str]] = lambda _: {},
    *,
    number: Callable[[str | None, float], JsonValue] | None = None,
    rename: Callable[[str], str] | None = None,
) -> JsonValue:
    """Return a copy of a JSON value with every string changed.

    `change` gets the name of the field a string is in, and the string; `name_of` says by which name the value of a
    key goes, given the name of what it is in; `named_in` gives the names of items of a list or fields of an object that go by
    another one than their own; `number` changes numbers likewise, and `rename` the keys themselves. There is no recursion: an import may hold what is nested very deep.
    """
    whole = [value]
    left: list[tuple[JsonValue, str | int, str | None]] = [(whole, 0, None)]
    while left:
        place, at, name = left.pop()
        value = place[at]
        if isinstance(value, str):
            place[at] = change(name, value)
        elif number is not None and isinstance(value, int | float) and not isinstance(value, bool):
            place[at] = number(name, value)
        elif is_object(value):
            place[at] = fields = dict(value)
            others = named_in(fields)
            if rename is not None:
                place[at] = fields = {rename(key): part for key, part in fields.items()}
            left.extend((fields, key, others.get(key) or name_of(name, key)) for key in fields)
        elif is_list(value):
            place[at] = items = list(value)
            others = named_in(items)
            left.extend((items, index, others.get(index, name)) for index in range(len(items)))
    return whole[0]
