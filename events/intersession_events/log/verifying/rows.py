"""Reads the rows of a log as they are stored, unproven, past damaged pages and columns of any content."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol, TypeVar

from intersession_events.basics.errors import CorruptEvent
from intersession_events.log.log import Log
from intersession_events.log.row_state import Envelope, opened
from intersession_events.log.sql import Row
from intersession_events.log.verifying.encrypted_rows import Unseen

PAGE: Final = 2000
_FAR: Final = 2**40
"""More events than any log has: an unreadable part reaches to its end."""

_Read = TypeVar("_Read")


class RawLog(Log, Protocol):
    """A log that also tells the last position it ever assigned."""

    def positions_given(self) -> int:
        """Return the last position that was ever assigned."""
        ...

    def table_problems(self) -> Iterator[str]:
        """Say what is wrong with the tables beside the events, and with their positions."""
        ...

    def encrypted(self, envelope: Envelope) -> Unseen | str:
        """Say why an encrypted row can't be seen, or in words what is wrong with it."""
        ...

    def unread(self) -> Sequence[str]:
        """Say in sentences which data beside the events no verification reads."""
        ...


def rows_of(log: RawLog, lose: Callable[[int, CorruptEvent], None] | None = None) -> Iterator[Row]:
    """Yield all rows. At a damaged page of the file, call `lose` with the position before it, and go on with the readable rest.

    Raises:
        CorruptEvent: a page is damaged, and nobody wants to hear of it.
    """
    after: int | None = None
    limit, step = PAGE, 1
    while True:
        try:
            page = log.rows(after=after, limit=limit)
        except CorruptEvent as error:
            if lose is None:
                raise
            if limit > 1:
                limit = max(1, limit // 8)  # what lies before it can be read
                continue
            reached = after or 0
            if step == 1:
                lose(reached, error)
            if reached > _FAR:
                return
            after, step = reached + step, step * 2
            continue
        if not page:
            return
        yield from page
        after, limit, step = page[-1][0], PAGE if step == 1 else 1, 1


def heard_before(_after: int, _error: CorruptEvent) -> None:
    """Ignore a damaged page: the first pass has reported it."""


def read_or(read: Callable[[], _Read], otherwise: _Read) -> _Read:
    """Read something; a damaged page of the file is reported with the rows."""
    try:
        return read()
    except CorruptEvent:
        return otherwise


def envelope_in(row: Row) -> Envelope | str:
    """Return the envelope of a row, or the problem with its form. Columns of a damaged file can hold anything."""
    _, stream, version, topic, state = row
    if not (isinstance(stream, str) and isinstance(version, int) and isinstance(topic, str)):
        return "a column holds a value of a wrong type"
    try:
        return opened(state, where="the row")
    except CorruptEvent as error:
        return str(error)
