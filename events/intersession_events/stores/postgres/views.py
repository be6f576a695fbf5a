"""The tables of views in a schema: how they are marked, filled, and checked."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import Final, NamedTuple, cast

from intersession_events.log.sql import ID_TEXT, Query, Question, Row, Sql, Together
from intersession_events.log.tables import LOG_TABLES, TOUCHED
from intersession_events.stores.database import Cursor, Failures
from intersession_events.stores.folding.fold import Fold, Layout, made_in
from intersession_events.stores.postgres.connections import WRITES
from intersession_events.stores.postgres.cursor import PgCursor
from intersession_events.stores.postgres.dialect import TYPES
from intersession_events.stores.postgres.readers import Reading

MARK: Final = "touched"
"""The name of the trigger on each table of a view, and of the function that it calls."""

TABLES: Final = (
    """CREATE TABLE {schema}.inline_views (
        name text COLLATE "C" PRIMARY KEY, shape bigint NOT NULL, position bigint NOT NULL)""",
    """CREATE TABLE {schema}.set_aside (
        view text COLLATE "C" NOT NULL, position bigint NOT NULL, stream text COLLATE "C" NOT NULL, version bigint NOT NULL,
        topic text COLLATE "C" NOT NULL, reason text NOT NULL, PRIMARY KEY (view, position))""",
)
"""What is kept for all views."""

_ELSE: Final = f"(current_setting('{WRITES}', true) IS DISTINCT FROM 'on')"
"""Whether it is not the log's writer that writes."""

MARKS: Final = (
    # Somebody else's change of a view's tables: of all of a statement.
    f"""CREATE OR REPLACE FUNCTION {{schema}}.{MARK}() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE {{schema}}.inline_views SET position = {TOUCHED} WHERE name = TG_ARGV[0] AND position >= 0;
        RETURN NULL;
    END $$""",  # noqa: S608 - our own words
    # And of what is kept for all views.
    f"""CREATE OR REPLACE FUNCTION {{schema}}.{MARK}_all() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE {{schema}}.inline_views SET position = {TOUCHED} WHERE position >= 0;
        RETURN NULL;
    END $$""",  # noqa: S608 - the same
    f"""CREATE OR REPLACE FUNCTION {{schema}}.{MARK}_position() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        NEW.position := {TOUCHED};
        RETURN NEW;
    END $$""",
    f"""CREATE OR REPLACE TRIGGER {MARK} AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {{schema}}.set_aside
    FOR EACH STATEMENT WHEN {_ELSE} EXECUTE FUNCTION {{schema}}.{MARK}_all()""",
    f"""CREATE OR REPLACE TRIGGER {MARK} BEFORE UPDATE ON {{schema}}.inline_views
    FOR EACH ROW WHEN (NEW.position BETWEEN 0 AND OLD.position - 1 AND {_ELSE}) EXECUTE FUNCTION {{schema}}.{MARK}_position()""",
)
"""The triggers, and the functions that they call, by which it is known that somebody else has written into a view."""

_MADE: Final = (
    "SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull "
    "FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
    "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname IN ({}) ORDER BY 1, a.attnum"
)
_INDEXES: Final = (
    "SELECT c.relname::text, i.relname::text, x.indisprimary, x.indisvalid FROM pg_class AS c JOIN pg_index AS x "
    "ON x.indrelid = c.oid JOIN pg_class AS i ON i.oid = x.indexrelid "
    "WHERE c.relnamespace = current_schema()::regnamespace AND c.relname IN ({})"
)
_TRIGGERS: Final = (
    "SELECT c.relname::text, t.tgname::text, t.tgenabled::text, encode(t.tgargs, 'escape') FROM pg_class AS c JOIN pg_trigger AS t "
    "ON t.tgrelid = c.oid AND NOT t.tgisinternal WHERE c.relnamespace = current_schema()::regnamespace AND c.relname IN ({})"
)
_GRAMS: Final = "SELECT doc, group_concat(term, ' ') FROM temp.{0}_held GROUP BY doc ORDER BY doc"


_OF_ALL: Final = ("inline_views", "set_aside")
"""The tables that are kept for all views."""


