"""Who writes a log, as the writer itself has left word for other processes."""

import msgspec

from intersession_events.facts import ready


@ready
class Holder(msgspec.Struct, frozen=True):
    """A process, the epoch that it writes in, and the address of its gateway if it has one."""

    pid: int
    epoch: int = 0
    gateway: str | None = None
    host: str | None = None
    """The machine, where that need not be this one."""
