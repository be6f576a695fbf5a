"""The tables of views in an SQLite file: how they are marked, filled, and checked."""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain

from intersession_events.log.sql import Row, Sql, Together
from intersession_events.log.tables import missing_tables, unreadable_tables, view_marked_by
from intersession_events.stores.database import Cursor, Failures
from intersession_events.stores.folding.fold import MADE, Fold, Layout, PlainSql, made_of, schema_of
from intersession_events.stores.sqlite.connections import raw_of
from intersession_events.stores.sqlite.failures import FAILURES


class SqliteViews:
    """What SQLite does in its own way for the tables of views."""

    failures: Failures = FAILURES

    def sql(self, cursor: Cursor) -> Sql:
        """Return a cursor as views have it."""
        return cursor if isinstance(cursor, PlainSql) else PlainSql(raw_of(cursor))

    def make_room(self, sql: Sql, layouts: Sequence[Layout]) -> None:
        """Remove objects that another program put in the place of views' tables, and those that SQLite can't drop by itself.

        It drops no index of text of which a part is gone.
        """
        made = made_of(sql.execute(f"{MADE} WHERE type<>'trigger'").fetchall())
        for layout in layouts:
            for one in made:
                if one.kind == "view" and one.name in layout.all_tables:
                    sql.execute(f"DROP VIEW {one.name}")
            if schema_of(made, layout.all_tables) != layout.schema:
                for one in made:
                    if one.name in layout.all_tables and str(one.sql).upper().startswith("CREATE VIRTUAL"):
                        _forget(sql, one.name)

    def mark(self, sql: Sql, layout: Layout) -> None:
        """Make every foreign write into the tables of a view leave a mark, inside the transaction that makes them."""
        # Of all tables: a mark goes with its table when somebody gives that another name.
        there: dict[str, str] = dict(
            sql.execute("SELECT name, sql FROM sqlite_master WHERE type='trigger'").fetchall()
        )
        marks, named = layout.marks, layout.view.replace("'", "''")
        for trigger in [
            one
            for one, statement in there.items()
            if one not in marks and named in statement and view_marked_by(statement) == layout.view
        ]:
            sql.execute(f'DROP TRIGGER "{trigger}"')  # somebody else's, on any table
        for trigger, statement in marks.items():
            if there.get(trigger) == statement:
                continue
            if trigger in there:
                sql.execute(f"DROP TRIGGER {trigger}")
            sql.execute(str(statement))

    def remember(self, cursor: Cursor, shapes: Mapping[str, int], position: int) -> None:
        """Store how far views have got, over the mark that the writer's own rows have left as well.

        An update would look for each row, and run the trigger that marks a position which is set back: half as fast.
        """
        cursor.execute(_reached(len(shapes)), (position, *chain.from_iterable(shapes.items())))

    def together(self, cursor: Cursor) -> Together:
        """Return a function that asks several questions, one after the other, inside a transaction."""
        sql = self.sql(cursor)
        return lambda questions: [sql.execute(*question).fetchall() for question in questions]

    def whole(self, together: Together, layouts: Sequence[Layout]) -> set[str]:
        """Return the views whose tables are as the view makes them, with the triggers that mark foreign writes."""
        (rows,) = together([(MADE, ())])
        made = made_of(rows)
        return {layout.view for layout in layouts if layout.is_whole_in(made)}

    def are_kept(self, together: Together) -> bool:
        """Return whether the table that says how far each view has got is there and intact."""

        def query(statement: str) -> list[Row]:
            (rows,) = together([(statement, ())])
            return rows

        kept = {"inline_views", "set_aside"}
        missing = kept.intersection(missing_tables(query))
        return not missing and not any(unreadable_tables(query, kept))

    def fill(self, cursor: Cursor, fold: Fold, layout: Layout) -> None:
        """Write folded rows into the empty tables of a view."""
        sql = raw_of(cursor).cursor()
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


@cache
def _reached(views: int) -> str:
    rows = ", ".join(["(?1, ?, ?)"] * views)
    return f"REPLACE INTO inline_views (position, name, shape) VALUES {rows}"  # noqa: S608 - question marks


def _forget(sql: Sql, table: str) -> None:
    """Remove a virtual table from the schema, and drop its parts; its module may be missing."""
    sql.execute("PRAGMA writable_schema=ON")
    try:
        sql.execute("DELETE FROM sqlite_master WHERE name=?", (table,))
    finally:
        sql.execute("PRAGMA writable_schema=RESET")
    parts = sql.execute("SELECT name FROM sqlite_master WHERE type='table' AND name GLOB ?", (f"{table}_*",))
    for (part,) in parts.fetchall():
        sql.execute(f'DROP TABLE "{part}"')
