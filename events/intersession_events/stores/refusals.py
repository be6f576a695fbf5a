"""Batches that one of our own statements, or a view's code, refused: their work is written piece by piece, and somebody has to see."""

import logging
import traceback
from collections.abc import Callable
from pathlib import PurePath
from typing import Final, NamedTuple

from intersession_events.basics.errors import LogError
from intersession_events.stores.database import Failures
from intersession_events.stores.later import tell

_LOGGER: Final = logging.getLogger("intersession.store")


class RefusedBatch(NamedTuple):
    """A batch that could not be written as a whole; each piece of its work was tried again alone.

    `error` says which statement or which line refused it, and nothing of what was to be written. `pieces` is how many there were.
    """

    error: str
    pieces: int


OnRefused = Callable[[RefusedBatch], None]
"""Hears of a refused batch, from the writer's thread: it must not block."""


class Refusals:
    """Tells of refused batches: a listener of each, else the log of the process, once of each error."""

    def __init__(self) -> None:
        self._listener: OnRefused = self._log
        self._said: set[str] = set()

    def listen(self, listener: OnRefused) -> None:
        """Tell a listener from now on, instead of the log of the process."""
        self._listener = listener

    def note(self, error: BaseException | None, failures: Failures, pieces: int) -> None:
        """Note why a batch was refused. What a caller itself is told by a typed error is no refusal of ours."""
        if error is None or isinstance(error, LogError):
            return
        said = failures.without_data(error) if failures.is_known(error) else _where(error)
        tell(self._listener, RefusedBatch(said, pieces))

    def _log(self, refused: RefusedBatch) -> None:
        if refused.error not in self._said:
            self._said.add(refused.error)
            _LOGGER.warning(
                "a batch of %d was refused and is written one by one, which is slow: %s. Told once; it is a fault of this software",
                refused.pieces,
                refused.error,
            )


def _where(error: BaseException) -> str:
    """Return the kind of an error of Python's and the line that raised it: its words may hold what was to be written."""
    frames = traceback.extract_tb(error.__traceback__)
    last = f" in {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{last}"
