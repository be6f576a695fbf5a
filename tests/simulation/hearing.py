"""What the log of a simulated system says that nobody should have to hear of."""

import logging
from collections.abc import Generator
from contextlib import contextmanager

from simulation.faults import Crash


class Heard(logging.Handler):
    """Hears of errors that nobody should have to hear of."""

    SAYS = ("must not", "outside its handler", "could not be delivered", "could not be reported")

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what the system itself calls a fault of its own."""
        text = record.getMessage()
        if any(words in text for words in self.SAYS) and not isinstance(
            (record.exc_info or (None, None))[1], Crash
        ):
            self.said.append(f"{text}: {(record.exc_info or (None, None))[1]!r}")


@contextmanager
def hearing() -> Generator[Heard]:
    """Hear of errors also where they are shown to nobody."""
    heard, logger = Heard(), logging.getLogger("intersession")
    level, propagates = logger.level, logger.propagate
    logger.propagate = propagates and logger.isEnabledFor(logging.ERROR)
    logger.setLevel(min(logger.getEffectiveLevel(), logging.ERROR))
    logger.addHandler(heard)
    try:
        yield heard
    finally:
        logger.removeHandler(heard)
        logger.setLevel(level)
        logger.propagate = propagates
