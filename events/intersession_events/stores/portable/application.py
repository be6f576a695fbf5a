"""The log as an application of the eventsourcing library, which composes mapper, recorder and event store."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Final, cast

from eventsourcing.application import Application, Repository
from eventsourcing.persistence import ApplicationRecorder, EventStore
from eventsourcing.utils import Environment, EnvType, get_topic

from intersession_events.basics.errors import NoSuchStore
from intersession_events.stores.database import Cursor
from intersession_events.stores.library.erasures import Erasures
from intersession_events.stores.library.mapper import ChainedMapper
from intersession_events.stores.portable.committing import Committing
from intersession_events.stores.portable.reading.recorder import ReadsLog
from intersession_events.stores.snapshots.mapper import SnapshotMapper
from intersession_events.stores.snapshots.recorder import KeepsSnapshots, OnTheWay
from intersession_events.stores.snapshots.states import FromSnapshot, Later, Read, StreamStates

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
        """Return the settings. The process's own environment is not among them: a host may use the library itself."""
        return Environment(name, {**type(self).env, **(env or {})})

    def construct_recorder(self) -> ApplicationRecorder:
        """Make the recorder, by which the mapper finds out what was erased; called by the library."""
        recorder = super().construct_recorder()
        chained = self.chained
        chained.authorised = Erasures(
            lambda stream: map(chained.to_domain_event, recorder.select_events(stream))
        )
        return recorder

    def construct_snapshot_store(self) -> EventStore[str]:
        """Return the library's store of snapshots, with a mapper and a recorder of ours."""
        recorder = self.factory.aggregate_recorder(purpose="snapshots")
        return EventStore(SnapshotMapper(self.chained), recorder)

    def construct_repository(self) -> Repository[str]:
        """Return a repository without snapshots: those here are of our states, whatever somebody else folds."""
        return Repository(event_store=self.events)

    def states(
        self,
        *,
        read: Read,
        from_snapshot: FromSnapshot,
        later: Later,
        transact: Callable[[Callable[[Cursor], int]], int],
    ) -> StreamStates:
        """Return the states of the streams. What the arguments do is the log's: it has the readers and the writer."""
        recorder, snapshots = self.snapshot_recorder, cast("EventStore[str]", self.snapshots)
        recorder.rows = cast("ReadsLog", self.recorder).event_rows
        recorder.submit = self.submit_snapshot
        return StreamStates(
            snapshots,
            read=read,
            from_snapshot=from_snapshot,
            later=later,
            clear=lambda: transact(recorder.clear),
        )

    @property
    def snapshot_recorder(self) -> KeepsSnapshots:
        """What keeps the snapshots."""
        if self.snapshots is None:
            raise NoSuchStore(NAME, "the environment switches the store of snapshots off")
        return cast("KeepsSnapshots", self.snapshots.recorder)

    @property
    def submit_snapshot(self) -> Callable[[OnTheWay], None] | None:
        """Take a snapshot to be written with the next commit, in a log that is open for writing: it has time."""
        recorder = self.recorder
        return partial(recorder.submit, patient=True) if isinstance(recorder, Committing) else None

    @property
    def chained(self) -> ChainedMapper:
        """The mapper, by its own type."""
        return cast("ChainedMapper", self.mapper)
