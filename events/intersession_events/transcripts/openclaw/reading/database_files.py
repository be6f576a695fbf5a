"""Opens an SQLite database of another system for reading, as it stands at one moment, beside that system too.

It is never written to: what its log (`-wal`) holds belongs to it. Where no process has made an index of that log, both are
copied first, as the index would be a new file beside them.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from intersession_events.basics.errors import ImportFailed


@contextmanager
def opened_database(path: Path, name: str, *, user: str = "OpenClaw") -> Generator[sqlite3.Connection]:
    """Open a database in one transaction; `user` is the program that it belongs to.

    Raises:
        ImportFailed: it is no database, it can't be read, or `user` opened it meanwhile.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            # A closed database is read without a lock, which only a new file beside it could give.
            closed = _stamp(path) if _is_closed(path) else None
            address = (
                _address(path, Path(folder)) if closed is None else f"{path.as_uri()}?mode=ro&immutable=1"
            )
            database = sqlite3.connect(address, uri=True, isolation_level=None)
            try:
                database.text_factory = _text
                database.execute("BEGIN")
                yield database
            finally:
                database.close()
            if closed is not None and closed != _stamp(path):
                raise ImportFailed(f"{name} was opened by {user} while it was read: import again")
        except (sqlite3.Error, OSError) as error:
            raise ImportFailed(f"{name} can't be read: {error}") from error


def _text(raw: bytes) -> str:
    """Return a text of a row; what no log can take of it is spelled out."""
    return raw.decode("utf-8", "backslashreplace").replace("\0", "\\0")


def _is_closed(path: Path) -> bool:
    log = path.with_name(path.name + "-wal")
    return not log.exists() or not log.stat().st_size


def _stamp(path: Path) -> tuple[int, int, bool]:
    told = path.stat()
    return told.st_mtime_ns, told.st_size, _is_closed(path)


def _address(path: Path, folder: Path) -> str:
    if not path.with_name(path.name + "-shm").exists():
        for copied in (path.with_name(path.name + "-wal"), path):
            path = Path(shutil.copyfile(copied, folder / copied.name))
    return f"{path.as_uri()}?mode=ro"
