"""How far long work has come: what it tells its caller while it goes on."""

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Hears how much is done, and how much there is: positions of a log, events, rows or bytes, as the work counts."""


def not_told(_done: int, _of: int) -> None:
    """Hear of progress without telling anybody."""
