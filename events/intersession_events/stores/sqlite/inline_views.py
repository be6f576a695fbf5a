"""Keeps the views that are written with the events: each event once, in order; none can hold up the log."""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from intersession_events.crash_points import crash_point
from intersession_events.log import InlineView, Recorded, SetAside, view_marked_by
from intersession_events.stores.database import Cursor, attempt
from intersession_events.stores.folding import Fold, Made, Page, PlainSql, layout_of, lost
from intersession_events.stores.sqlite.connections import raw_of
from intersession_events.stores.sqlite.failures import FAILURES

_LOGGER: Final = logging.getLogger("intersession.store")

PAGE: Final = 500
"""Events a transaction when a view is built anew."""


class InlineViews:
    """The views of one log. Only the writer's thread may call what takes a cursor."""

    def __init__(self, views: Sequence[InlineView]) -> None:
        self._views = {view.name: view for view in views}
        if len(self._views) != len(views):
            raise ValueError(f"two inline views have one name: {sorted(view.name for view in views)}")
        self._live: set[str] = set()
        self._touched: set[str] = set()
        """Those that somebody else has written into since they joined; they stay marked until they are built anew."""

    @property
    def names(self) -> Sequence[str]:
        """The views' names, in the order given."""
        return tuple(self._views)

    def apply(self, cursor: Cursor, recorded: Sequence[Recorded], *, carefully: bool) -> None:
        """Take committed-to-be events into every view that is up to date, inside their transaction.

        Under a savepoint SQLite keeps a copy of every page before it changes, as much as the commit itself writes. So a
        poison event is set aside only when that is done `carefully`; else its error is raised, and the transaction is lost.
        """
        live = [name for name in self._views if name in self._live]
        if not recorded or not live:
            return
        if carefully:
            for name in live:
                self._take_in(cursor, name, recorded)
        else:
            sql = _sql(cursor)
            for name in live:
                self._views[name].apply(sql, recorded)
        crash_point("B1")
        _remember(cursor, [name for name in live if name not in self._touched], recorded[-1].position)

    def look(self, cursor: Cursor) -> None:
        """Look, at the beginning of a transaction, which views somebody else has written into."""
        cursor.execute("SELECT name FROM inline_views WHERE position<0")
        for (name,) in cursor.fetchall():
            if name in self._live and name not in self._touched:
                self._touched.add(name)
                _LOGGER.warning(
                    "somebody else has written into the view %s: what it answers may be wrong. It is built anew by "
                    "`intersession rebuild %s`, or when the log is next opened to write",
                    name,
                    name,
                )

    def position_of(self, cursor: Cursor, name: str, head: int) -> int | None:
        """Return how far a view has got; None if it has to be built anew, since its shape or the log is another."""
        cursor.execute("SELECT shape, position FROM inline_views WHERE name=?", (name,))
        row = cursor.fetchone()
        if row is None or row[0] != self._views[name].shape or not isinstance(row[1], int) or row[1] > head:
            return None
        if row[1] < 0:
            _LOGGER.warning("somebody else has written into the view %s: it is built anew", name)
            return None
        position: int = row[1]
        return position

    def begin(self, cursor: Cursor, name: str) -> None:
        """Drop a view and make it again, empty, inside a transaction."""
        sql = _sql(cursor)
        queries = {
            name for (name,) in sql.execute("SELECT name FROM sqlite_master WHERE type='view'").fetchall()
        }
        for table in queries.intersection(layout_of(self._views[name]).tables):  # put in the place of a table
            sql.execute(f"DROP VIEW {table}")
        self._views[name].drop(sql)
        self._views[name].create(sql)
        cursor.execute("DELETE FROM set_aside WHERE view=?", (name,))
        cursor.execute("DELETE FROM inline_views WHERE name=?", (name,))
        cursor.execute("INSERT INTO inline_views VALUES (?, ?, 0)", (name, self._views[name].shape))

    def mark(self, cursor: Cursor, name: str) -> None:
        """Have everybody who writes into the tables of a view leave a mark, inside the transaction that makes them."""
        # Of all tables: a mark goes with its table when somebody gives that another name.
        there: dict[str, str] = dict(
            _sql(cursor).execute("SELECT name, sql FROM sqlite_master WHERE type='trigger'").fetchall()
        )
        marks = layout_of(self._views[name]).marks
        for trigger in [
            one for one, sql in there.items() if view_marked_by(sql) == name and one not in marks
        ]:
            cursor.execute(f'DROP TRIGGER "{trigger}"')  # somebody else's, on any table
        for trigger, statement in marks.items():
            if there.get(trigger) == statement:
                continue
            if trigger in there:
                cursor.execute(f"DROP TRIGGER {trigger}")
            cursor.execute(str(statement))

    def advance(self, cursor: Cursor, name: str, page: Page) -> None:
        """Take a page of old events into a view, and put aside what can't even be read."""
        self._take_in(cursor, name, page.events)
        for row, error in page.unread:
            _set_aside(cursor, lost(name, row, error))
        _remember(cursor, [name], page.position)

    def fold(self, name: str) -> Fold:
        """Return a view to be folded anew beside the one that is there."""
        return Fold.of_whole_log(self._views[name])

    def is_whole(self, name: str, made: Sequence[Made]) -> bool:
        """Return whether the tables of a view are there as it makes them."""
        return layout_of(self._views[name]).is_whole_in(made)

    def swap(self, cursor: Cursor, fold: Fold) -> None:
        """Put what was folded in the place of a view, inside a transaction: nobody sees half of it."""
        self.begin(cursor, fold.name)
        sql = raw_of(cursor).cursor()
        layout = layout_of(self._views[fold.name])
        for index in layout.indexes:
            sql.execute(f"DROP INDEX {index}")
        for table in layout.all_tables:
            if table in layout.text_indexes:
                continue
            sql.execute(f"DELETE FROM {table}")  # noqa: S608 - a view's own table
            columns = len(layout.columns[table])
            sql.executemany(
                f"INSERT INTO {table} VALUES ({', '.join('?' * columns)})",  # noqa: S608 - a view's own table
                fold.rows_of(table),
            )
        for statement in layout.indexes.values():
            sql.execute(statement)
        for one in fold.set_aside:
            _set_aside(cursor, one)
        self.mark(cursor, fold.name)
        _remember(cursor, [fold.name], fold.position)

    def join(self, name: str) -> None:
        """Say that a view has all events so far and gets every further one with its append."""
        self._live.add(name)
        self._touched.discard(name)

    def _take_in(self, cursor: Cursor, name: str, events: Sequence[Recorded]) -> None:
        view, sql = self._views[name], _sql(cursor)
        if attempt(FAILURES, cursor, partial(view.apply, sql, events)) is None:
            return
        # One of them is poison. Find out which, each under a savepoint of its own.
        for event in events:
            error = attempt(FAILURES, cursor, partial(view.apply, sql, [event]))
            if error is not None:
                _set_aside(cursor, lost(name, event, error))


def _sql(cursor: Cursor) -> PlainSql:
    return PlainSql(raw_of(cursor))


def _set_aside(cursor: Cursor, one: SetAside) -> None:
    cursor.execute("INSERT OR REPLACE INTO set_aside VALUES (?, ?, ?, ?, ?, ?)", msgspec.structs.astuple(one))


def _remember(cursor: Cursor, names: Sequence[str], position: int) -> None:
    cursor.execute(
        f"UPDATE inline_views SET position=? WHERE name IN ({', '.join('?' * len(names))})",  # noqa: S608 - only question marks
        (position, *names),
    )
