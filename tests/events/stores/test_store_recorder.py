"""The library's own recorder tests, on our tables and our connections, in files and on PostgreSQL."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventsourcing.postgres import PostgresFactory
from eventsourcing.sqlite import SQLiteFactory
from eventsourcing.tests.persistence import (
    ApplicationRecorderTestCase,
    NonInterleavingNotificationIDsBaseCase,
)
from eventsourcing.utils import Environment

from intersession_events.stores.sqlite.connections import LogDatastore, PinnedConnection
from support.library_recorders import FileRecorder, ServerRecorder

ENVIRONMENT = {
    "PERSISTENCE_MODULE": "intersession_events.stores.sqlite.application:LogFactory",
    "APPLICATION_RECORDER_TOPIC": "support.library_recorders:FileRecorder",
    "ORIGINATOR_ID_TYPE": "text",
}


def make_recorder(database: str) -> FileRecorder:
    factory = SQLiteFactory.construct(Environment(env={**ENVIRONMENT, "SQLITE_DBNAME": database}))
    recorder = factory.application_recorder()
    assert isinstance(recorder, FileRecorder)
    return recorder


def make_recorder_on_server(url: str) -> ServerRecorder:
    environment = {
        "PERSISTENCE_MODULE": "intersession_events.stores.postgres.application:LogFactory",
        "APPLICATION_RECORDER_TOPIC": "support.library_recorders:ServerRecorder",
        "POSTGRES_URL": url,
    }
    recorder = PostgresFactory.construct(Environment(env=environment)).application_recorder()
    assert isinstance(recorder, ServerRecorder)
    return recorder


class _OnMemory:
    recorders: list[FileRecorder | ServerRecorder]

    def setUp(self) -> None:
        self.recorders = []

    def tearDown(self) -> None:
        for recorder in self.recorders:
            recorder.close()
            recorder.datastore.close()

    def new_originator_id(self) -> str:
        return str(uuid.uuid4())

    def database(self) -> str:
        return ":memory:"

    def create_recorder(self) -> Any:  # of its own class, as the library's tests are typed
        self.recorders.append(make_recorder(self.database()))
        return self.recorders[-1]


class _OnFile(_OnMemory):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path) -> None:
        self._path = tmp_path

    def database(self) -> str:
        return f"file:{self._path}/{uuid.uuid4()}.db?mode=rwc"


class _OnPostgres(_OnMemory):
    @pytest.fixture(autouse=True)
    def _server(self, postgres_url: str) -> None:
        self._url = postgres_url

    def create_recorder(self) -> Any:
        self.recorders.append(make_recorder_on_server(self._url))
        return self.recorders[-1]


class TestApplicationRecorderInMemory(_OnMemory, ApplicationRecorderTestCase[FileRecorder]):
    pass


class TestApplicationRecorderOnFile(_OnFile, ApplicationRecorderTestCase[FileRecorder]):
    pass


class TestPositionsInMemory(_OnMemory, NonInterleavingNotificationIDsBaseCase):
    pass


class TestPositionsOnFile(_OnFile, NonInterleavingNotificationIDsBaseCase):
    pass


@pytest.mark.postgres
class TestApplicationRecorderOnPostgres(_OnPostgres, ApplicationRecorderTestCase[ServerRecorder]):
    pass


@pytest.mark.postgres
class TestPositionsOnPostgres(_OnPostgres, NonInterleavingNotificationIDsBaseCase):
    pass


del ApplicationRecorderTestCase, NonInterleavingNotificationIDsBaseCase


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[FileRecorder]:
    recorder = make_recorder(f"file:{tmp_path}/events.db?mode=rwc")
    yield recorder
    recorder.close()
    recorder.datastore.close()


@pytest.mark.clause("D3")
def test_every_connection_of_the_pool_is_pinned(recorder: FileRecorder) -> None:
    datastore = recorder.datastore
    assert isinstance(datastore, LogDatastore)
    connections = [datastore.pool.get_connection() for _ in range(15)]
    raw = [connection.raw for connection in connections if isinstance(connection, PinnedConnection)]
    assert len(raw) == 15

    seen = {
        tuple(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode"))
        for connection in raw
    }
    waits = {connection.execute("PRAGMA busy_timeout").fetchone()[0] for connection in raw}

    assert seen == {(2, "wal")}
    assert waits == {200}  # milliseconds: twice that, and who waits for the writer is told
    for connection in connections:
        datastore.pool.put_connection(connection)
