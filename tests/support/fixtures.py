"""Fixtures that tests of every room use."""

from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from itertools import count
from pathlib import Path

import pytest

from support.doors.scripted_endpoint import scripted_endpoint
from support.postgres.server import Server, postgres_server
from support.running import Booth, Gate


@pytest.fixture
def booth(tmp_path: Path) -> Iterator[Booth]:
    with Booth(tmp_path) as opened:
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
def postgres_url(postgres: Server) -> str:
    """The URL of a log that is not there yet, in a schema of its own."""
    return f"{postgres.url}&schema=log_{next(_SCHEMAS)}"


_SCHEMAS = count(1)
