"""Writes the inline views in the transaction of the events: each event once, in order; no view can hold up the log."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

import msgspec

from intersession_events.basics.crash_points import crash_point
from intersession_events.log.recorded import Recorded, SetAside
from intersession_events.log.sql import Row, Sql, Together
from intersession_events.log.views import Coming, InlineView, Known, Memory, PickingView, asks, take_in
from intersession_events.stores.database import Cursor, Failures, attempt
from intersession_events.stores.folding.fold import Fold, Layout, Page, layout_of, lost, poison

_LOGGER: Final = logging.getLogger("intersession.store")

Answers = Mapping[str, Sequence[Callable[[], list[Row]]]]
"""What each view that asks ahead will be answered, by its name."""

PAGE: Final = 500
"""Events a transaction when a view is built anew."""
_LAST: Final = "SELECT COALESCE(MAX(rowid), 0) FROM stored_events"


class ViewTables(Protocol):
    """What each database does in its own way for the tables of views."""

    failures: Failures
    """What its errors mean."""

    def sql(self, cursor: Cursor) -> Sql:
        """Return a cursor as views have it."""
        ...

    def make_room(self, sql: Sql, layouts: Sequence[Layout]) -> None:
        """Remove the objects that another program put in the place of views' tables."""
        ...

    def mark(self, sql: Sql, layout: Layout) -> None:
        """Make every foreign write into the tables of a view leave a mark, inside the transaction that makes them."""
        ...

    def remember(self, cursor: Cursor, shapes: Mapping[str, int], position: int) -> None:
        """Store how far views of these shapes have got. The mark of a foreign write stays, if the database can tell it apart."""
        ...

    def together(self, cursor: Cursor) -> Together:
        """Return a function that asks several questions in one round trip, inside a transaction."""
        ...

    def whole(self, together: Together, layouts: Sequence[Layout]) -> set[str]:
        """Return the views whose tables are as the view makes them, with the triggers that mark foreign writes."""
        ...

    def are_kept(self, together: Together) -> bool:
        """Return whether the table that says how far each view has got is there and intact."""
        ...

    def fill(self, cursor: Cursor, fold: Fold, layout: Layout) -> None:
        """Write folded rows into the empty tables of a view."""
        ...


class InlineViews:
    """The views of one log. Only the writer's thread may call what takes a cursor."""

    def __init__(self, views: Sequence[InlineView], tables: ViewTables) -> None:
        self._tables = tables
        self._views = {view.name: view for view in views}
        if len(self._views) != len(views):
            raise ValueError(f"two inline views have one name: {sorted(view.name for view in views)}")
        self._asking = {view.name: view for view in views if asks(view)}
        self._memories = {name: Memory() for name in self._asking}
        self._topics = {view.name: frozenset(view.topics) for view in views if isinstance(view, PickingView)}
        self._live: Mapping[str, int] = {}
        """The shapes of those that get each event with its append, in the order given."""
        self._touched: set[str] = set()
        """Those that somebody else has written into since they joined; they stay marked until they are built anew."""
        self.whole = ""
        """The names of the others that are live, in order, with commas between them."""

    @property
    def names(self) -> Sequence[str]:
        """The views' names, in the order given."""
        return tuple(self._views)

    def ask(self, cursor: Cursor, coming: Sequence[Coming]) -> Answers:
        """Ask, in the transaction of events and before they are written, what views need to take them in."""
        if not coming:
            return {}
        sql = self._tables.sql(cursor)
        answers: dict[str, Sequence[Callable[[], list[Row]]]] = {}
        for name in self._live:
            if (view := self._asking.get(name)) is not None:
                questions = view.questions(coming, self._memories[name])
                answers[name] = [sql.later(*question) for question in questions] if questions else ()
        return answers

    def apply(
        self, cursor: Cursor, recorded: Sequence[Recorded], answers: Answers, *, carefully: bool
    ) -> None:
        """Take events that are about to be committed into every current view, inside their transaction.

        `answers` are to what was asked ahead for these events, or for more.

        Under a savepoint SQLite keeps a copy of every page before it changes, as much as the commit itself writes, and
        PostgreSQL is asked twice more. So a poison event is set aside only when that is done `carefully`; else its error is
        raised, and the transaction is lost.
        """
        live = self._live
        if not recorded or not live:
            return
        if carefully:
            self.forget()
            for name in live:
                self._take_in(cursor, name, recorded)
        else:
            sql = self._tables.sql(cursor)
            topics = {one.topic for one in recorded}
            for name in live:
                if (asked := answers.get(name)) is not None:
                    known = Known([answer() for answer in asked] if asked else (), self._memories[name])
                    self._asking[name].apply_answered(sql, recorded, known)
                elif name not in self._topics or not topics.isdisjoint(self._topics[name]):
                    take_in(self._views[name], sql, recorded)
        crash_point("B1")
        if self._touched:
            live = {name: shape for name, shape in live.items() if name not in self._touched}
        if live:
            self._tables.remember(cursor, live, recorded[-1].position)

    def forget(self) -> None:
        """Make views forget their rows: some may have been undone, or changed by another writer."""
        for memory in self._memories.values():
            memory.clear()

    def look(self, cursor: Cursor) -> None:
        """Look, at the beginning of a transaction, into which views another program has written."""
        cursor.execute("SELECT name FROM inline_views WHERE position>=0")
        whole = {name for (name,) in cursor.fetchall()}
        for (
            name
        ) in self._live:  # one whose row is gone has lost its mark with it, and must not get a row again
            if name not in whole and name not in self._touched:
                self._touched.add(name)
                self._tell_whole()
                _LOGGER.warning(
                    "somebody else has written into the view %s: what it answers may be wrong. It is built anew by "
                    "`intersession rebuild %s`, or when the log is next opened to write",
                    name,
                    name,
                )

    def positions(self, cursor: Cursor) -> tuple[int, Mapping[str, int]]:
        """Return the last position of the log, and the position of each view.

        One that has to be built anew is left out: its shape or the log is another, or its tables are not as it makes them.
        """
        together = self._tables.together(cursor)
        ((last,),), stored = together([(_LAST, ()), ("SELECT name, shape, position FROM inline_views", ())])
        got = {
            name: position
            for name, shape, position in stored
            if name in self._views
            and shape == self._views[name].shape
            and isinstance(position, int)
            and position <= last
        }
        for name in [name for name, position in got.items() if position < 0]:
            _LOGGER.warning("somebody else has written into the view %s: it is built anew", name)
            del got[name]
        whole = self._tables.whole(together, [layout_of(self._views[name]) for name in got])
        return last, {name: position for name, position in got.items() if name in whole}

    def begin(self, cursor: Cursor, names: Collection[str]) -> None:
        """Drop views and create them again, empty, inside a transaction, with triggers that mark foreign writes."""
        self._make(cursor, names)
        for name in names:
            self._tables.mark(self._tables.sql(cursor), layout_of(self._views[name]))

    def advance(self, cursor: Cursor, name: str, page: Page) -> None:
        """Take a page of old events into a view, and set aside those that can't be read."""
        self._take_in(cursor, name, page.events)
        for row, error in page.unread:
            _set_aside(cursor, lost(name, row, error))
        self._tables.remember(cursor, {name: self._views[name].shape}, page.position)

    def fold(self, name: str) -> Fold:
        """Return a view to be folded anew beside the stored one."""
        return Fold.of_whole_log(self._views[name])

    def swap(self, cursor: Cursor, fold: Fold) -> None:
        """Replace a stored view by a folded one, inside a transaction: no reader sees half of it."""
        self._make(cursor, [fold.name])
        self._tables.fill(cursor, fold, layout_of(self._views[fold.name]))
        for one in fold.set_aside:
            _set_aside(cursor, one)
        self._tables.mark(self._tables.sql(cursor), layout_of(self._views[fold.name]))
        self._tables.remember(cursor, {fold.name: self._views[fold.name].shape}, fold.position)

    def join(self, name: str) -> None:
        """Mark a view as current: from now on it gets each event with its append."""
        self.forget()
        self._live = {
            one: view.shape for one, view in self._views.items() if one == name or one in self._live
        }
        self._touched.discard(name)
        self._tell_whole()

    def _tell_whole(self) -> None:
        self.whole = ",".join(sorted(self._live.keys() - self._touched))

    def _make(self, cursor: Cursor, names: Collection[str]) -> None:
        self.forget()
        sql = self._tables.sql(cursor)
        self._tables.make_room(sql, [layout_of(self._views[name]) for name in names])
        for name in names:
            self._views[name].drop(sql)
            self._views[name].create(sql)
            cursor.execute("DELETE FROM set_aside WHERE view=?", (name,))
            cursor.execute("DELETE FROM inline_views WHERE name=?", (name,))
            cursor.execute("INSERT INTO inline_views VALUES (?, ?, 0)", (name, self._views[name].shape))

    def _take_in(self, cursor: Cursor, name: str, events: Sequence[Recorded]) -> None:
        view, sql, failures = self._views[name], self._tables.sql(cursor), self._tables.failures

        def tried(some: Sequence[Recorded]) -> Exception | None:
            return attempt(failures, cursor, partial(take_in, view, sql, some))

        for event, error in poison(tried, events):
            _set_aside(cursor, lost(name, event, error))


def _set_aside(cursor: Cursor, one: SetAside) -> None:
    cursor.execute(
        "INSERT INTO set_aside (view, position, stream, version, topic, reason) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (view, position) DO UPDATE SET stream = excluded.stream, version = excluded.version, "
        "topic = excluded.topic, reason = excluded.reason",
        msgspec.structs.astuple(one),
    )
