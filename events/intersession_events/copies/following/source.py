"""The log that a copy is taken of, as the copy reads it: here, or through the gateway of its writer."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import Final, NamedTuple, Protocol

from intersession_events.log.sql import COLUMNS, Query, Row, filled
from intersession_events.stores.portable.filling import Moved
from intersession_events.stores.portable.log import PortableLog

_HEAD: Final = "SELECT COALESCE(MAX(rowid), 0) FROM stored_events"
_ROWS: Final = COLUMNS + "WHERE rowid > ? ORDER BY rowid LIMIT ?"
_AT_PLACES: Final = (
    COLUMNS
    + "JOIN (VALUES {}) AS place ON originator_id = place.column1 AND originator_version = place.column2"
)
_A_PLACE: Final = "(?, CAST(? AS BIGINT))"
_AT_ONCE: Final = 64
"""The most places in one statement."""


class Place(NamedTuple):
    """An event by its stream and version."""

    stream: str
    version: int


class Reads(Protocol):
    """Reads a log as it stood at one moment; through a gateway, as it stands at each question."""

    def known(self) -> Moved:
        """Return what is known of it beside its events."""
        ...

    def head(self) -> int:
        """Return the position of its last event."""
        ...

    def rows(self, after: int, limit: int) -> Sequence[Row]:
        """Return the rows behind a position."""
        ...

    def at(self, places: Iterable[Place]) -> Sequence[Row]:
        """Return single rows in the order of their places, as they are now; what is not there is left out."""
        ...


class CopySource(Protocol):
    """A log that copies are taken of."""

    shown: str
    """Its place, without a password."""

    def reading(self) -> AbstractContextManager[Reads]:
        """Lend it for a block."""
        ...

    def files(self) -> Sequence[str]:
        """Return the names of the contents of its files, as they are stored; what is encrypted stays so."""
        ...

    def file(self, name: str) -> bytes | None:
        """Return what is stored under such a name; None where it is gone meanwhile."""
        ...


class LogSource:
    """A log that can be opened here."""

    def __init__(self, log: PortableLog) -> None:
        self._log = log
        self.shown = log.path
        self.keys = log.keys
        """The keys of its words, where it is kept encrypted."""

    @contextmanager
    def reading(self) -> Generator[Reads]:
        """Lend the log as it stands at one moment."""
        with self._log.as_stored(), self._log.stored() as seen:
            yield _Stored(self._log, seen)

    def files(self) -> Sequence[str]:
        """Return the names of the contents of its files."""
        return self._log.files.stored_names()

    def file(self, name: str) -> bytes | None:
        """Return what is stored under such a name."""
        return self._log.files.stored(name)


class _Stored:
    def __init__(self, log: PortableLog, seen: Query) -> None:
        self._log = log
        self._seen = seen

    def known(self) -> Moved:
        ((log_id, epoch, created_ms),) = self._seen("SELECT log_id, epoch, created_ms FROM log_identity", ())
        topics = [topic for (topic,) in self._seen("SELECT topic FROM log_topics", ())]
        return Moved(log_id, epoch, created_ms, max(self._log.positions_given(), self.head()), topics)

    def head(self) -> int:
        ((head,),) = self._seen(_HEAD, ())
        found: int = head
        return found

    def rows(self, after: int, limit: int) -> Sequence[Row]:
        return self._seen(_ROWS, (after, limit))

    def at(self, places: Iterable[Place]) -> Sequence[Row]:
        left, found = iter(places), list[Row]()
        while some := list(islice(left, _AT_ONCE)):
            asked = filled(some)
            statement = _AT_PLACES.format(", ".join([_A_PLACE] * len(asked)))
            rows = {
                Place(row[1], row[2]): row
                for row in self._seen(statement, [part for place in asked for part in place])
            }
            found += (rows[place] for place in some if place in rows)
        return found
