"""The tables of views in a schema: how they are marked, filled, and looked at."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Final, cast

from intersession_events.log import ID_TEXT, TOUCHED, Row, Sql
from intersession_events.stores.database import Cursor, Failures
from intersession_events.stores.folding import Fold, Layout
from intersession_events.stores.portable import Query
from intersession_events.stores.postgres.connections import WRITES, PgCursor
from intersession_events.stores.postgres.dialect import TYPES

MARK: Final = "touched"
"""What the trigger is called that each table of a view has, and the function that it calls."""

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


class PostgresViews:
    """What PostgreSQL does in its own way for the tables of views."""

    def __init__(self, failures: Failures) -> None:
        self.failures = failures

    def sql(self, cursor: Cursor) -> Sql:
        """Return a cursor as views have it."""
        return cast("Sql", cursor)

    def make_room(self, sql: Sql, layout: Layout) -> None:
        """Take away queries that somebody has put in the place of a view's tables."""
        names = _names(layout)
        for (name,) in sql.execute(
            f"SELECT viewname::text FROM pg_views WHERE schemaname = current_schema() AND viewname IN ({', '.join('?' * len(names))})",  # noqa: S608 - question marks
            names,
        ).fetchall():
            sql.execute(f"DROP VIEW {name}")

    def mark(self, sql: Sql, layout: Layout) -> None:
        """Have everybody else who writes into the tables of a view leave a mark, inside the transaction that makes them."""
        for table in _names(layout):
            sql.execute(
                f"CREATE OR REPLACE TRIGGER {MARK} AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table} "
                f"FOR EACH STATEMENT WHEN {_ELSE} EXECUTE FUNCTION {MARK}('{layout.view}')"
            )

    def is_whole(self, query: Query, layout: Layout) -> bool:
        """Return whether the tables of a view are there as it makes them, and who writes into them leaves a mark."""
        return not any(problems(query, layout))

    def fill(self, cursor: Cursor, fold: Fold, layout: Layout) -> None:
        """Put the rows that were folded into the empty tables of a view."""
        own = cast("PgCursor", cursor)
        for index in layout.indexes:
            own.execute(f"DROP INDEX {index}")
        for table in layout.tables:
            own.copy_in(table, layout.columns[table], rows_of(fold, layout, table))
        for statement in layout.indexes.values():
            own.execute(statement)
        for name in layout.text_indexes:
            own.copy_in(name, ("notification_id", "grams"), _documents(fold, name))


def problems(query: Query, layout: Layout) -> Iterator[str]:
    """Name what is not as a view makes it, in words."""
    names = _names(layout)

    def ask(statement: str) -> list[Row]:
        return query(statement.format(", ".join("?" * len(names))), names)

    there: dict[str, list[tuple[str, str, bool]]] = {}
    for table, name, kind, not_null in ask(_MADE):
        there.setdefault(table, []).append((name, kind, not_null))
    yield from _other_tables(layout, there)
    yield from _other_indexes(layout, there, ask(_INDEXES))
    marked = {(table, name, given) for table, name, enabled, given in ask(_TRIGGERS) if enabled in {"O", "A"}}
    wanted = {(table, MARK, f"{layout.view}\\000") for table in names}
    yield from (f"the trigger {name} of {table} is missing" for table, name, _ in sorted(wanted - marked))
    yield from (f"the trigger {name} of {table} was added" for table, name, _ in sorted(marked - wanted))


def _other_tables(layout: Layout, there: Mapping[str, Sequence[tuple[str, str, bool]]]) -> Iterator[str]:
    for table in _names(layout):
        if table not in there:
            yield f"the table {table} is missing"
    for table in layout.tables:
        wanted = [(one.name, TYPES[one.kind], one.not_null) for one in layout.described[table]]
        if there.get(table, wanted) != wanted:
            yield f"the table {table} is another"


def _other_indexes(layout: Layout, tables: Iterable[str], rows: Sequence[Row]) -> Iterator[str]:
    found = {name for _, name, _, is_valid in rows if is_valid}
    for name in (*layout.indexes, *(f"{one}_grams" for one in layout.text_indexes)):
        if name not in found:
            yield f"the index {name} is missing"
    for table in sorted(set(tables) - {table for table, _, is_key, is_valid in rows if is_key and is_valid}):
        yield f"the table {table} has no key"


def rows_of(fold: Fold, layout: Layout, table: str) -> Iterator[Row]:
    """Yield what was folded into a table as this database keeps it: no text stands among bytes."""
    mixed = [at for at, column in enumerate(layout.described[table]) if column.kind == "BLOB"]
    for row in fold.rows_of(table):
        if any(type(row[at]) is str for at in mixed):
            yield tuple(
                ID_TEXT + value.encode() if at in mixed and isinstance(value, str) else value
                for at, value in enumerate(row)
            )
        else:
            yield row


def _documents(fold: Fold, name: str) -> Iterator[tuple[int, str]]:
    """Yield what each document of an index of text has in it."""
    with closing(fold.connection.cursor()) as cursor:
        cursor.execute(f"CREATE VIRTUAL TABLE temp.{name}_held USING fts5vocab(main, {name}, instance)")
        yield from cursor.execute(_GRAMS.format(name))
        cursor.execute(f"DROP TABLE temp.{name}_held")


def _names(layout: Layout) -> list[str]:
    return [*layout.tables, *layout.text_indexes]
