"""The log in a schema as an application of the eventsourcing library, for reading and for the writer, and its parts."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, cast

from eventsourcing.persistence import StoredEvent
from eventsourcing.postgres import PostgresAggregateRecorder, PostgresDatastore, PostgresFactory
from eventsourcing.utils import Environment, EnvType, get_topic

from intersession_events.basics.errors import NoSuchStore
from intersession_events.log.sql import Query
from intersession_events.stores.database import Cursor
from intersession_events.stores.keys.keyring import Keyring
from intersession_events.stores.keys.records import KeyFile, file_of
from intersession_events.stores.portable.application import NAME, PREFIX, LogApplication
from intersession_events.stores.portable.snapshots.recorder import TABLE, KeepsSnapshots
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.connections import URL, LogDatastore
from intersession_events.stores.postgres.failures import PostgresFailures
from intersession_events.stores.postgres.recorder import GroupCommitRecorder, ReadingRecorder


class SnapshotRecorder(KeepsSnapshots, PostgresAggregateRecorder):
    """Keeps the snapshots of a log's streams in its schema."""

    def __init__(self, datastore: PostgresDatastore, *, events_table_name: str = TABLE) -> None:
        super().__init__(datastore, events_table_name=events_table_name)
        self.failures = PostgresFailures(cast("LogDatastore", datastore).address)

    def create_table(self) -> None:
        """Do nothing: opening the log makes the table."""

    def is_there(self, query: Query) -> bool:  # noqa: ARG002 - as others have it
        """Return True."""
        return True

    def insert_rows(self, cursor: Cursor, stored_events: Sequence[StoredEvent]) -> None:
        """Write rows, replacing those of the same version, inside a transaction."""
        cursor.executemany(
            f"INSERT INTO {TABLE} VALUES (?, ?, ?, ?) ON CONFLICT (originator_id, originator_version) "  # noqa: S608 - ours
            "DO UPDATE SET topic = EXCLUDED.topic, state = EXCLUDED.state",
            [
                (cast("str", one.originator_id), one.originator_version, one.topic, one.state)
                for one in stored_events
            ],
        )

    def drop_table(self, cursor: Cursor) -> None:
        """Delete all rows, inside a transaction."""
        cursor.execute(f"DELETE FROM {TABLE}")  # noqa: S608 - the same

    def problems(self) -> Iterator[str]:
        """Report nothing: the server guards the table."""
        return iter(())


class LogFactory(PostgresFactory):
    """The library's factory, with our connections."""

    aggregate_recorder_class = SnapshotRecorder

    def __init__(self, env: Environment | EnvType | None) -> None:
        # The library asks for the parts of a URL. Its own pool is never opened.
        parts = {f"POSTGRES_{part}": "" for part in ("DBNAME", "HOST", "USER", "PASSWORD")}
        given = env if isinstance(env, Environment) else Environment(env=env)
        super().__init__(Environment(given.name, {**parts, **given, "ORIGINATOR_ID_TYPE": "text"}))
        url = given.get(URL)
        if url is None:
            raise NoSuchStore("", f"{URL} names the log, as postgresql://…")
        self.datastore = LogDatastore(address_of(url))


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
    def wrapped(self) -> KeyFile:
        """The place of its keys: no dump of the database has them."""
        return KeyFile(file_of(self.datastore.address.place))

    def encrypt(self, keys: Keyring | None) -> None:
        """Keep it encrypted with these keys, if there are some."""
        if keys is not None:
            self.chained.keys, self.datastore.readers.clear = keys, keys.clear_row

    @property
    def datastore(self) -> LogDatastore:
        """The connections."""
        return self.reading.store


class WriterApplication(PostgresApplication):
    """Composes a log for its one writer, which `opening.py` opens."""

    name = NAME
    env: ClassVar[dict[str, str]] = {
        **PostgresApplication.env,
        f"{PREFIX}APPLICATION_RECORDER_TOPIC": get_topic(GroupCommitRecorder),
    }

    @property
    def commits(self) -> GroupCommitRecorder:
        """The recorder, by its own type."""
        return cast("GroupCommitRecorder", self.recorder)
