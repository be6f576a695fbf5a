"""The log in a schema as an application of the eventsourcing library: one that reads, and one for the writer."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, cast

from eventsourcing.utils import get_topic

from intersession_events.stores.portable import NAME, PREFIX, LogApplication
from intersession_events.stores.postgres.connections import URL, LogDatastore, LogFactory
from intersession_events.stores.postgres.recorder import GroupCommitRecorder, ReadingRecorder
from intersession_events.stores.snapshots import KeepsSnapshots


class PostgresApplication(LogApplication):
    """What a log's reader and its writer have in common; the reader is one of these."""

    name = NAME
    env: ClassVar[dict[str, str]] = {
        **LogApplication.env,
        f"{PREFIX}PERSISTENCE_MODULE": get_topic(LogFactory),
        f"{PREFIX}APPLICATION_RECORDER_TOPIC": get_topic(ReadingRecorder),
    }

    @property
    def reading(self) -> ReadingRecorder:
        """The recorder, by its own type."""
        return cast("ReadingRecorder", self.recorder)

    @property
    def snapshot_recorder(self) -> KeepsSnapshots:
        """What keeps the snapshots."""
        recorder = super().snapshot_recorder
        recorder.failures = self.reading.failures
        return recorder

    @property
    def datastore(self) -> LogDatastore:
        """The connections."""
        return self.reading.store


class WriterApplication(PostgresApplication):
    """Composes a log for its one writer, who opens it (`opening.py`)."""

    name = NAME
    env: ClassVar[dict[str, str]] = {
        **PostgresApplication.env,
        f"{PREFIX}APPLICATION_RECORDER_TOPIC": get_topic(GroupCommitRecorder),
    }

    @property
    def commits(self) -> GroupCommitRecorder:
        """The recorder, by its own type."""
        return cast("GroupCommitRecorder", self.recorder)


def settings_of(url: str, environment: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the settings that name a log, under what else is set."""
    return {f"{PREFIX}{key}": value for key, value in {URL: url, **environment}.items()}
