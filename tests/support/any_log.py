"""Opens a log of whichever store a test is run on."""

from pathlib import Path
from typing import Any

import pytest

from intersession_events.stores import SqliteLog
from intersession_events.stores.postgres import PostgresLog

AnyLog = SqliteLog | PostgresLog

ON_POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)
FILE_OR_POSTGRES = ["file", ON_POSTGRES]
EVERY_STORE = ["file", "memory", ON_POSTGRES]


def log_at(place: Path | str, **options: Any) -> AnyLog:
    """Open a log in a file, in memory, or at the URL of one on PostgreSQL."""
    if str(place).startswith("postgresql://"):
        return PostgresLog(str(place), **options)
    return SqliteLog(place, **options)


class Place:
    """Where a log is: it can be opened again, and by a reader."""

    def __init__(self, request: pytest.FixtureRequest, tmp_path: Path) -> None:
        self._kind: str = request.param
        self._path = tmp_path / "log.db"
        self._url: str = request.getfixturevalue("postgres_url") if self._kind == "postgres" else ""

    def open(self, **options: Any) -> AnyLog:
        if self._kind == "postgres":
            return PostgresLog(self._url, **options)
        return SqliteLog(":memory:" if self._kind == "memory" else self._path, **options)
