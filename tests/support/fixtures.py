"""Fixtures that tests of every room use."""

from collections import Counter
from collections.abc import Iterator, Sequence
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from intersession_events.log.recorded import Recorded
from intersession_events.stores.opened import located
from intersession_events.stores.portable.reading.events import EventReader
from support.any_log import ON_POSTGRES, Logs
from support.doors.scripted_endpoint import scripted_endpoint
from support.forks_played import Conversation, conversation
from support.postgres.server import Server, postgres_server
from support.running import Booth, Gate


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that asks where its log is on both stores, unless it is about the file."""
    if "logs" in metafunc.fixturenames and metafunc.definition.get_closest_marker("sqlite") is None:
        metafunc.parametrize("logs", ["sqlite", ON_POSTGRES], indirect=True, scope="session")


@pytest.fixture(scope="session")
def logs(request: pytest.FixtureRequest) -> Logs:
    """Where logs lie: in files, and with `-m postgres` on a server."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return Logs()
    server: Server = request.getfixturevalue("postgres")
    return Logs(lambda: server)


@pytest.fixture
def log_url(logs: Logs, tmp_path: Path) -> str:
    """The URL of the log of a test; it is not there yet."""
    return logs.at(tmp_path)


@pytest.fixture
def passing_url(logs: Logs, tmp_path: Path) -> str:
    """The URL of a log that nobody opens again: in memory, if not on a server."""
    return logs.passing(tmp_path)


@pytest.fixture
def beside_log(log_url: str) -> Path:
    """The folder in which lies what is kept in files beside the log of a test."""
    folder = Path(located(log_url).place).parent
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def booth(log_url: str) -> Iterator[Booth]:
    """Systems on the log of a test."""
    with Booth(log_url) as opened:
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
    return Logs(lambda: postgres).at(tmp_path)


@pytest.fixture
def roles(postgres: Server, postgres_url: str) -> Iterator[dict[str, str]]:
    """Three roles, each with the URL of a log for it, that have what the page's script gives them."""
    from support.postgres.roles import three_roles  # noqa: PLC0415 - few tests have roles

    with three_roles(postgres, postgres_url) as made:
        yield made


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how many events of each stream are read."""
    read: Counter[str] = Counter()
    reading = EventReader.stream

    def counting(reader: EventReader, stream: str, **bounds: Any) -> Sequence[Recorded]:
        found = reading(reader, stream, **bounds)
        read[stream] += len(found)
        return found

    monkeypatch.setattr(EventReader, "stream", counting)
    return read


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conversation]:
    """A conversation to fork, which the tests of a module share."""
    made = conversation(tmp_path_factory.mktemp("talk"))
    yield made
    made.system.close(grace=0)
