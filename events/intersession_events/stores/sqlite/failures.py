"""Turns what SQLite and the library raise into the errors of the log."""

import sqlite3
from contextlib import AbstractContextManager
from typing import Final

from eventsourcing.persistence import PersistenceError

from intersession_events.basics.errors import CorruptEvent, LogError, StoreFull, StoreUnavailable
from intersession_events.stores.database import another
from intersession_events.stores.database import typed as typed_by

_PRIMARY: Final = 0xFF  # the low byte of an extended result code


def log_error(error: BaseException) -> LogError:
    """Return a typed error for whatever the store raised, one for each caller that is told.

    The library wraps what SQLite raised, so the cause is looked for first.
    """
    if isinstance(error, LogError):
        return another(error)
    found = sqlite_error(error)
    if found is None:
        return StoreUnavailable(f"the store failed: {type(error).__name__}: {error}")
    match code(found):
        case sqlite3.SQLITE_IOERR if name(found) == "SQLITE_IOERR_SHMSIZE":
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
            return StoreUnavailable(f"the store refused: {name(found)}: {found}")


def typed() -> AbstractContextManager[None]:
    """Let no error of SQLite or of the library out of a block, only typed ones."""
    return typed_by(FAILURES)


def sqlite_error(error: BaseException) -> sqlite3.Error | None:
    """Return SQLite's own error beneath an error, if there is one."""
    below: BaseException | None = error
    while below is not None and not isinstance(below, sqlite3.Error):
        below = below.__cause__ or below.__context__
    return below


def code(error: sqlite3.Error) -> int | None:
    """Return the primary result code of an error; None if Python raised it itself."""
    extended: int | None = getattr(error, "sqlite_errorcode", None)
    return None if extended is None else extended & _PRIMARY


def name(error: sqlite3.Error) -> str:
    """Return SQLite's name for an error."""
    given: str = getattr(error, "sqlite_errorname", type(error).__name__)
    return given


def is_input_output(error: BaseException) -> bool:
    """Return whether the device failed: what is on it is unknown then, and nothing may be written until it is reopened."""
    found = sqlite_error(error)
    return found is not None and code(found) in {
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
    }


def is_of_the_store(error: BaseException) -> bool:
    """Return whether the store or the machine failed, and not the statement that it was given."""
    if isinstance(error, MemoryError):
        return True
    found = sqlite_error(error)
    return found is not None and code(found) in {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_NOTADB,
    }


class _SqliteFailures:
    """What SQLite's errors mean, for what is written for any database."""

    def log_error(self, error: BaseException) -> LogError:
        return log_error(error)

    def is_known(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.Error | PersistenceError)

    def is_of_the_store(self, error: BaseException) -> bool:
        return is_of_the_store(error)

    def is_forbidden(self, error: BaseException) -> bool:  # noqa: ARG002 - as others have it
        return False  # a file that may not be read can't be opened

    def without_data(self, error: BaseException) -> str:
        found = sqlite_error(error)
        return type(error).__name__ if found is None else name(found)

    def is_final(self, error: BaseException) -> bool:
        return is_input_output(error)


FAILURES: Final = _SqliteFailures()
