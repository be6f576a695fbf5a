"""What a verification remembers of each stream and each id, for logs of any size: some in memory, the rest in a temporary file.

The file is SQLite's own temporary one, which goes when it is closed.
"""

import sqlite3
from typing import Final, NamedTuple

_CACHE_KIB: Final = 16_384
_STREAMS: Final = 50_000
"""The number of streams kept in memory, the latest used: some 20 MB."""
_MARKS: Final = 200_000


class End(NamedTuple):
    """The last version of a stream, and its hash; None for one that could not be read."""

    version: int
    hash: str | None


class _Spilling:
    """Has a temporary file once it has more than what is kept in memory."""

    def __init__(self) -> None:
        self._file: sqlite3.Connection | None = None

    def close(self) -> None:
        """Delete the temporary file."""
        if self._file is not None:
            self._file.close()

    def _spilled(self, table: str) -> sqlite3.Connection:
        """Return the file, which is made with its table at the first time."""
        if self._file is None:
            self._file = _temporary()
            self._file.execute(f"CREATE TABLE {table}")
        return self._file


class StreamEnds(_Spilling):
    """Where each stream ends."""

    def __init__(self, at_hand: int = _STREAMS) -> None:
        super().__init__()
        self._most = at_hand
        self._young: dict[str, End] = {}
        self._old: dict[str, End] = {}
        self._count = 0

    def __len__(self) -> int:
        """Return how many streams there are."""
        return self._count

    def get(self, stream: str) -> End | None:
        """Return where a stream ends; None for an unknown stream."""
        found = self._young.get(stream) or self._old.get(stream)
        if found is None and self._file is not None:
            row = self._file.execute("SELECT version, hash FROM ends WHERE stream=?", (stream,)).fetchone()
            found = None if row is None else End(*row)
        return found

    def put(self, stream: str, end: End) -> None:
        """Set where a stream ends now."""
        if stream not in self._young:
            self._count += self.get(stream) is None
            if len(self._young) >= self._most:
                self._spill()
        self._young[stream] = end

    def _spill(self) -> None:
        """Spill the least recently used entries; what is in memory is newer."""
        self._spilled("ends (stream PRIMARY KEY, version, hash) WITHOUT ROWID").executemany(
            "INSERT OR REPLACE INTO ends VALUES (?, ?, ?)",
            ((stream, *self._old[stream]) for stream in sorted(self._old.keys() - self._young.keys())),
        )
        self._old, self._young = self._young, {}


class Repeats(_Spilling):
    """Finds numbers that were added more than once."""

    def __init__(self, at_hand: int = _MARKS) -> None:
        super().__init__()
        self._most = at_hand
        self._seen: set[int] = set()
        self._twice: set[int] = set()

    def tell(self, number: int) -> None:
        """Add a number of 64 bits."""
        if number in self._seen:
            self._twice.add(number)
        self._seen.add(number)
        if len(self._seen) >= self._most:
            self._spill()

    def twice(self) -> set[int]:
        """Return the numbers that were added more than once."""
        if self._file is not None:
            self._spill()
            found = self._file.execute("SELECT number FROM told GROUP BY number HAVING COUNT(*) > 1")
            self._twice.update(number for (number,) in found)
        return self._twice

    def _spill(self) -> None:
        self._spilled("told (number INTEGER)").executemany(
            "INSERT INTO told VALUES (?)", zip(self._seen, strict=True)
        )
        self._seen = set()


def _temporary() -> sqlite3.Connection:
    connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=OFF")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    connection.execute("BEGIN")  # never committed: nobody else ever looks
    return connection
