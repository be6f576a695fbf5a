"""One view, folded in a temporary database by the same rules as the log's own."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, Final, NamedTuple, Self

from intersession_events.basics.errors import CorruptEvent, UnknownTopic
from intersession_events.basics.progress import Progress
from intersession_events.log.recorded import Recorded, SetAside
from intersession_events.log.sql import Row, SqlValue
from intersession_events.log.tables import marks_of, view_marked_by
from intersession_events.log.views import AddingView, InlineView, PackingView, take_in

Proven = Callable[[Row], Recorded]
"""Returns the event of a row, or raises what it is that keeps it from being read (`CorruptEvent`, `UnknownTopic`)."""


ClearRow = Callable[[object, tuple[Any, ...]], tuple[Any, ...]]  # whatever its columns hold
"""Returns a row, as a cursor has it, with what is encrypted in clear."""

_CACHE_KIB: Final = 65_536
"""What a temporary database keeps in memory; the rest of it is on disk."""

Schema = Mapping[str, str | None]
"""The statements that made tables and indexes, by name; None for an index that SQLite made itself."""


class Page(NamedTuple):
    """Consecutive events, the unreadable rows among them, and the position of the last of both."""

    events: Sequence[Recorded]
    unread: Sequence[tuple[Row, Exception]]
    position: int

    def between(self, after: int, to: int) -> "Page":
        """Return the part of it after one position and up to another."""
        return Page(
            [event for event in self.events if after < event.position <= to],
            [(row, error) for row, error in self.unread if after < row[0] <= to],
            min(self.position, to),
        )


def page_of(rows: Sequence[Row], proven: Proven) -> Page:
    """Return the events of stored rows, decoded once for all views."""
    events: list[Recorded] = []
    unread: list[tuple[Row, Exception]] = []
    for row in rows:
        try:
            events.append(proven(row))
        except (CorruptEvent, UnknownTopic) as error:
            unread.append((row, error))
    return Page(events, unread, rows[-1][0] if rows else 0)


def poison(
    attempt: Callable[[Sequence[Recorded]], Exception | None], events: Sequence[Recorded]
) -> list[tuple[Recorded, Exception]]:
    """Have events taken in together, or else each by itself: return those of them that can't be, and why."""
    if attempt(events) is None:
        return []
    tried = ((event, attempt([event])) for event in events)
    return [(event, error) for event, error in tried if error is not None]


def lost(view: str, event: Row | Recorded, error: Exception) -> SetAside:
    """Return a record that a view could not take in an event, or an unreadable row."""
    if isinstance(event, Recorded):
        event = (event.position, event.stream, event.version, event.topic)
    position, stream, version, topic, *_ = event
    return SetAside(
        view=view,
        position=position,
        stream=stream,
        version=version,
        topic=topic,
        reason=f"{type(error).__name__}: {error}",
    )


class Made(NamedTuple):
    """An object that a statement made in a database: a table, an index or a trigger."""

    kind: str
    name: str
    table: str
    """The table that it belongs to."""
    sql: str | None


class Column(NamedTuple):
    """A column as the statement of its table has it."""

    name: str
    kind: str
    """INTEGER, TEXT or BLOB, or another name of one of them."""
    not_null: bool
    """Whether it always has a value: also by being part of the key."""


