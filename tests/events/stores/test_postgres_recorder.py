"""The library's own recorder tests, on our tables in PostgreSQL and our connections."""

import uuid

import pytest
from eventsourcing.postgres import PostgresFactory
from eventsourcing.tests.persistence import (
    ApplicationRecorderTestCase,
    NonInterleavingNotificationIDsBaseCase,
)
from eventsourcing.utils import Environment

from support.library_recorders import ServerRecorder

pytestmark = pytest.mark.postgres


def make_recorder(url: str) -> ServerRecorder:
    environment = {
        "PERSISTENCE_MODULE": "intersession_events.stores.postgres.application:LogFactory",
        "APPLICATION_RECORDER_TOPIC": "support.library_recorders:ServerRecorder",
        "POSTGRES_URL": url,
    }
    recorder = PostgresFactory.construct(Environment(env=environment)).application_recorder()
    assert isinstance(recorder, ServerRecorder)
    return recorder


class _OnPostgres:
    recorders: list[ServerRecorder]

    @pytest.fixture(autouse=True)
    def _server(self, postgres_url: str) -> None:
        self._url = postgres_url

    def setUp(self) -> None:
        self.recorders = []

    def tearDown(self) -> None:
        for recorder in self.recorders:
            recorder.close()
            recorder.datastore.close()

    def new_originator_id(self) -> str:
        return str(uuid.uuid4())

    def create_recorder(self) -> ServerRecorder:
        self.recorders.append(make_recorder(self._url))
        return self.recorders[-1]


class TestApplicationRecorderOnPostgres(_OnPostgres, ApplicationRecorderTestCase[ServerRecorder]):
    pass


class TestPositionsOnPostgres(_OnPostgres, NonInterleavingNotificationIDsBaseCase):
    pass


del ApplicationRecorderTestCase, NonInterleavingNotificationIDsBaseCase
