"""What a JSON value is, asked in one way by all who read JSON that is not ours; and a walk over its strings. Pure."""

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether this is a JSON object. Its keys have to be known to be strings."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether this is a JSON list."""
    return isinstance(value, list)


def is_list_like(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether this is a JSON list, or a host's tuple that stands for one."""
    return isinstance(value, list | tuple)


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
        elif is_object(value):
            place[at] = fields = dict(value)
            left.extend((fields, key, name_of(name, key)) for key in fields)
        elif is_list(value):
            place[at] = items = list(value)
            left.extend((items, index, name) for index in range(len(items)))
    return whole[0]
