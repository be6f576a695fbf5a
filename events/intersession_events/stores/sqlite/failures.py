"""Turns what SQLite and the library raise into the errors of the log."""

import sqlite3
from typing import Final

from eventsourcing.persistence import PersistenceError

from intersession_events.basics.errors import CorruptEvent, LogError, StoreFull, StoreUnavailable
from intersession_events.stores.database import another, beneath

_PRIMARY: Final = 0xFF  # the low byte of an extended result code
_DEVICE: Final = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
"""The device failed: what is on it is unknown then, and nothing may be written until it is reopened."""
_STORE: Final = _DEVICE | {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
}


class _SqliteFailures:
    """What SQLite's errors mean. The library wraps what SQLite raised, so the cause is looked for first."""

    def log_error(self, error: BaseException) -> LogError:
        if isinstance(error, LogError):
            return another(error)
        found = beneath(error, sqlite3.Error)
        if found is None:
            return StoreUnavailable(f"the store failed: {type(error).__name__}: {error}")
        match _code(found):
            case sqlite3.SQLITE_IOERR if _name(found) == "SQLITE_IOERR_SHMSIZE":
                return StoreFull(
                    f"no space left for the file that the log's connections share (its -shm): {found}; free some space"
                )
            case sqlite3.SQLITE_BUSY:
                return StoreUnavailable(
                    f"another process writes into the log's file with other tools, and has not finished ({found}): end that; "
                    "the log goes on then"
                )
            case sqlite3.SQLITE_FULL:
                return StoreFull(f"no space left for the log: {found}; reading still works, free some space")
            case sqlite3.SQLITE_CORRUPT:
                return CorruptEvent(f"a page of the file is damaged: {found}")
            case sqlite3.SQLITE_INTERRUPT:
                return StoreUnavailable(
                    "a question to the log took more steps than a file of its size can need, and was given up: something else "
                    "stands where a table should; `intersession verify` says more"
                )
            case _:
                return StoreUnavailable(f"the store refused: {_name(found)}: {found}")

    def is_known(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.Error | PersistenceError)

    def is_of_the_store(self, error: BaseException) -> bool:
        return isinstance(error, MemoryError) or _code(beneath(error, sqlite3.Error)) in _STORE

    def is_forbidden(self, error: BaseException) -> bool:  # noqa: ARG002 - as others have it
        return False  # a file that may not be read can't be opened

    def without_data(self, error: BaseException) -> str:
        found = beneath(error, sqlite3.Error)
        return type(error).__name__ if found is None else _name(found)

    def is_final(self, error: BaseException) -> bool:
        return _code(beneath(error, sqlite3.Error)) in _DEVICE


FAILURES: Final = _SqliteFailures()


def _code(error: sqlite3.Error | None) -> int | None:
    """Return the primary result code of an error; None if Python raised it itself."""
    extended: int | None = getattr(error, "sqlite_errorcode", None)
    return None if extended is None else extended & _PRIMARY


def _name(error: sqlite3.Error) -> str:
    """Return SQLite's name for an error."""
    given: str = getattr(error, "sqlite_errorname", type(error).__name__)
    return given
