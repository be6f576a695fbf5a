"""Reads the table of events, for the log: proves each row, and notices a missing one."""

from collections.abc import Iterator, Sequence
from typing import Final

from intersession_events.errors import CorruptEvent, UnknownTopic
from intersession_events.log import FIRST, Recorded, SqlValue, unseal
from intersession_events.stores.sqlite.failures import typed
from intersession_events.stores.sqlite.readers import Readers, rows

PAGE: Final = 1000
"""Rows fetched at a time; no reader holds a snapshot longer than a page takes."""

Row = tuple[int, str, int, str, bytes]
"""Position, stream, version, topic and state, as they lie in the table."""

COLUMNS: Final = "SELECT rowid, originator_id, originator_version, topic, state FROM stored_events "
"""How each statement begins that reads a `Row`."""

_STREAM_FROM: Final = "SELECT MIN(originator_id) FROM stored_events WHERE originator_id>=?"
_STREAM_AFTER: Final = "SELECT MIN(originator_id) FROM stored_events WHERE originator_id>?"


class EventReader:
    """Reads streams and the whole log on whatever connections it is lent."""

    def __init__(self, readers: Readers, log_id: str) -> None:
        self._readers = readers
        self._log_id = log_id

    def stream(
        self,
        stream: str,
        *,
        after: int = 0,
        to: int | None = None,
        backwards: bool = False,
        limit: int | None = None,
    ) -> Sequence[Recorded]:
        """Read the events of a stream with `after < version <= to`.

        Raises:
            CorruptEvent: one of them was changed or is missing.
            UnknownTopic: one of them is of a newer version.
        """
        statement = COLUMNS + "WHERE originator_id=? AND originator_version>? "
        # A row that somebody gave a version below 1 is read with the others, and does not hash.
        parameters: list[SqlValue] = [stream, after or -(2**63)]
        if to is not None:
            statement += "AND originator_version<=? "
            parameters.append(to)
        statement += f"ORDER BY originator_version {'DESC' if backwards else 'ASC'} LIMIT ?"
        parameters.append(-1 if limit is None else limit)
        with typed():
            found = rows(self._readers, statement, parameters)
        events = [self.proven(row) for row in found]
        whole = limit is None or len(events) < limit
        _check_neighbours(
            events if not backwards else events[::-1], after if whole or not backwards else None
        )
        return events

    def all(self, *, after: int = 0, to: int | None = None, limit: int | None = None) -> Iterator[Recorded]:
        """Read all events with `after < position <= to`, in order, in pages.

        Raises:
            CorruptEvent: a row was changed; its `position` says where to read on.
            UnknownTopic: a row is of a newer version; the same.
        """
        left = limit
        while left is None or left > 0:
            page = self.rows(after=after, to=to, limit=PAGE if left is None else min(PAGE, left))
            for row in page:
                yield self.proven(row)
            if len(page) < PAGE:
                return
            after = page[-1][0]
            left = None if left is None else left - len(page)

    def streams(self, prefix: str) -> list[str]:
        """Return the names of the streams that begin with a prefix, sorted; by the index, one look a stream."""
        names: list[str] = []
        statement, name = _STREAM_FROM, prefix
        while True:
            with typed():
                (found,) = rows(self._readers, statement, (name,))[0]
            if found is None or not found.startswith(prefix):
                return names
            names.append(found)
            statement, name = _STREAM_AFTER, found

    def rows(self, *, after: int = 0, to: int | None = None, limit: int = PAGE) -> list[Row]:
        """Return rows with `after < position <= to` as they lie in the table, unproven."""
        with typed():
            return rows(
                self._readers,
                COLUMNS + "WHERE rowid>? AND rowid<=? ORDER BY rowid LIMIT ?",
                (after, 2**63 - 1 if to is None else to, limit),
            )

    def head(self) -> int:
        """Return the position of the last event; 0 if there is none."""
        with typed():
            position: int = rows(self._readers, "SELECT COALESCE(MAX(rowid), 0) FROM stored_events")[0][0]
        return position

    def positions_given(self) -> int:
        """Return the last position that was ever given to an event."""
        with typed():
            found = rows(self._readers, "SELECT seq FROM sqlite_sequence WHERE name='stored_events'")
        return found[0][0] if found else 0

    def proven(self, row: Row) -> Recorded:
        """Return the event of a row.

        Raises:
            CorruptEvent: it was changed.
            UnknownTopic: it is of a newer version.
        """
        try:
            return event_of(row, self._log_id)
        except (CorruptEvent, UnknownTopic) as error:
            error.position = row[0]
            raise


def event_of(row: Row, log_id: str) -> Recorded:
    """Return the event of a row of a log, proven; see `unseal` for the errors."""
    position, stream, version, topic, state = row
    return unseal(log_id=log_id, position=position, stream=stream, version=version, topic=topic, state=state)


def _check_neighbours(events: Sequence[Recorded], after: int | None) -> None:
    """Make sure that no event is missing between those that were read, or before the first of them."""
    version = after
    prev = FIRST if after == 0 else None
    for event in events:
        if version is not None and event.version != version + 1:
            missing = CorruptEvent(
                f"{event.stream!r}: version {version + 1} is missing, {event.version} follows"
            )
            missing.position = event.position
            raise missing
        if prev is not None and event.prev != prev:
            broken = CorruptEvent(
                f"{event.stream!r} version {event.version}: does not follow the event before it"
            )
            broken.position = event.position
            raise broken
        version, prev = event.version, event.hash
