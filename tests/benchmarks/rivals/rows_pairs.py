"""`sqlite3` with Intersession's own rows in Intersession's own commits: what is left when nothing is decided and nothing hashed."""

import json
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.rivals import meter

INSERT = "INSERT INTO stored_events VALUES (?, ?, ?, ?, ?)"
TABLE = (
    "CREATE TABLE stored_events (id INTEGER PRIMARY KEY, stream TEXT NOT NULL, version INTEGER NOT NULL, "
    "topic TEXT NOT NULL, state BLOB NOT NULL, UNIQUE (stream, version))"
)


def main(directory: Path, sizes: dict[str, Any]) -> None:
    source = Path(sizes["source"])
    with closing(sqlite3.connect(source / "log.db")) as log:
        rows = log.execute(
            "SELECT rowid, originator_id, originator_version, topic, state FROM stored_events ORDER BY rowid"
        ).fetchall()
    ends = [0, *json.loads((source / "batches.json").read_text(encoding="ascii"))]
    connection = sqlite3.connect(directory / "rows.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(TABLE)

    def write() -> None:
        for begin, end in pairwise(ends[1:]):
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(INSERT, rows[begin:end])
            connection.execute("COMMIT")

    rounds = max(1, sizes["exchanges"] // sizes["pairs"]) + 1  # with the one that goes before
    meter.report(write, sizes["pairs"] * rounds * sizes["turns"], [0.0])


if __name__ == "__main__":
    main(*meter.given())
