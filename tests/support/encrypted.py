"""Master keys for tests, and all bytes that a host with a log leaves behind."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from intersession_events.stores.keys.source import Source
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.url import is_postgres


def master_key(folder: Path, *, byte: int = 7, name: str = "master.key") -> Path:
    """Write a master key, as a user does."""
    path = folder / name
    path.write_text(base64.b64encode(bytes([byte]) * 32).decode() + "\n")
    path.chmod(0o600)
    return path


def with_key(path: Path, **more: Any) -> dict[str, Any]:
    """Return a configuration that keeps a log encrypted."""
    return {"encryption": {"keys": {"file": str(path)}, **more}, "views": {"afterSeconds": 0}}


def source(path: Path) -> Source:
    """Return where a master key is, as stores have it."""
    return Source(file=str(path))


def all_bytes(url: str, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a folder and the tables of a log's schema, by their names, and what is in each."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes()
    if not is_postgres(url):
        return
    address = address_of(url)
    with psycopg.connect(address.conninfo, autocommit=True) as server:
        tables = server.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", (address.schema,)
        ).fetchall()
        for (table,) in tables:
            rows = server.execute(f'SELECT * FROM {address.schema}."{table}"'.encode()).fetchall()  # noqa: S608 - ours
            columns = (column for row in rows for column in row)
            yield table, b"\n".join(one if isinstance(one, bytes) else str(one).encode() for one in columns)


def where(url: str, folder: Path, *canaries: bytes) -> list[str]:
    """Return the names of the files and tables in which a canary stands."""
    return [name for name, data in all_bytes(url, folder) if any(canary in data for canary in canaries)]
