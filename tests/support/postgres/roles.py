"""Three roles for one log, that have what the page's script gives them."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager

import psycopg

from intersession_events.stores.postgres.address import address_of
from support.paths import DOCS
from support.postgres.server import Server


def schema_of(url: str) -> str:
    return address_of(url).schema


def as_role(url: str, role: str) -> str:
    return url.replace("postgres@", f"{role}@")


@contextmanager
def three_roles(postgres: Server, postgres_url: str) -> Generator[dict[str, str]]:
    """Make the roles, and give each with the URL of a log for it."""
    schema = schema_of(postgres_url)
    names = {role: f"{schema}_{role}" for role in ("owner", "writer", "reader")}
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        for name in names.values():
            connection.execute(f"CREATE ROLE {name} LOGIN".encode())
        give_rights(postgres, schema, names)
        yield {role: as_role(postgres_url, name) for role, name in names.items()}
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())
        for name in names.values():
            connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())


def give_rights(postgres: Server, schema: str, names: dict[str, str], *, by: str = "postgres") -> None:
    script = postgres.directory / "roles.sql"
    shutil.copy(DOCS / "howto" / "postgresql-roles.sql", script)
    script.chmod(0o644)
    variables = (f"--set={key}={value}" for key, value in {"schema": schema, **names}.items())
    postgres.run(
        *("psql", "-h", str(postgres.directory), "-U", by, "-d", "postgres"),
        *(*variables, "-f", "roles.sql"),
    )
