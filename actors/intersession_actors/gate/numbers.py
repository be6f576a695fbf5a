"""Checks numbers that come from outside, before anything is done because of them."""

import math

from intersession_actors.errors import ToolRefused
from intersession_actors.gate.limits import WAIT


def invalid(field: str, what: str) -> ToolRefused:
    """Return the refusal of a field: `<field>: <what is wrong>, <what to do>`."""
    return ToolRefused("invalid_request", f"{field}: {what}")


def seconds_of(field: str, value: object, *, most: int = WAIT.most) -> float:
    """Return a time as a number of seconds, from 0 to `most`.

    Raises:
        ToolRefused: it is no number (`true` and `"3"` are none), or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid(field, f"it is no number but {type(value).__name__}, give seconds from 0 to {most}")
    if isinstance(value, float) and not math.isfinite(value):
        raise invalid(field, f"{value} is no time, give seconds from 0 to {most}")
    if not 0 <= value <= most:
        raise invalid(field, f"out of range, give seconds from 0 to {most}")
    return float(value)


def position_of(field: str, value: object) -> int:
    """Return a position of the log as it was given.

    Raises:
        ToolRefused: it is no whole number from 0 on that a log could have.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise invalid(field, "it is no position, give a whole number from 0 on")
    return value
