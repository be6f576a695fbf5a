"""What stores ask of a database: a cursor, readers, and the meaning of its errors. Used by all of this room."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, Final, Protocol, TypeVar, cast
from uuid import UUID

import msgspec
from eventsourcing.persistence import Notification

from intersession_events.basics.errors import LogError

E = TypeVar("E", bound=BaseException)

Row = tuple[int, str, int, str, bytes]
"""Position, stream, version, topic and state, as they lie in the table."""

MEMORY: Final = ":memory:"
"""The name and the place of a log that lies in no file."""


class StoredRow(msgspec.Struct, frozen=True, gc=False):
    """A row with the fields of the library's `Notification`, which a dataclass takes six times as long to make."""

    id: int
    originator_id: str
    originator_version: int
    topic: str
    state: bytes


def notification_of(row: Row) -> Notification:
    """Return a row as the library has it."""
    return cast("Notification", StoredRow(*row))


class Cursor(Protocol):
    """A cursor of a database inside a transaction: portable SQL with `?` parameters, as views have it."""

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> object:  # what a column takes
        """Run a statement."""
        ...

    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]], /) -> object:  # the same
        """Run a statement with each of many parameters."""
        ...

    def fetchone(self) -> Any:  # a row or None; what its columns hold is known where the statement is
        """Return the next row, or None."""
        ...

    def fetchall(self) -> Any:  # the rows, the same
        """Return all rows."""
        ...


class Failures(Protocol):
    """Classifies the errors of one database."""

    def log_error(self, error: BaseException) -> LogError:
        """Return a typed error for any error, a new one for each caller."""
        ...

    def is_known(self, error: BaseException) -> bool:
        """Return whether the database or its library raised it."""
        ...

    def is_of_the_store(self, error: BaseException) -> bool:
        """Return whether the store or the machine failed, and not the statement that it was given."""
        ...

    def is_forbidden(self, error: BaseException) -> bool:
        """Return whether the caller lacks a right."""
        ...

    def without_data(self, error: BaseException) -> str:
        """Return the message of a known error, without any data that was written or queried."""
        ...

    def is_final(self, error: BaseException) -> bool:
        """Return whether the log can't be written any more until it is opened again."""
        ...


def another(error: LogError) -> LogError:
    """Return an error like this one. Raised by several callers, one object would gather all their tracebacks."""
    new = copy(error)
    new.__cause__ = error.__cause__
    return new


def beneath(error: BaseException, kind: type[E]) -> E | None:
    """Return the error of a kind beneath an error, if there is one: the library wraps what a database raised."""
    below: BaseException | None = error
    while below is not None and not isinstance(below, kind):
        below = below.__cause__ or below.__context__
    return below


@contextmanager
def typed(failures: Failures) -> Generator[None]:
    """Turn errors of the database or of the library in a block into typed ones."""
    try:
        yield
    except Exception as error:
        if failures.is_known(error):
            raise failures.log_error(error) from error
        raise


def attempt(failures: Failures, cursor: Cursor, work: Callable[[], None]) -> Exception | None:
    """Run a function under a savepoint; on an error undo it and return the error, else None.

    An error of the store itself is raised: the whole transaction is lost then, not this work alone.
    """
    cursor.execute("SAVEPOINT attempt")
    try:
        work()
    except Exception as error:
        if failures.is_of_the_store(error):
            raise
        cursor.execute("ROLLBACK TO attempt")
        cursor.execute("RELEASE attempt")
        return error
    cursor.execute("RELEASE attempt")
    return None


def of_stream(
    stream: UUID | str, *, gt: int | None, lte: int | None, desc: bool, limit: int | None
) -> tuple[str, tuple[str | int, ...]]:
    """Return the end of a statement that selects the rows of a stream with `gt < version <= lte`, and its parameters.

    Without a bound there is no condition: a row whose version somebody made no number is read with the others, and seen.
    """
    bounds = [(sign, version) for sign, version in ((">", gt), ("<=", lte)) if version is not None]
    conditions = "".join(f"AND originator_version{sign}? " for sign, _ in bounds)
    return (
        f"WHERE originator_id=? {conditions}ORDER BY originator_version {'DESC' if desc else 'ASC'} LIMIT ?",
        (str(stream), *(version for _, version in bounds), 2**63 - 1 if limit is None else limit),
    )
