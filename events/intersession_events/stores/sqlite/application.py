"""The log as an application of the eventsourcing library, which composes mapper, recorder and event store."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, Final, cast

from eventsourcing.application import Application, Repository
from eventsourcing.persistence import ApplicationRecorder, EventStore
from eventsourcing.utils import Environment, EnvType, get_topic

from intersession_events.errors import NoSuchStore
from intersession_events.stores.database import Cursor
from intersession_events.stores.file import check_one_name
from intersession_events.stores.library import ChainedMapper, Erasures
from intersession_events.stores.snapshots import (
    Later,
    OnTheWay,
    Read,
    SnapshotMapper,
    StreamStates,
)
from intersession_events.stores.sqlite import identity
from intersession_events.stores.sqlite.connections import LogDatastore, LogFactory, database_uri
from intersession_events.stores.sqlite.readers import FileReaders, Readers, rows
from intersession_events.stores.sqlite.recorder import GroupCommitRecorder, ReadingRecorder
from intersession_events.stores.sqlite.snapshots import SnapshotRecorder

NAME: Final = "intersession"
"""Under this name the library's tracking recorders keep how far a view is: it never changes."""

_PREFIX: Final = f"{NAME.upper()}_"


class LogApplication(Application[str]):
    """What a log's reader and its writer have in common.

    Its own settings carry the prefix of its name, so that an environment can have others for the views beside it.
    """

    name = NAME
    log_section_size = 1_000
    env: ClassVar[dict[str, str]] = {
        f"{_PREFIX}PERSISTENCE_MODULE": get_topic(LogFactory),
        f"{_PREFIX}MAPPER_TOPIC": get_topic(ChainedMapper),
        f"{_PREFIX}APPLICATION_RECORDER_TOPIC": get_topic(ReadingRecorder),
        f"{_PREFIX}ORIGINATOR_ID_TYPE": "text",
        f"{_PREFIX}CREATE_TABLE": "no",
        f"{_PREFIX}IS_SNAPSHOTTING_ENABLED": "yes",
    }

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
        readers: Readers,
        *,
        read: Read,
        later: Later,
        transact: Callable[[Callable[[Cursor], int]], int],
    ) -> StreamStates:
        """Return the states of the streams. What the arguments do is the log's: it has the readers and the writer."""
        recorder, snapshots = self.snapshot_recorder, cast("EventStore[str]", self.snapshots)
        recorder.rows = partial(rows, readers)
        recorder.submit = self.submit_snapshot
        return StreamStates(snapshots, read=read, later=later, clear=lambda: transact(recorder.clear))

    @property
    def snapshot_recorder(self) -> SnapshotRecorder:
        """What keeps the snapshots."""
        if self.snapshots is None:
            raise NoSuchStore(NAME, "the environment switches the store of snapshots off")
        return cast("SnapshotRecorder", self.snapshots.recorder)

    @property
    def submit_snapshot(self) -> Callable[[OnTheWay], None] | None:
        """Take a snapshot to be written, for a log that is open for writing."""
        return None

    @property
    def chained(self) -> ChainedMapper:
        """The mapper, by its own type."""
        return cast("ChainedMapper", self.mapper)

    @property
    def datastore(self) -> LogDatastore:
        """The connections."""
        return cast("LogFactory", self.factory).datastore  # type: ignore[return-value]  # the factory sets its own


class WriterApplication(LogApplication):
    """Composes a log for its one writer, who opens it (`opening.py`)."""

    name = NAME
    env: ClassVar[dict[str, str]] = {
        **LogApplication.env,
        f"{_PREFIX}APPLICATION_RECORDER_TOPIC": get_topic(GroupCommitRecorder),
    }

    @property
    def commits(self) -> GroupCommitRecorder:
        """The recorder, by its own type."""
        return cast("GroupCommitRecorder", self.recorder)

    @property
    def submit_snapshot(self) -> Callable[[OnTheWay], None]:
        """Take a snapshot to be written with the next commit: it has time."""
        return partial(self.commits.submit, patient=True)


class SessionLog(LogApplication):
    """A log that is open for reading, beside its writer or without: for the library's own projections and tools.

    `env` names the file: `SQLITE_DBNAME`, or `INTERSESSION_SQLITE_DBNAME` where a view's database is named as well.

    Raises:
        NoSuchStore: there is no log.
        NotALog: the file is something else.
        StoreUnavailable: it can't be read.
    """

    name = NAME

    def construct_env(self, name: str, env: EnvType | None = None) -> Environment:
        """Return the settings, in which nothing opens the file to write."""
        settings = super().construct_env(name, env)
        place = settings.get("SQLITE_DBNAME")
        if place is None:
            raise NoSuchStore("", f"SQLITE_DBNAME or {_PREFIX}SQLITE_DBNAME names the log's file")
        self._path = os.path.realpath(place)
        settings[f"{_PREFIX}SQLITE_DBNAME"] = database_uri(self._path, mode="ro")
        return settings

    def construct_recorder(self) -> ApplicationRecorder:
        """Open the file; called by the library."""
        path = self._path
        check_one_name(path)
        known = identity.inspect(path)
        if known is None:
            raise NoSuchStore(path, "there is no log to be read")
        self.chained.lineage = known.lineage
        recorder = super().construct_recorder()
        cast("ReadingRecorder", recorder).readers = FileReaders(path, alone=True)
        return recorder

    @property
    def log_id(self) -> str:
        """The log's identity."""
        return self.chained.log_id

    @property
    def reading(self) -> ReadingRecorder:
        """The recorder, by its own type."""
        return cast("ReadingRecorder", self.recorder)

    def close(self) -> None:
        """Let subscriptions end, and close what is open; once is enough."""
        recorder = cast("ReadingRecorder | None", getattr(self, "recorder", None))
        if recorder is not None:  # the library closes also what could not be opened
            recorder.close()
            recorder.readers.close()
        super().close()


def writer_settings(path: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for the writer of a database, with the host's own over them."""
    return {f"{_PREFIX}{key}": value for key, value in {"SQLITE_DBNAME": path, **environment}.items()}
