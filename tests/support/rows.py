"""The rows of a database that somebody else changes: a connection of its own, committed and closed."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path


@contextmanager
def edited(path: Path | str) -> Generator[sqlite3.Connection]:
    """Open a database and keep what is changed in the block."""
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection
