"""What the process says of itself on the console of a command that serves: every line of `logging`, with time and traceback."""

import logging
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from intersession.cli.shell.terminal import shown

if TYPE_CHECKING:
    from intersession_actors.config import Logging

ROOT: Final = "intersession"


class _Lines(logging.Formatter):
    """Times in UTC, and nothing that steers a terminal."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")
        self.default_msec_format = "%s.%03dZ"
        self.converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as it is printed."""
        return shown(super().format(record))


@contextmanager
def console_log(settings: "Logging") -> Generator[None]:
    """Print what our loggers say to standard error while the block lasts, from the level of the configuration on."""
    logger = logging.getLogger(ROOT)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    use_level(settings)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before
        logger.setLevel(before[0])


def use_level(settings: "Logging") -> None:
    """Say no more than `logging.level` asks for."""
    logging.getLogger(ROOT).setLevel(settings.threshold)
