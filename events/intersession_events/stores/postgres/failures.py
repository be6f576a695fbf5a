"""Turns what psycopg, its pool and the library raise into the errors of the log."""

from collections.abc import Mapping
from typing import Final

import psycopg
from eventsourcing.persistence import PersistenceError
from psycopg_pool import PoolTimeout, TooManyRequests

from intersession_events.basics.errors import (
    LogError,
    LogRewound,
    StoreBusy,
    StoreFull,
    StoreUnavailable,
    WriterSuperseded,
)
from intersession_events.stores.database import another, beneath
from intersession_events.stores.postgres.address import Address

_FULL: Final = "53100"
_NO_RIGHT: Final = "42501"
_MISSING: Final = (
    "a table or function of {shown} is missing ({said}): somebody has renamed or dropped it, or its schema; put it back, or open the "
    "log again, which says what is wrong"
)
_TOLD: Final[Mapping[str, str]] = {
    _NO_RIGHT: (
        "the role of {shown} lacks a right ({said}); docs/howto/postgresql-roles.sql gives each what it needs, and only the owner makes "
        "and changes tables"
    ),
    "25006": (
        "{shown} can only be read now ({said}): it is a standby, or was made read only; name the primary, or all servers with "
        "target_session_attrs=read-write"
    ),
    "42P01": _MISSING,
    "42883": _MISSING,
    "3F000": _MISSING,
    "57014": (
        "the server gave up a statement ({said}); if that was by statement_timeout, give the role more "
        "(ALTER ROLE … SET statement_timeout), or the URL options=-c%20statement_timeout%3D0"
    ),
}
"""What the server's codes mean, where that is not to be seen in its own words."""
_OF_STATEMENTS: Final = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.NotSupportedError,
    psycopg.ProgrammingError,
    psycopg.errors.ProgramLimitExceeded,
)


class PostgresFailures:
    """Classifies the errors of PostgreSQL; messages leave out the password."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def log_error(self, error: BaseException) -> LogError:
        """Return a typed error for any error, a new one for each caller."""
        if isinstance(error, LogError):
            return another(error)
        found = beneath(error, psycopg.Error)
        said = self._address.said(found or error)
        if isinstance(found, PoolTimeout | TooManyRequests):
            return StoreBusy(
                f"busy: no connection to {self._address.shown} came free, or could be made ({said}); try again"
            )
        state = "" if found is None else found.sqlstate or ""
        if state == _FULL:
            return StoreFull(f"no space left for the log: {said}; reading still works, free some space")
        if state in _TOLD:
            return StoreUnavailable(_TOLD[state].format(shown=self._address.shown, said=said))
        if isinstance(found, psycopg.OperationalError) and not state:  # libpq's own words
            return StoreUnavailable(f"{self._address.shown} can't be reached: {said}")
        if found is None:
            return StoreUnavailable(f"the store failed: {type(error).__name__}: {said}")
        return StoreUnavailable(f"the store refused: {state or type(found).__name__}: {said}")

    def is_known(self, error: BaseException) -> bool:
        """Return whether PostgreSQL's client or the library raised it."""
        return isinstance(error, psycopg.Error | PersistenceError)

    def is_of_the_store(self, error: BaseException) -> bool:
        """Return whether the server, the network or the machine failed, and not the statement that it was given."""
        if isinstance(error, MemoryError | WriterSuperseded | LogRewound):
            return True
        found = beneath(error, psycopg.Error)
        return found is not None and not isinstance(found, _OF_STATEMENTS)

    def is_forbidden(self, error: BaseException) -> bool:
        """Return whether the role lacks a right."""
        found = beneath(error, psycopg.Error)
        return found is not None and found.sqlstate == _NO_RIGHT

    def without_data(self, error: BaseException) -> str:
        """Return the error's code and name, its table or constraint, and the statement without its parameters."""
        found = beneath(error, psycopg.Error)
        if found is None:
            return type(error).__name__
        about = [
            name
            for name in (found.diag.table_name, found.diag.column_name, found.diag.constraint_name)
            if name
        ]
        parts = [
            f"{found.sqlstate or ''} {type(found).__name__}".strip(),
            *([".".join(about)] if about else []),
        ]
        return ": ".join([*parts, *getattr(found, "__notes__", ())])

    def is_final(self, error: BaseException) -> bool:  # noqa: ARG002 - as others have it
        """Return False: a server that lost its disk says so itself, and one that comes back can be written."""
        return False