class PostgresViews:
    """What PostgreSQL does in its own way for the tables of views."""

    def __init__(self, failures: Failures) -> None:
        self.failures = failures

    def remember(self, cursor: Cursor, shapes: Mapping[str, int], position: int) -> None:
        """Store how far views have got, except those that another program has written into meanwhile."""
        which = f"WHERE name IN ({', '.join('?' * len(shapes))}) AND position >= 0"
        cursor.execute(f"UPDATE inline_views SET position=? {which}", (position, *shapes))  # noqa: S608 - question marks

    def sql(self, cursor: Cursor) -> Sql:
        """Return a cursor as views have it."""
        return cast("Sql", cursor)

    def make_room(self, sql: Sql, layouts: Sequence[Layout]) -> None:
        """Remove queries that another program put in the place of views' tables, in one round trip for all."""
        names = [name for layout in layouts for name in _names(layout)]
        for (name,) in sql.execute(
            f"SELECT viewname::text FROM pg_views WHERE schemaname = current_schema() AND viewname IN ({', '.join('?' * len(names))})",  # noqa: S608 - question marks
            names,
        ).fetchall():
            sql.execute(f"DROP VIEW {name}")

    def mark(self, sql: Sql, layout: Layout) -> None:
        """Make every foreign write into the tables of a view leave a mark, inside the transaction that makes them."""
        for table in _names(layout):
            sql.execute(
                f"CREATE OR REPLACE TRIGGER {MARK} AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table} "
                f"FOR EACH STATEMENT WHEN {_ELSE} EXECUTE FUNCTION {MARK}('{layout.view}')"
            )
        for table in layout.tables if layout.text_indexes else ():
            for column in layout.described[table]:
                if column.kind == "BLOB":
                    # Words: a sample of them for plans would stay in the server's catalog when they are erased.
                    sql.execute(f"ALTER TABLE {table} ALTER COLUMN {column.name} SET STATISTICS 0")

    def together(self, cursor: Cursor) -> Together:
        """Return a function that asks several questions in one round trip, inside a transaction."""
        return cast("PgCursor", cursor).together

    def whole(self, together: Together, layouts: Sequence[Layout]) -> set[str]:
        """Return the views whose tables are as the view makes them, with the triggers that mark foreign writes."""
        there = _there(together, layouts)
        return {layout.view for layout in layouts if not any(problems(there, layout))}

    def are_kept(self, together: Together) -> bool:  # noqa: ARG002 - its lease is taken over a schema that was looked at
        """Return whether the tables that say how far each view has got are there."""
        return True

    def fill(self, cursor: Cursor, fold: Fold, layout: Layout) -> None:
        """Write folded rows into the empty tables of a view."""
        own = cast("PgCursor", cursor)
        for index in layout.indexes:
            own.execute(f"DROP INDEX {index}")
        for table in layout.tables:
            own.copy_in(table, layout.columns[table], rows_of(fold, layout, table))
        for statement in layout.indexes.values():
            own.execute(statement)
        for name in layout.text_indexes:
            own.copy_in(name, ("notification_id", "grams"), _documents(fold, name))


class Problem(NamedTuple):
    """A difference from what a view makes: the name of a table, an index, or a trigger's table, and what is wrong with it."""

    kind: str
    name: str
    said: str


class There(NamedTuple):
    """The server's answers about tables."""

    columns: Mapping[str, Sequence[tuple[str, str, bool]]]
    """Of each table that is there: their names, their types, and whether they take no NULL."""
    indexes: Sequence[Row]
    triggers: Sequence[Row]


def asking(names: Sequence[str]) -> list[Question]:
    """Return the questions to the server about tables of these names; `there` reads the answers."""
    marks = ", ".join("?" * len(names))
    return [(statement.format(marks), names) for statement in (_MADE, _INDEXES, _TRIGGERS)]


def there(answers: Sequence[list[Row]]) -> There:
    """Return the server's answers."""
    made, indexes, triggers = answers
    columns: dict[str, list[tuple[str, str, bool]]] = {}
    for table, name, kind, not_null in made:
        columns.setdefault(table, []).append((name, kind, not_null))
    return There(columns, indexes, triggers)


def _there(together: Together, layouts: Sequence[Layout]) -> There:
    if not layouts:
        return There({}, (), ())
    return there(together(asking([*(name for layout in layouts for name in _names(layout)), *_OF_ALL])))


def problems(found: There, layout: Layout) -> Iterator[Problem]:
    """Yield the differences from what a view makes."""
    names = _names(layout)
    columns = {name: found.columns[name] for name in names if name in found.columns}
    yield from _other_tables(layout, columns)
    yield from _other_indexes(layout, columns, [row for row in found.indexes if row[0] in names])
    names = [*names, *_OF_ALL]
    marked = {
        (table, name, given)
        for table, name, enabled, given in found.triggers
        if enabled in {"O", "A"} and table in names
    }
    wanted = {(table, MARK, "" if table in _OF_ALL else f"{layout.view}\\000") for table in names}
    for table, _, _ in sorted(wanted ^ marked):
        yield Problem("trigger", table, "is missing, or another")


def _other_tables(
    layout: Layout, columns: Mapping[str, Sequence[tuple[str, str, bool]]]
) -> Iterator[Problem]:
    for table in _names(layout):
        if table not in columns:
            yield Problem("table", table, "is missing")
    for table in layout.tables:
        wanted = [(one.name, TYPES[one.kind], one.not_null) for one in layout.described[table]]
        if columns.get(table, wanted) != wanted:
            yield Problem("table", table, "is another")


def _other_indexes(layout: Layout, tables: Iterable[str], rows: Sequence[Row]) -> Iterator[Problem]:
    found = {name for _, name, _, is_valid in rows if is_valid}
    for name in (*layout.indexes, *(f"{one}_grams" for one in layout.text_indexes)):
        if name not in found:
            yield Problem("index", name, "is missing")
    for table in sorted(set(tables) - {table for table, _, is_key, is_valid in rows if is_key and is_valid}):
        yield Problem("table", table, "has no key")


