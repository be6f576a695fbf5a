"""The processes beside the writer of a log: standbys that wait for it, and doors that follow it (STBY-5)."""

from collections.abc import Sequence
from typing import Final, Literal, Protocol

import msgspec

from intersession_events.facts import ready

HostKind = Literal["standby", "door"]

ALIVE_S: Final = 15
"""After this number of seconds without a word a host is not named any more."""


@ready
class Host(msgspec.Struct, frozen=True, kw_only=True):
    """A process beside the writer, as it announces itself. It is shown, and nothing follows from it.

    `name` is one for each process. `machine` is the name of its machine, `address` that of its gateway, if it has one.
    `position` is how far a door has followed the log, `behind` how many events it had still to read then. `since` is in milliseconds since 1970, by the clock of the store.
    """

    name: str
    kind: HostKind
    machine: str
    pid: int
    version: str
    address: str | None = None
    position: int | None = None
    behind: int | None = None
    since: int = 0


class Hosts(Protocol):
    """Where the hosts beside a log's writer announce themselves. Any thread may call it; each method blocks.

    Each method raises `StoreUnavailable` where the store is away, or gives this user no right to it.
    """

    def announce(self, host: Host) -> None:
        """Say that a host is there, for `ALIVE_S` seconds from now; again with each change."""
        ...

    def leave(self, name: str) -> None:
        """Say that a host has ended."""
        ...

    def alive(self) -> Sequence[Host]:
        """Return the hosts that are there now, by name."""
        ...
