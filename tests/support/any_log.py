"""Where the log of a test lies, and opens it: in a file, or on a server, as the test is run."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, overload

import psycopg
import pytest

from intersession_events.stores.opened import located
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.log import PostgresLog
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.url import is_postgres
from support.postgres.server import Server

AnyLog = SqliteLog | PostgresLog
L = TypeVar("L", bound=PortableLog)

ON_POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)
FILE_OR_POSTGRES = ["file", ON_POSTGRES]
EVERY_STORE = ["file", "memory", ON_POSTGRES]


class Logs:
    """Says where logs lie: in the folder of a test, or in schemas of a server, with that folder for what is kept in files."""

    def __init__(self, server: Callable[[], Server] | None = None) -> None:
        self._server = server

    @property
    def are_files(self) -> bool:
        """Whether each is a SQLite file."""
        return self._server is None

    def at(self, folder: Path, name: str = "log") -> str:
        """Return the URL of the log of this name in a folder: the same one whenever it is asked for."""
        if self._server is None:
            return f"sqlite:///{folder / f'{name}.db'}"
        schema = f"log_{sha256(f'{folder}/{name}'.encode()).hexdigest()[:16]}"
        return f"{self._server().url}&schema={schema}&files={folder}"

    def passing(self, folder: Path) -> str:
        """Return the URL of a log that nobody opens again: in memory, if not on a server."""
        return ":memory:" if self._server is None else self.at(folder)


@overload
def log_at(place: Path | str, **options: Any) -> AnyLog: ...
@overload
def log_at(place: Path | str, kind: Callable[..., L], **options: Any) -> L: ...
def log_at(place: Path | str, kind: Any = None, **options: Any) -> Any:
    """Open a log at its URL, in a file, or in memory; as one that departs from others as a `kind` of log says."""
    url = str(place)
    store: type[AnyLog] = PostgresLog if url.startswith("postgresql://") else SqliteLog
    made = store if kind is None else type(kind.__name__, (kind, store), {})
    return made(url.removeprefix("sqlite:///"), **options)


def changed_behind(url: str | Path, statement: str, *given: object) -> list[tuple[Any, ...]]:
    """Change what a store has written, behind the back of whoever has the log: one statement, with `?` for what is given.

    Returns the rows that it asks for, if any.
    """
    url = str(url)
    if is_postgres(url):
        address = address_of(url)
        with psycopg.connect(address.conninfo, autocommit=True) as server:
            server.execute(f"SET search_path TO {address.schema}".encode())
            asked = server.execute(statement.replace("?", "%s").encode(), given)
            return asked.fetchall() if asked.description else []
    with closing(sqlite3.connect(located(url).place)) as file, file:
        return file.execute(statement, given).fetchall()


def written(url: str) -> bytes:
    """Return all that a store has written of a log: its files, or each value of its tables."""
    if not is_postgres(url):
        path = Path(located(url).place)
        return b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*") if each.is_file())
    address = address_of(url)
    with psycopg.connect(address.conninfo) as server:
        tables = server.execute(
            "SELECT format('%%I.%%I', schemaname, tablename) FROM pg_tables WHERE schemaname = %s",
            (address.schema,),
        ).fetchall()
        rows = [row for (table,) in tables for row in server.execute(f"TABLE {table}".encode())]
    values = (value for row in rows for value in row)
    return b" ".join(value if isinstance(value, bytes) else str(value).encode() for value in values)


class Place:
    """Where a log is: it can be opened again, and by a reader."""

    def __init__(self, request: pytest.FixtureRequest, tmp_path: Path) -> None:
        self._kind: str = request.param
        self._path = tmp_path / "log.db"
        self._url: str = request.getfixturevalue("postgres_url") if self._kind == "postgres" else ""

    def open(self, **options: Any) -> AnyLog:
        if self._kind == "postgres":
            return PostgresLog(self._url, **options)
        return SqliteLog(":memory:" if self._kind == "memory" else self._path, **options)
