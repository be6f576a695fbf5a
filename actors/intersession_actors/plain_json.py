"""Tells plain JSON values apart, for readers of what somebody else wrote."""

from collections.abc import Sequence
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
