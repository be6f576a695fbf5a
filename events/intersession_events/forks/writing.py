"""Writes rows into a new file that is a log: under another name until it is whole and on the disk."""

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from operator import itemgetter
from pathlib import Path

from intersession_events.log import APPLICATION_ID, FORMAT, LOG_TABLES, Row
from intersession_events.machine import sync

_PAGE_BYTES = 2_048
_CACHE_KIB = 65_536


Fill = Callable[[sqlite3.Connection], None]
"""Puts more into a file that is being made, such as views."""


def write_log(
    path: Path,
    rows: Sequence[Row],
    *,
    log_id: str,
    epoch: int,
    now_ms: int,
    fill: Fill = lambda _: None,
) -> None:
    """Write a log with these rows, and what `fill` puts there.

    Raises:
        OSError: the file can't be written.
        sqlite3.Error: SQLite can't write it.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with closing(sqlite3.connect(part, isolation_level=None)) as made:
            # Nobody reads it before it is whole, so there is nothing to be undone; it is synced once, at the end.
            made.execute(f"PRAGMA page_size={_PAGE_BYTES}")
            made.execute("PRAGMA journal_mode=OFF")
            made.execute("PRAGMA synchronous=OFF")
            made.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
            made.execute("BEGIN")
            made.execute(f"PRAGMA application_id={APPLICATION_ID}")
            for statement in LOG_TABLES.values():
                made.execute(statement)
            made.execute("INSERT INTO log_identity VALUES (?, ?, ?, ?)", (log_id, FORMAT, epoch, now_ms))
            # In the order of their places: each row goes behind the one before it.
            made.executemany(
                "INSERT INTO stored_events VALUES (?, ?, ?, ?, ?)", sorted(rows, key=itemgetter(0))
            )
            made.executemany(
                "INSERT INTO log_topics VALUES (?)", [(topic,) for topic in sorted({row[3] for row in rows})]
            )
            fill(made)
            made.execute("COMMIT")
        sync(part)
        part.rename(path)
        sync(path.parent)
    finally:
        part.unlink(missing_ok=True)