def rows_of(fold: Fold, layout: Layout, table: str) -> Iterator[Row]:
    """Yield the rows of a folded table as this database stores them: texts in columns of bytes become bytes."""
    mixed = [at for at, column in enumerate(layout.described[table]) if column.kind == "BLOB"]
    for row in fold.rows_of(table):
        if any(type(row[at]) is str for at in mixed):
            yield tuple(
                ID_TEXT + value.encode() if at in mixed and isinstance(value, str) else value
                for at, value in enumerate(row)
            )
        else:
            yield row


_AT_ONCE: Final = 5_000


def copy_views(reading: Reading, copy: sqlite3.Connection, layouts: Sequence[Layout]) -> None:
    """Copy tables of views, and the table of all views, into an SQLite database, as of one moment.

    What is not as a view makes it is left out: a whole table, an index, or the triggers of a table.
    """
    query: Query = reading
    found = _there(reading.together, layouts)
    copy.execute("BEGIN")
    for table in ("stored_events", *_OF_ALL):
        copy.execute(LOG_TABLES[table])
    ((last,),) = query("SELECT MAX(rowid) FROM stored_events", ())
    if last is not None:
        copy.execute("INSERT INTO stored_events VALUES (?, '', 1, '', X'')", (last,))
    for table in _OF_ALL:
        _copy(query, copy, table, f"SELECT * FROM {table}", None)  # noqa: S608 - our own
    for layout in layouts:
        _copy_view(query, copy, layout, found)
    # Last of all, for they would note what was copied.
    for layout in layouts:
        wrong = {problem.name for problem in problems(found, layout) if problem.kind == "trigger"}
        copied = {one.name for one in made_in(copy)}
        for name, statement in layout.marks.items():
            table = name.removeprefix("touched_").rpartition("_")[0]
            if name not in copied and table in copied - wrong:
                copy.execute(str(statement))
    copy.execute("COMMIT")


def _copy_view(query: Query, copy: sqlite3.Connection, layout: Layout, found: There) -> None:
    wrong = {
        problem.name.removesuffix("_grams")
        for problem in problems(found, layout)
        if problem.kind != "trigger"
    }
    for name, statement in layout.schema.items():
        if statement is not None and name not in wrong and not _is_part(name, layout):
            with suppress(sqlite3.OperationalError):  # an index of a table that is left out
                copy.execute(statement)
    for table in layout.tables:
        if table not in wrong:
            _copy(query, copy, table, f"SELECT {', '.join(layout.columns[table])} FROM {table}", layout)  # noqa: S608 - our own
    for name in layout.text_indexes:
        if name not in wrong:
            entries = "array_to_string(tsvector_to_array(grams), ' ')"
            into = f"INSERT INTO {name} (rowid, grams) VALUES (?, ?)"  # noqa: S608 - our own
            for rows in _pages(query, f"SELECT notification_id, {entries} FROM {name}"):  # noqa: S608 - our own
                copy.executemany(into, rows)


def _is_part(name: str, layout: Layout) -> bool:
    """Whether a table is a part of an index of text, which makes it itself."""
    return any(name.startswith(f"{one}_") for one in layout.text_indexes)


def _copy(query: Query, copy: sqlite3.Connection, table: str, select: str, layout: Layout | None) -> None:
    mixed = (
        [] if layout is None else [at for at, one in enumerate(layout.described[table]) if one.kind == "BLOB"]
    )
    for rows in _pages(query, select):
        if not rows:
            return
        copy.executemany(
            f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})",  # noqa: S608 - our own
            [
                tuple(_as_text(value) if at in mixed else value for at, value in enumerate(row))
                for row in rows
            ],
        )


def _as_text(value: bytes | None) -> str | bytes | None:
    """Return what stands among bytes as SQLite has it."""
    if value is None or not value.startswith(ID_TEXT):
        return value
    return value.removeprefix(ID_TEXT).decode(errors="replace")


def _pages(query: Query, select: str) -> Iterator[list[Row]]:
    query(f"DECLARE seen NO SCROLL CURSOR FOR {select}", ())
    while rows := query(f"FETCH {_AT_ONCE} FROM seen", ()):
        yield rows
    query("CLOSE seen", ())


def _documents(fold: Fold, name: str) -> Iterator[tuple[int, str]]:
    """Yield what each document of an index of text has in it."""
    with closing(fold.connection.cursor()) as cursor:
        cursor.execute(f"CREATE VIRTUAL TABLE temp.{name}_held USING fts5vocab(main, {name}, instance)")
        yield from cursor.execute(_GRAMS.format(name))
        cursor.execute(f"DROP TABLE temp.{name}_held")


def _names(layout: Layout) -> list[str]:
    return [*layout.tables, *layout.text_indexes]
