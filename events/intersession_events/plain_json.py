"""Walks the strings of a JSON value, however deep it is. Pure."""

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard, cast


def as_object(value: Any) -> dict[str, Any] | None:
    """Return a value if it is a JSON object."""
    return cast("dict[str, Any]", value) if _is(value, dict) else None


def as_list(value: Any) -> list[Any] | None:
    """Return a value if it is a JSON array."""
    return cast("list[Any]", value) if _is(value, list) else None


def _is(value: Any, kind: type) -> bool:
    return isinstance(
        value, kind
    )  # apart, because a type checker would take the value for a list of unknowns


def map_strings(
    value: Any,
    change: Callable[[str | None, str], str],
    name_of: Callable[[str | None, str], str | None] = lambda _, key: key,
) -> Any:
    """Return a copy of a JSON value with every string changed.

    `change` gets the name of the field a string is in, and the string; `name_of` says by which name the value of a
    key goes, given the name of what it is in. There is no recursion: an import may hold what is nested very deep.
    """
    whole = [value]
    left: list[tuple[Any, Any, str | None]] = [(whole, 0, None)]
    while left:
        place, at, name = left.pop()
        value = place[at]
        if isinstance(value, str):
            place[at] = change(name, value)
        elif (fields := as_object(value)) is not None:
            place[at] = copied = dict(fields)
            left.extend((copied, key, name_of(name, key)) for key in copied)
        elif (items := as_list(value)) is not None:
            place[at] = listed = list(items)
            left.extend((listed, index, name) for index in range(len(listed)))
    return whole[0]


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether this is a JSON object. Its keys have to be known to be strings."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether this is a JSON list."""
    return isinstance(value, list)


def is_list_like(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether this is a JSON list, or a host's tuple that stands for one."""
    return isinstance(value, list | tuple)
