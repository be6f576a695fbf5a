"""A logger for messages that strangers can cause: a number of lines of a kind a minute, others are only counted."""

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

MOST_TOLD: Final = 30
"""Warnings of one kind within a minute."""

WINDOW_S: Final = 60.0


class _Limit(logging.Filter):
    """Lets a limited number of warnings of each kind through; a kind is a message before its values are put in. Errors always pass."""

    def __init__(self, shared: logging.Logger, monotonic: Callable[[], float]) -> None:
        super().__init__()
        self._shared = shared
        self._monotonic = monotonic
        self._since: dict[str, float] = {}
        self._told: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is written. The last one says that others follow, the next one later how many there were."""
        if record.levelno >= logging.ERROR or not self._shared.isEnabledFor(record.levelno):
            return self._shared.isEnabledFor(record.levelno)
        kind, now = str(record.msg), self._monotonic()
        before = 0
        if now - self._since.get(kind, now - WINDOW_S) >= WINDOW_S:
            before = max(0, self._told[kind] - MOST_TOLD)
            self._since[kind], self._told[kind] = now, 0
        self._told[kind] += 1
        if self._told[kind] > MOST_TOLD:
            return False
        if before:
            record.msg = f"{kind} (and {before} like it before, which were only counted)"
        elif self._told[kind] == MOST_TOLD:
            record.msg = f"{kind} (more of this kind are only counted for a minute)"
        return True


def limited_logger(name: str, monotonic: Callable[[], float]) -> logging.Logger:
    """Return a logger with a limit of its own, which writes to the logger of this name; warnings and worse only."""
    logger = logging.Logger(name, logging.WARNING)  # noqa: LOG001 - one for each gateway, each with its own count
    shared = logger.parent = logging.getLogger(name)
    logger.addFilter(_Limit(shared, monotonic))
    return logger
