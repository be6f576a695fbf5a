"""The library's own recorder tests, and what group commit adds to them."""

import threading
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from eventsourcing.persistence import IntegrityError, StoredEvent
from eventsourcing.sqlite import SQLiteFactory
from eventsourcing.tests.persistence import (
    ApplicationRecorderTestCase,
    NonInterleavingNotificationIDsBaseCase,
)
from eventsourcing.utils import Environment

from intersession_events.stores.sqlite.connections import LogDatastore, PinnedConnection
from intersession_events.stores.sqlite.recorder import GroupCommitRecorder

ENVIRONMENT = {
    "PERSISTENCE_MODULE": "intersession_events.stores.sqlite.connections:LogFactory",
    "APPLICATION_RECORDER_TOPIC": "intersession_events.stores.sqlite.recorder:GroupCommitRecorder",
    "ORIGINATOR_ID_TYPE": "text",
}


def make_recorder(database: str) -> GroupCommitRecorder:
    factory = SQLiteFactory.construct(Environment(env={**ENVIRONMENT, "SQLITE_DBNAME": database}))
    recorder = factory.application_recorder()
    assert isinstance(recorder, GroupCommitRecorder)
    return recorder


def event(stream: str, version: int, state: bytes = b"{}") -> StoredEvent:
    return StoredEvent(originator_id=stream, originator_version=version, topic="t.1", state=state)


class _OnMemory:
    recorders: list[GroupCommitRecorder]

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

    def create_recorder(self) -> GroupCommitRecorder:
        self.recorders.append(make_recorder(self.database()))
        return self.recorders[-1]


class _OnFile(_OnMemory):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path) -> None:
        self._path = tmp_path

    def database(self) -> str:
        return f"file:{self._path}/{uuid.uuid4()}.db?mode=rwc"


class TestApplicationRecorderInMemory(_OnMemory, ApplicationRecorderTestCase[GroupCommitRecorder]):
    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestApplicationRecorderOnFile(_OnFile, ApplicationRecorderTestCase[GroupCommitRecorder]):
    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestPositionsInMemory(_OnMemory, NonInterleavingNotificationIDsBaseCase):
    pass


class TestPositionsOnFile(_OnFile, NonInterleavingNotificationIDsBaseCase):
    pass


del ApplicationRecorderTestCase, NonInterleavingNotificationIDsBaseCase


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[GroupCommitRecorder]:
    recorder = make_recorder(f"file:{tmp_path}/events.db?mode=rwc")
    yield recorder
    recorder.close()
    recorder.datastore.close()


@pytest.mark.clause("D3")
def test_every_connection_of_the_pool_is_pinned(recorder: GroupCommitRecorder) -> None:
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
    assert min(waits) >= 5000
    for connection in connections:
        datastore.pool.put_connection(connection)


@pytest.mark.clause("O1")
def test_one_callers_conflict_fails_only_that_caller(recorder: GroupCommitRecorder) -> None:
    threads, rounds = 8, 40
    barrier = threading.Barrier(threads)
    won: list[int] = []
    lost: list[int] = []
    own_errors: list[Exception] = []

    def write(number: int) -> None:
        barrier.wait()
        for version in range(rounds):
            try:
                recorder.insert_events([event("contested", version, b"%d" % number)])
                won.append(version)
            except IntegrityError:
                lost.append(version)
            try:
                recorder.insert_events([event(f"own-{number}", version)])
            except Exception as error:  # noqa: BLE001 - none may happen
                own_errors.append(error)

    run_all([threading.Thread(target=write, args=(number,)) for number in range(threads)])

    assert own_errors == []
    assert sorted(won) == list(range(rounds))
    assert len(lost) == rounds * (threads - 1)
    positions = [row.id for row in recorder.select_notifications(start=None, limit=10_000)]
    assert positions == list(range(1, rounds * (threads + 1) + 1))


def test_all_that_wait_share_one_transaction(recorder: GroupCommitRecorder) -> None:
    recorder.commits.by_hand = True
    told: list[Any] = []
    for number in range(100):
        recorder.append([event(f"s{number}", 1)], told.append)
    recorder.append([event("s7", 1)], told.append)

    assert recorder.commits.step()
    assert not recorder.commits.step()

    assert told[:100] == [[number] for number in range(1, 101)]
    assert isinstance(told[100], IntegrityError)


def run_all(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
