"""Whether somebody writes a log now."""

from intersession_events.log import Log, as_it_is
from intersession_events.stores.portable import PortableLog


def has_writer(log: Log) -> bool:
    """Whether a process writes a log now: only then is anybody at work on what is open in it."""
    log = as_it_is(log)
    return isinstance(log, PortableLog) and (log.epoch > 0 or log.written_by() is not None)
