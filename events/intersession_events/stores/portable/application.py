"""The log as an application of the eventsourcing library, which composes mapper, recorder and event store."""

from collections.abc import Mapping
from typing import ClassVar, Final, cast

from eventsourcing.application import Application, Repository
from eventsourcing.persistence import ApplicationRecorder, EventStore
from eventsourcing.utils import Environment, EnvType, get_topic

from intersession_events.basics.errors import NoSuchStore
from intersession_events.stores.library.mapper import ChainedMapper, Erasures
from intersession_events.stores.portable.reading.recorder import ReadsLog
from intersession_events.stores.portable.snapshots.recorder import KeepsSnapshots, SnapshotMapper

NAME: Final = "intersession"
"""Under this name the library's tracking recorders keep how far a view is: it never changes."""

PREFIX: Final = f"{NAME.upper()}_"


class LogApplication(Application[str]):
    """What a log's reader and its writer have in common.

    Its own settings carry the prefix of its name, so that an environment can have others for the views beside it.
    """

    name = NAME
    log_section_size = 1_000
    env: ClassVar[dict[str, str]] = {
        f"{PREFIX}MAPPER_TOPIC": get_topic(ChainedMapper),
        f"{PREFIX}ORIGINATOR_ID_TYPE": "text",
        f"{PREFIX}CREATE_TABLE": "no",
        f"{PREFIX}IS_SNAPSHOTTING_ENABLED": "yes",
    }
    """A database's own has also `PERSISTENCE_MODULE` and `APPLICATION_RECORDER_TOPIC`."""

    def construct_env(self, name: str, env: EnvType | None = None) -> Environment:
        """Return the settings. They leave out the process's environment: a host may use the library itself."""
        return Environment(name, {**type(self).env, **(env or {})})

    def construct_recorder(self) -> ApplicationRecorder:
        """Make the recorder, which the mapper asks for erasures; called by the library."""
        recorder = super().construct_recorder()
        chained = self.chained
        chained.authorised = Erasures(
            lambda stream: map(chained.to_domain_event, recorder.select_events(stream))
        )
        return recorder

    def construct_snapshot_store(self) -> EventStore[str]:
        """Return the library's store of snapshots, with a mapper and a recorder of ours."""
        recorder = cast("KeepsSnapshots", self.factory.aggregate_recorder(purpose="snapshots"))
        recorder.rows = cast("ReadsLog", self.recorder).event_rows
        return EventStore(SnapshotMapper(self.chained), recorder)

    def construct_repository(self) -> Repository[str]:
        """Return a repository without snapshots: those here belong to our own states, not to the library's aggregates."""
        return Repository(event_store=self.events)

    @property
    def snapshot_recorder(self) -> KeepsSnapshots:
        """What keeps the snapshots."""
        if self.snapshots is None:
            raise NoSuchStore(NAME, "the environment switches the store of snapshots off")
        return cast("KeepsSnapshots", self.snapshots.recorder)

    @property
    def chained(self) -> ChainedMapper:
        """The mapper, by its own type."""
        return cast("ChainedMapper", self.mapper)


def own_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings with the prefix of a log's own."""
    return {f"{PREFIX}{key}": value for key, value in settings.items()}
