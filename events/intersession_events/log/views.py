"""What a view is, as the log keeps it: rows that follow from the events, in tables of the view's own."""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

from intersession_events.facts import Event
from intersession_events.log.log import Moment
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Question, Row, Sql, asked


class View(Protocol):
    """What every view is: tables of its own, made by one shape."""

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
    """A view that takes events in without a look at its rows, or that looks them up itself."""

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        """Take events in, in their order; as one by one, or many at once, they leave the same rows.

        An exception undoes all of them, and they come again one by one. That one is set aside for this view, and the
        append goes on.
        """
        ...


class Memory(OrderedDict[Any, Any]):  # each view has its own names and values in it
    """What a view remembers of the rows that it wrote: as long as one writer alone keeps it, they are as they were left."""

    def bounded(self, most: int) -> "Memory":
        """Return itself without those that were set first, of more than a limit."""
        while len(self) > most:
            self.popitem(last=False)
        return self


Coming = tuple[str, Event]
"""A stream, and an event that is about to be recorded in it."""


class Known(NamedTuple):
    """What a view that asks knows when it takes events in."""

    answers: Sequence[Sequence[Row]]
    """The rows that each of its questions has come to."""
    memory: Memory
    """What it knows of its rows from the batches before. It is emptied where one may have been undone."""


class AskingView(View, Protocol):
    """A view that knows what it will ask its own tables to take events in before these have their positions.

    Where the database is far away, all such views are answered at once.
    """

    def questions(self, coming: Sequence[Coming], memory: Memory) -> Sequence[Question]:
        """Return what it will ask: nothing of what it remembers."""
        ...

    def apply_answered(self, sql: Sql, events: Sequence[Recorded], known: Known) -> None:
        """Take events in, as a plain view does, with the answers to its questions for them."""
        ...


InlineView: TypeAlias = PlainView | AskingView
"""A view that can be written in the transaction of the append itself, so that one's own writes are always read."""


def asks(view: InlineView) -> TypeGuard[AskingView]:
    """Whether a view says what it will ask. Each page is asked for it: `isinstance` goes through all that a protocol has."""
    return hasattr(view, "questions")


def take_in(view: InlineView, sql: Sql, events: Sequence[Recorded]) -> None:
    """Have a view take events in. One that asks is answered here and now, and remembers nothing.

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
    """A view that only adds to some of its tables while it takes events in: it reads and changes none of their rows."""

    @property
    def only_added(self) -> Sequence[str]:
        """The names of those tables. A fold of the whole log sorts their rows once, at the end."""
        ...


@runtime_checkable
class PickingView(View, Protocol):
    """A view that takes in events of some stored names alone: where the log is read for it, others are not."""

    @property
    def topics(self) -> Collection[str]:
        """The stored names of those events."""
        ...


@runtime_checkable
class CarriedView(View, Protocol):
    """A view of things that come to rest: what it says of one is the same in every log that has all events of that thing."""

    def carry_over(self, sql: Sql, source: Moment, *, at: int, here: Collection[int]) -> Iterable[int]:
        """Take over, from its tables in the log that a fork is made of, the rows of what had come to rest at the cut `at`.

        `here` are the positions of the events that the fork has. Returned are those at which begins what had not come to rest:
        the events of their streams from there on are taken in next, once more also those of what was taken over.
        """
        ...


@runtime_checkable
class PackingView(View, Protocol):
    """A view that keeps values packed by a library of which each build may pack the same in other bytes."""

    def unpacked(self, table: str, column: str, value: bytes) -> object:
        """Return what is in a value of one of its tables: what is compared where the view is proven.

        Raises:
            ValueError: it is not as the view packs.
        """
        ...
