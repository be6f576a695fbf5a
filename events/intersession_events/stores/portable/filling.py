"""What a store does for a log that is copied there: takes its rows, and makes them a log only when they are whole."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from intersession_events.stores.database import Row
from intersession_events.stores.portable.log import PortableLog


class Moved(NamedTuple):
    """A log that is copied: what is known of it beside its events."""

    log_id: str
    epoch: int
    created_ms: int
    given: int
    """The last position that was ever given."""
    topics: Collection[str]


class Filling(Protocol):
    """A place that is filled with a log. Nobody can open that log before `finish`."""

    @property
    def shown(self) -> str:
        """Where it is, without a password."""
        ...

    def whole(self) -> PortableLog | None:
        """Open the log that is there already, to read it; None if there is none, or one that is not whole.

        Raises:
            MigrationFailed: there is something else.
        """
        ...

    def begin(self, log: Moved) -> int:
        """Make room for a log, or take up what was begun; return the last position that is there.

        Raises:
            MigrationFailed: another log was begun there, or it can't be written.
        """
        ...

    def put(self, rows: Sequence[Row], *, after: int) -> None:
        """Take rows behind a position, durably: all of them or none."""
        ...

    def cut(self, after: int) -> None:
        """Take away the rows behind a position."""
        ...

    def reading(self) -> PortableLog:
        """Open what is there by now, to read it."""
        ...

    def finish(self) -> None:
        """Make what is there a log that can be opened."""
        ...

    def close(self) -> None:
        """Let go of it; what is there stays."""
        ...
