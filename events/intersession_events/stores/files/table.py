"""Contents of files in a table of the log's schema, so that all processes that share the log have them (FILE-1)."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol, final

from intersession_events.log.sql import Row, SqlValue
from intersession_events.stores.database import Cursor

_IS_THERE: Final = (
    "SELECT 1 FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = 'files'"
)
COLUMNS: Final = "(name text PRIMARY KEY, content bytea NOT NULL)"
_MAKE: Final = f"CREATE TABLE IF NOT EXISTS files {COLUMNS}"


class Keeps(Protocol):
    """A log whose database keeps tables beside the events."""

    def keeping(self, view: str) -> AbstractContextManager[Cursor]:
        """Run a transaction round a block."""
        ...

    def kept_rows(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Return the rows of a reading statement."""
        ...


@final
class Table:
    """Contents in a table. A log has it from its beginning, an older one once something is put into it, by a role that may make it.

    Each change is a transaction of its own.
    """

    def __init__(self, log: Keeps) -> None:
        self._log = log
        self._is_there = False

    def get(self, name: str) -> bytes | None:
        """Return the bytes of a name; None where there are none."""
        if not self._exists():
            return None
        found = self._log.kept_rows("SELECT content FROM files WHERE name = ?", (name,))
        return bytes(found[0][0]) if found else None

    def put(self, name: str, data: bytes) -> None:
        """Store bytes."""
        with self._log.keeping("files") as cursor:
            if not self._is_there:
                cursor.execute(_MAKE)
            cursor.execute(
                "INSERT INTO files (name, content) VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET content = excluded.content",
                (name, data),
            )
        self._is_there = True

    def remove(self, name: str) -> None:
        """Delete a row, if it is there."""
        if self._exists():
            with self._log.keeping("files") as cursor:
                cursor.execute("DELETE FROM files WHERE name = ?", (name,))

    def names(self) -> Iterable[str]:
        """Return all names."""
        if not self._exists():
            return ()
        return [name for (name,) in self._log.kept_rows("SELECT name FROM files")]

    def path(self, name: str) -> Path | None:  # noqa: ARG002 - none has one
        """Return None: they lie in no file."""
        return None

    @property
    def stored(self) -> "Table":
        """Return itself: nothing is encrypted here."""
        return self

    def _exists(self) -> bool:
        if not self._is_there:
            self._is_there = bool(self._log.kept_rows(_IS_THERE))
        return self._is_there