class Layout(NamedTuple):
    """The tables, indexes and triggers that a view makes in a database, before any event."""

    view: str
    """Its name."""
    schema: Schema
    """Its tables and indexes."""
    all_tables: Sequence[str]
    """The names of its tables, and of all that an index of text consists of."""
    text_indexes: Sequence[str]
    """The names of its indexes of text: how SQLite lays one out depends on how it was filled."""
    tables: Sequence[str]
    """The names of its tables, without those that an index of text consists of."""
    described: Mapping[str, Sequence[Column]]
    """The columns of each table."""
    keys: Mapping[str, Sequence[str]]
    """The columns of its primary key, or all if it has none: in their order its rows are compared."""
    marks: Schema
    """The triggers that note in a log that somebody else wrote into these tables."""

    @classmethod
    def of(cls, view: str, connection: sqlite3.Connection) -> Self:
        """Return the layout of a view from a database that holds nothing else."""
        made = connection.execute(
            "SELECT name, sql LIKE 'CREATE VIRTUAL TABLE%' FROM sqlite_master WHERE type='table' ORDER BY name"
        ).fetchall()
        text_indexes = [name for name, is_text in made if is_text]
        tables = [name for name, _ in made if not _is_of(name, text_indexes)]
        all_tables = [name for name, _ in made]
        schema = schema_of(made_in(connection), all_tables)
        columns: dict[str, list[Column]] = {}
        keys: dict[str, list[str]] = {}
        for table in all_tables:
            described = connection.execute(f"PRAGMA table_info({table})").fetchall()
            columns[table] = [
                Column(name, kind, bool(not_null or place)) for _, name, kind, not_null, _, place in described
            ]
            in_key = sorted((place, name) for _, name, *_, place in described if place)
            keys[table] = [name for _, name in in_key] or [one.name for one in columns[table]]
        return cls(view, schema, all_tables, text_indexes, tables, columns, keys, marks_of(view, tables))

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """The names of the columns of each table, in order."""
        return {table: [one.name for one in columns] for table, columns in self.described.items()}

    @property
    def indexes(self) -> Mapping[str, str]:
        """The statements of indexes that can wait until the rows are there."""
        return {
            name: statement
            for name, statement in self.schema.items()
            if statement is not None and statement.startswith("CREATE INDEX")
        }

    def marks_in(self, made: Sequence[Made]) -> Schema:
        """Return a log's triggers on the view's tables and on the table of all views, and other marks of a foreign write."""
        kept = {*self.tables, "inline_views", "set_aside"}
        return {
            one.name: one.sql
            for one in made
            if one.kind == "trigger" and (one.table in kept or view_marked_by(str(one.sql)) == self.view)
        }

    def is_whole_in(self, made: Sequence[Made]) -> bool:
        """Return whether the tables are there as the view makes them, with their triggers."""
        return self.schema == schema_of(made, self.all_tables) and self.marks == self.marks_in(made)


class Fold:
    """A view folded from the events up to `position`.

    The database is SQLite's own temporary one: it leaves memory when it grows, and goes when it is closed. Views that are
    queried together share one.
    """

    def __init__(self, view: InlineView, connection: sqlite3.Connection | None = None) -> None:
        self.name: Final = view.name
        self.position = 0
        self.set_aside: list[SetAside] = []
        self._view = view
        self._heaps: Sequence[str] = ()
        self.connection: Final = temporary() if connection is None else connection
        self._sql = PlainSql(self.connection)
        view.create(self._sql)

    @classmethod
    def of_whole_log(cls, view: InlineView, connection: sqlite3.Connection | None = None) -> Self:
        """Return a view that takes in a whole log before any row of it is read.

        Tables that it only adds to have their rows as they come, without a key, until they are asked for: a tree that is far
        larger than what is kept of it in memory would be read and written at another place for each row.
        """
        fold = cls(view, connection)
        if isinstance(view, AddingView):
            fold._heaps = view.only_added
            for table in fold._heaps:
                fold.connection.execute(f"DROP TABLE {table}")
                fold.connection.execute(f"CREATE TABLE {table} ({', '.join(layout_of(view).columns[table])})")
        return fold

    def meant(self, table: str, column: str, value: object) -> object:
        """Return the meaning of a stored value: two values packed into other bytes may mean the same."""
        if isinstance(self._view, PackingView) and type(value) is bytes:
            with suppress(ValueError):
                return self._view.unpacked(table, column, value)
        return value

    def reach(self, position: int) -> None:
        """Note that there is nothing more to take in up to a position."""
        self.position = max(self.position, position)

    def settle(self) -> None:
        """Sort all rows, once: from now on they can be read."""
        if not self._heaps:
            return
        layout, sql = layout_of(self._view), self.connection
        sql.execute("BEGIN")
        for table in self._heaps:
            sql.execute(f"ALTER TABLE {table} RENAME TO {table}_heap")
            sql.execute(str(layout.schema[table]))
            sql.execute(
                f"INSERT INTO {table} SELECT * FROM {table}_heap ORDER BY {', '.join(layout.keys[table])}"  # noqa: S608 - a view's own table
            )
            sql.execute(f"DROP TABLE {table}_heap")
        there = {one.name for one in made_in(sql)}
        for name, statement in layout.indexes.items():
            if name not in there:
                sql.execute(statement)
        sql.execute("COMMIT")
        self._heaps = ()

    def take(self, page: Page) -> None:
        """Take in the events after the position; those that can't be read or taken in are set aside."""
        self.set_aside += [lost(self.name, row, error) for row, error in page.unread]
        self.set_aside += [
            lost(self.name, event, error) for event, error in poison(self._attempt, page.events)
        ]
        self.reach(page.position)

    def rows_of(self, table: str) -> Iterator[Row]:
        """Return all rows of one of its tables in the order of its key, column by column in the order of its statement."""
        keys = ", ".join(layout_of(self._view).keys[table])
        return iter(self.connection.execute(f"SELECT * FROM {table} ORDER BY {keys}"))  # noqa: S608 - a view's own table

    def close(self) -> None:
        """Delete the temporary database."""
        self.connection.close()

    def _attempt(self, events: Sequence[Recorded]) -> Exception | None:
        self.connection.execute("BEGIN")
        try:
            take_in(self._view, self._sql, events)
        except Exception as error:  # noqa: BLE001 - as in the log: whatever it is, the event is set aside
            self.connection.execute("ROLLBACK")
            return error
        self.connection.execute("COMMIT")
        return None


