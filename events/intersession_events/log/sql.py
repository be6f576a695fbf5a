"""Portable SQL for views and their queries: parameters, rows, and several questions at once."""

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")

SqlValue: TypeAlias = str | int | float | bytes | None
"""What a statement is given."""


class IdText(str):
    """A text in a column of bytes, where most rows have the 16 bytes of a UUID: an id that another system made.

    Where a database keeps no texts among bytes, it stands there as its UTF-8 behind `ID_TEXT`, which is longer than a UUID.
    """

    __slots__ = ()


ID_TEXT: Final = bytes(17)
"""What a text begins with that stands among bytes. Bytes that begin so are sorted as the texts are."""

COLUMNS: Final = "SELECT rowid, originator_id, originator_version, topic, state FROM stored_events "
"""How each statement begins that reads rows of events. A database in which the position has another name gives it this one."""

Row: TypeAlias = tuple[Any, ...]  # what its columns hold is known where the statement is
"""What a statement returns."""


class Sql(Protocol):
    """A cursor inside a transaction: portable SQL with `?` parameters, rows as tuples."""

    def execute(self, statement: str, parameters: Sequence[SqlValue] = (), /) -> "Sql":
        """Run a statement and return self, ready for fetching."""
        ...

    def fetchone(self) -> Any:  # a `Row` or None; a reader of a count need not check for None
        """Return the next row, or None."""
        ...

    def fetchall(self) -> list[Row]:
        """Return all rows."""
        ...

    def later(self, statement: str, parameters: Sequence[SqlValue] = ()) -> Callable[[], list[Row]]:
        """Run a statement, and return its rows when they are needed: other statements may run meanwhile.

        Where the database is far away, all whose rows nobody has asked for yet go there together.
        """
        ...


Query = Callable[[str, Sequence[SqlValue]], list[Row]]
"""Runs a reading statement and returns its rows."""
Question = tuple[str, Sequence[SqlValue]]
"""A reading statement, and its parameters."""
Together = Callable[[Sequence[Question]], list[list[Row]]]
"""Returns the rows of several reading statements: in one round trip, where a store takes them so."""


def asked(sql: Sql, questions: Iterable[Question]) -> list[list[Row]]:
    """Return the rows of several questions, asked together."""
    return [answer() for answer in [sql.later(*question) for question in questions]]


class Ask(msgspec.Struct, Generic[T], frozen=True):
    """A reader's questions to the tables of views, and its answer from the rows: several readers share a round trip (`Gathers.answers`)."""

    questions: Sequence[Question]
    told: Callable[[list[list[Row]]], T]


_AT_ONCE: Final = 256


def marks(values: Sized) -> str:
    """Return the placeholders for a number of values."""
    return ", ".join("?" * len(values))


def among(statement: str, values: Iterable[SqlValue]) -> list[Question]:
    """Select the rows whose column has one of some values: the condition replaces `{}` in the statement."""
    left = list(dict.fromkeys(values))
    questions: list[Question] = []
    for first in range(0, len(left), _AT_ONCE):
        some = filled(left[first : first + _AT_ONCE])
        questions.append((statement.format(marks(some)), some))
    return questions


def filled(some: list[T]) -> list[T]:
    """Return the values, padded with the last one to a power of two, so that the database plans few distinct statements."""
    return some + some[-1:] * ((1 << (len(some) - 1).bit_length()) - len(some))
