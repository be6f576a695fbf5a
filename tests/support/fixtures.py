"""Fixtures that tests of every room use."""

from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from itertools import count
from pathlib import Path

import pytest

from support.any_log import ON_POSTGRES
from support.doors.scripted_endpoint import scripted_endpoint
from support.postgres.server import Server, postgres_server
from support.running import Booth, Gate

ON_BOTH_STORES = frozenset({"test_send", "test_loop_and_announce", "test_spawn", "test_runs"})
"""The modules of tests of whole systems that `-m postgres` runs on a server as well."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "booth" in metafunc.fixturenames and metafunc.definition.path.stem in ON_BOTH_STORES:
        metafunc.parametrize("booth", ["sqlite", ON_POSTGRES], indirect=True)


@pytest.fixture
def booth(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Booth]:
    """Systems on a file, or on a server."""
    is_postgres = getattr(request, "param", "sqlite") == "postgres"
    with Booth(tmp_path, request.getfixturevalue("postgres_url") if is_postgres else None) as opened:
        yield opened


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate that is open once the test is over."""
    made = Gate()
    yield made
    made.open()


@pytest.fixture
def endpoint() -> Iterator[ThreadingHTTPServer]:
    """An endpoint of models that answers by a script."""
    with scripted_endpoint() as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server: one for all tests of a process."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Server, tmp_path: Path) -> str:
    """The URL of a log that is not there yet, in a schema of its own."""
    return f"{postgres.url}&schema=log_{next(_SCHEMAS)}&files={tmp_path}"


_SCHEMAS = count(1)
