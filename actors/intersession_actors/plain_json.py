"""Tells plain JSON values apart, for readers of what somebody else wrote."""

from typing import Any, TypeGuard


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether this is a JSON object. Its keys have to be known to be strings."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Whether this is a JSON list; a host's tuple is one too."""
    return isinstance(value, list | tuple)
