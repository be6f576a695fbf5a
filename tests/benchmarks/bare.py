"""What the machine itself costs: SQLite with nothing round it, one sync a transaction."""

import sqlite3
import time
from pathlib import Path

from benchmarks.figures import per_second

PAYLOAD_BYTES = 2_000
_ROW = b"x" * PAYLOAD_BYTES


class Bare:
    """A table as the log's, in WAL with `synchronous=FULL`."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, "
            "version INTEGER NOT NULL, topic TEXT NOT NULL, state BLOB NOT NULL, UNIQUE (stream, version))"
        )
        self._version = 0

    def rows_per_second(self, rows: int, *, each: int) -> float:
        """Return how many rows a second go in, `each` of them a transaction."""
        began = time.perf_counter()
        for _ in range(max(1, rows // each)):
            self._connection.execute("BEGIN IMMEDIATE")
            for _ in range(each):
                self._insert()
            self._connection.execute("COMMIT")
        return per_second(max(1, rows // each) * each, time.perf_counter() - began)

    def commit_ms(self, commits: int) -> float:
        """Return what one transaction of one row takes."""
        return 1000 / self.rows_per_second(commits, each=1)

    def close(self) -> None:
        self._connection.close()

    def _insert(self) -> None:
        self._version += 1
        self._connection.execute(
            "INSERT INTO events (stream, version, topic, state) VALUES (?, ?, ?, ?)",
            (f"session:{self._version % 512}", self._version, "message_recorded.1", _ROW),
        )
