"""What a view is: rows that follow from the events, in tables of its own."""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

from intersession_events.facts import Event
from intersession_events.log.log import Moment
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Question, Row, Sql, asked


class View(Protocol):
    """The base of every view: tables of its own, of one shape."""

    name: str
    shape: int
    """Version of the tables. When it differs from the stored one, the view is dropped and rebuilt."""

    def create(self, sql: Sql) -> None:
        """Create the view's tables if they are not there."""
        ...

    def drop(self, sql: Sql) -> None:
        """Drop the view's tables if they are there."""
        ...


class PlainView(View, Protocol):
    """A view that takes events in without reading its rows, or that reads them itself."""

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        """Take events in, in their order; one by one or many at once, the rows come out the same.

        An exception undoes all of them, and they come again one by one. That one is set aside for this view, and the
        append goes on.
        """
        ...


class Memory(OrderedDict[Any, Any]):  # each view has its own names and values in it
    """A view's memory of the rows that it wrote: they stay true as long as a single writer writes the view."""

    def bounded(self, most: int) -> "Memory":
        """Return itself without its oldest entries beyond a limit."""
        while len(self) > most:
            self.popitem(last=False)
        return self


Coming = tuple[str, Event]
"""A stream, and an event that is about to be recorded in it."""


class Known(NamedTuple):
    """What a view with questions has at hand when it takes events in: the answers and its memory."""

    answers: Sequence[Sequence[Row]]
    """The rows that each of its questions has come to."""
    memory: Memory
    """What it knows of its rows from the batches before. It is emptied where one may have been undone."""


class AskingView(View, Protocol):
    """A view that can say what it will ask its own tables, before its events have their positions.

    Where the database is far away, all such views are answered at once.
    """

    def questions(self, coming: Sequence[Coming], memory: Memory) -> Sequence[Question]:
        """Return its questions about the rows it does not remember."""
        ...

    def apply_answered(self, sql: Sql, events: Sequence[Recorded], known: Known) -> None:
        """Take events in, as a plain view does, with the answers to its questions about them."""
        ...


InlineView: TypeAlias = PlainView | AskingView
"""A view that can be written in the transaction of the append itself, so that one's own writes are always read."""


def asks(view: InlineView) -> TypeGuard[AskingView]:
    """Whether a view has questions. Called for each page: `isinstance` would compare all members of a protocol."""
    return hasattr(view, "questions")


def take_in(view: InlineView, sql: Sql, events: Sequence[Recorded]) -> None:
    """Let a view take events in. Its questions are answered on the spot, and nothing is remembered.

    It raises what the view raises; then all of it has to be undone.
    """
    if asks(view):
        coming = [(one.stream, one.event) for one in events]
        memory = Memory()
        view.apply_answered(sql, events, Known(asked(sql, view.questions(coming, memory)), memory))
    else:
        cast("PlainView", view).apply(sql, events)


@runtime_checkable
class AddingView(View, Protocol):
    """A view that only adds rows to some of its tables while it takes events in: it neither reads nor changes them."""

    @property
    def only_added(self) -> Sequence[str]:
        """The names of those tables. A fold of the whole log sorts their rows once, at the end."""
        ...


@runtime_checkable
class PickingView(View, Protocol):
    """A view that takes in events of some stored names alone: the log is read for these only."""

    @property
    def topics(self) -> Collection[str]:
        """The stored names of those events."""
        ...


@runtime_checkable
class CarriedView(View, Protocol):
    """A view of things that end: what it says of one is the same in every log that has all events of that thing."""

    def carry_over(self, sql: Sql, source: Moment, *, at: int, here: Collection[int]) -> Iterable[int]:
        """Copy the rows of things that had ended at the cut `at`, from its tables in the source log of a fork.

        `here` are the positions of the events that the fork has. Returned are those at which begins what had not come to rest:
        the events of their streams from there on are taken in next, once more also those of what was taken over.
        """
        ...


@runtime_checkable
class PackingView(View, Protocol):
    """A view that stores packed values, of a library whose builds may pack the same value into other bytes."""

    def unpacked(self, table: str, column: str, value: bytes) -> object:
        """Return the content of a packed value: a proof of the view compares this.

        Raises:
            ValueError: it is not as the view packs.
        """
        ...
