"""The target of a copied log: takes its rows, and becomes a log only when it is complete."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from intersession_events.stores.database import Row
from intersession_events.stores.portable.log import PortableLog


class Moved(NamedTuple):
    """The facts about a copied log beside its events."""

    log_id: str
    epoch: int
    created_ms: int
    given: int
    """The last position that was ever given."""
    topics: Collection[str]


class Filling(Protocol):
    """A place that is being filled with a log. Nothing can open that log before `finish`."""

    @property
    def shown(self) -> str:
        """The place, without a password."""
        ...

    def whole(self) -> PortableLog | None:
        """Open a log that is already complete there, for reading; None if there is none.

        Raises:
            MigrationFailed: there is something else.
        """
        ...

    def begin(self, log: Moved) -> int:
        """Make room for a log, or continue an earlier attempt; return the last position that is there.

        Raises:
            MigrationFailed: another log was begun there, or it can't be written.
        """
        ...

    def put(self, rows: Sequence[Row], *, after: int) -> None:
        """Add rows behind a position, durably: all of them or none."""
        ...

    def cut(self, after: int) -> None:
        """Remove the rows behind a position."""
        ...

    def reading(self) -> PortableLog:
        """Open what has arrived so far, for reading."""
        ...

    def finish(self) -> None:
        """Turn it into a log that can be opened."""
        ...

    def close(self) -> None:
        """Let go of the place; its content stays."""
        ...