def bring(
    folds: Sequence[Fold],
    rows: Callable[[int], Sequence[Row]],
    proven: Proven,
    *,
    to: Mapping[str, int],
    progress: Progress | None = None,
) -> None:
    """Have views take in what they have not, each up to a position; `rows` returns those behind one, or none if there are no more.

    `progress` gets the position after each page, and the last one.
    """
    after = min((fold.position for fold in folds), default=0)
    last = max((to[fold.name] for fold in folds), default=0)
    while after < last and (found := rows(after)):
        page = page_of(found, proven)
        for fold in folds:
            fold.take(page.between(fold.position, to[fold.name]))
        after = page.position
        if progress is not None:
            progress(min(after, last), last)


_LAYOUTS: Final[dict[tuple[type, str, int], Layout]] = {}


def layout_of(view: InlineView) -> Layout:
    """Return the layout of a view, made once a process: a view with other tables has another shape."""
    made = _LAYOUTS.get(which := (type(view), view.name, view.shape))
    if made is None:
        with closing(Fold(view)) as fold:
            made = _LAYOUTS[which] = Layout.of(view.name, fold.connection)
    return made


def temporary() -> sqlite3.Connection:
    """Return a temporary database."""
    # One thread after the other: the writer's takes over what another one has folded.
    connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=MEMORY")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    return connection


MADE: Final = "SELECT type, CAST(name AS BLOB), CAST(tbl_name AS BLOB), CAST(sql AS BLOB) FROM sqlite_master"
"""Asks for all that was made in a database, as bytes: what somebody wrote there need be no text."""


def made_of(rows: Iterable[Row]) -> Sequence[Made]:
    """Return the objects in a database, from the rows of `MADE`. A value that is not text matches nothing."""
    return [Made(kind, *(part and part.decode(errors="replace") for part in parts)) for kind, *parts in rows]


def made_in(connection: sqlite3.Connection) -> Sequence[Made]:
    """Return all objects in a database."""
    return made_of(PlainSql(connection).execute(MADE))


def schema_of(made: Sequence[Made], tables: Sequence[str]) -> Schema:
    """Return some tables, and their indexes."""
    return {one.name: one.sql for one in made if one.kind in {"table", "index"} and one.table in tables}


def _is_of(table: str, text_indexes: Sequence[str]) -> bool:
    return any(table == name or table.startswith(f"{name}_") for name in text_indexes)


class PlainSql(sqlite3.Cursor):
    """A cursor as views see it: rows are plain tuples, whatever type the connection gives them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.row_factory = getattr(connection, "clear", None)

    def later(self, statement: str, parameters: Sequence[SqlValue] = ()) -> Callable[[], list[Row]]:
        """Run a statement, and return its rows when they are asked for."""
        rows = self.execute(statement, parameters).fetchall()
        return lambda: rows
