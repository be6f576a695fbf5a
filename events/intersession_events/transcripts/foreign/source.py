"""Opens the database of another framework for reading: an SQLite file, or a PostgreSQL server (IN-1)."""

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from intersession_events.basics.errors import ImportFailed, MissingExtra, NoSuchStore
from intersession_events.transcripts.openclaw.reading.database_files import opened_database

if TYPE_CHECKING:
    from psycopg import Connection

_POSTGRES: Final = ("postgresql://", "postgres://")
_PAGE: Final = 200
"""Rows that a server sends at once."""

Row = tuple[Any, ...]  # a column of a foreign database may have any type


@dataclass(frozen=True)
class Source:
    """An open database. `name` is what reports call it by, `tables` has the columns of each table."""

    name: str
    tables: Mapping[str, frozenset[str]]
    rows: Callable[[str], Iterable[Row]]
    is_server: bool

    def needs(self, expected: str, **tables: str) -> None:
        """Check that tables are there, with their columns.

        Raises:
            ImportFailed: one is missing, or a column of it.
        """
        for table, columns in tables.items():
            missing = sorted(set(columns.split()) - self.tables.get(table, frozenset()))
            if missing:
                lacks = (
                    f"its table {table} has no {missing[0]}" if table in self.tables else f"no table {table}"
                )
                raise ImportFailed(f"{self.name} has {lacks}; {expected}")


@contextmanager
def opened_source(where: str, user: str) -> Generator[Source]:
    """Open the file at a path, or the database at a `postgresql://` URL, as it stands at one moment. Nothing is written.

    Raises:
        ImportFailed: it is not there, is no database, or can't be read.
        MissingExtra: a server needs the extra `postgres`.
    """
    if where.startswith(_POSTGRES):
        with _server(where) as source:
            yield source
        return
    path = Path(where.removeprefix("sqlite:///")).expanduser()
    try:
        path = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise ImportFailed(
            f"{where} can't be read ({error}); give a database file or a postgresql:// URL"
        ) from None
    if not path.is_file():
        raise ImportFailed(f"{where} is no file; give the database file itself")
    with opened_database(path, path.name, user=user) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = "SELECT name FROM pragma_table_info(?)"
        tables = {name: frozenset(row[0] for row in database.execute(columns, (name,))) for name in names}
        yield Source(path.name, tables, database.execute, is_server=False)


@contextmanager
def _server(url: str) -> Generator[Source]:
    try:
        import psycopg  # noqa: PLC0415 - an extra

        from intersession_events.stores.postgres.address import address_of  # noqa: PLC0415 - as above
    except ImportError as error:
        raise MissingExtra("a database on PostgreSQL", "psycopg", "postgres") from error
    try:
        address = address_of(url)
    except NoSuchStore as error:
        raise ImportFailed(f"{error}") from None
    try:
        with closing(psycopg.connect(address.conninfo)) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            sql = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = ANY(current_schemas(false))"
            tables: dict[str, set[str]] = {}
            for table, column in connection.execute(sql):
                tables.setdefault(table, set()).add(column)
            named = {table: frozenset(columns) for table, columns in tables.items()}
            name = connection.info.dbname
            yield Source(name, named, lambda text: _streamed(connection, text), is_server=True)
    except psycopg.Error as error:
        # Only words without the secrets of the URL: an error may repeat what it was given.
        raise ImportFailed(f"the database on PostgreSQL can't be read: {address.said(error)}") from None


def _streamed(connection: "Connection[Row]", text: str) -> Iterable[Row]:
    with connection.cursor(name="intersession_import") as cursor:
        cursor.itersize = _PAGE
        cursor.execute(text.encode())
        yield from cursor
