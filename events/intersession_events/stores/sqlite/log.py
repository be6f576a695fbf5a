"""The log in an SQLite file: one writer, one sync for all waiting work, and readers on connections of their own."""

import os
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from intersession_events.basics.errors import CorruptEvent
from intersession_events.basics.machine import machine_entropy, random_id, wall_clock_ms
from intersession_events.basics.progress import Progress
from intersession_events.log.sql import Query, Row, SqlValue
from intersession_events.log.tables import damage, place_problems, schema_problems
from intersession_events.log.views import InlineView
from intersession_events.stores.database import MEMORY, typed
from intersession_events.stores.files.encrypted import encrypted
from intersession_events.stores.files.folder import Folder, folder_of, sources_of
from intersession_events.stores.files.store import FileStore, Memory
from intersession_events.stores.folding.fold import PlainSql
from intersession_events.stores.hosts.folder import Folder as Hosts
from intersession_events.stores.keys.opening import learn
from intersession_events.stores.keys.records import KeyFile, file_of
from intersession_events.stores.keys.source import Encryption
from intersession_events.stores.portable.identity import Holder
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.sqlite.ahead import damage_of, describe_damage
from intersession_events.stores.sqlite.application import SessionLog, SqliteApplication
from intersession_events.stores.sqlite.failures import FAILURES
from intersession_events.stores.sqlite.opening import OpenedFile, open_for_writing
from intersession_events.stores.sqlite.readers import FileReaders
from intersession_events.stores.sqlite.views import SqliteViews
from intersession_events.stores.sqlite.work import FileWork
from intersession_events.stores.sqlite.writer_lock import writer_of


class SqliteLog(PortableLog):
    """A `Log` in one SQLite file, or in memory (`:memory:`).

    `clock` gives milliseconds, `monotonic` seconds of a clock that nobody sets: without it, it is not noticed that another clock
    than the machine's is set ahead. `entropy` that many random bytes, `new_log_id` a UUID for a log that is made.
    `environment` goes to the eventsourcing library, over our own settings of it. `encryption` says where the master key is, and,
    to a writer, what is kept encrypted from now on. With `threads` False nothing
    happens by itself: whoever simulates calls `step` for each batch that is to be written or loaded.

    Views that an older version wrote, or that are not whole, are built anew from the log: for good by a writer that
    opens it; by a reader, beside the log for as long as it is open, once it first asks them. `on_folding` gets how far
    that is, a position and the last one.

    Raises:
        StoreLocked: another process is the writer.
        NotALog: the file is something else, or a copy that lost the log's identity.
        LogTooNew: a newer version wrote it; open it with `read_only`.
        NoSuchStore: it is to be read only, and is not there.
        StoreUnavailable: the file can't be opened.
        BadKey: it is kept encrypted, and its master key can't be had; opened with `read_only` it shows what is not encrypted.
    """

    _unread = (
        (
            "What else is in the file and nothing reads: tables of a host's own, settings and statistics of SQLite, free pages; "
            "how SQLite has laid out in pages what is read; and which snapshots there are: one that is gone is taken anew."
        ),
        (
            "What is kept beside the file: transcripts, the views that follow the log (search, usage), and its forks. Deleted "
            "`<store>.views` and `<store>.transcripts` are made anew; each fork is a log, and is verified by itself."
        ),
    )

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        inline: Sequence[InlineView] = (),
        read_only: bool = False,
        clock: Callable[[], int] = wall_clock_ms,
        monotonic: Callable[[], float] | None = None,
        entropy: Callable[[int], bytes] = machine_entropy,
        new_log_id: Callable[[], str] = random_id,
        threads: bool = True,
        environment: Mapping[str, str] | None = None,
        encryption: Encryption | None = None,
        on_folding: Progress | None = None,
    ) -> None:
        # The real path, so that two names of one file share one lock.
        self.path = self.place = MEMORY if os.fspath(path) == MEMORY else os.path.realpath(path)
        super().__init__(threads=threads, clock=clock, monotonic=monotonic)
        opened: OpenedFile | None = None
        if read_only:
            learn(KeyFile(file_of(self.path)), encryption)
            app: SqliteApplication = SessionLog({"SQLITE_DBNAME": self.path})
        else:
            opened = open_for_writing(
                self.path,
                clock=clock,
                new_log_id=new_log_id,
                environment=environment or {},
                entropy=entropy,
                encryption=encryption,
            )
            app = opened.app
            if self.path != MEMORY:
                app.reading.readers = FileReaders(self.path, alone=False, clear=app.datastore.pool.clear)
        self.application: Final = app
        """The log as an application of the eventsourcing library: its notification log, event store and mapper."""
        self._readers = app.reading.readers
        self.hosts = Hosts(None if self.path == MEMORY else self.path)
        self.files = (
            FileStore(Memory())
            if self.path == MEMORY
            else FileStore(
                encrypted(Folder(folder_of(self.path)), app.chained.keys, clock),
                lambda: sources_of(self.path, self.log_ids[1:]),
            )
        )
        self._begin(app, opened, SqliteViews(), inline, entropy=entropy, on_folding=on_folding)
        self.work = FileWork(self, clock)

    @contextmanager
    def snapshot(self, views: Sequence[InlineView] = ()) -> Generator[sqlite3.Connection]:  # noqa: ARG002 - it has all
        """Lend a read-only connection that sees the log as it is now, for a block.

        Raises:
            StoreUnavailable: SQLite refused it.
        """
        self._check_process()
        with typed(FAILURES), self._readers.connection() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def stored(self) -> Generator[Query]:
        """Lend a way to query the database itself as it is now, including the views as stored, for a block."""
        with self.snapshot() as connection:
            cursor = PlainSql(connection)
            yield lambda statement, parameters: cursor.execute(statement, parameters).fetchall()

    def rows_beside(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Return the rows of a reading statement on tables beside the events.

        Raises:
            StoreUnavailable: SQLite refused it.
        """
        self._check_process()
        with typed(FAILURES):
            return self._recorder.rows(statement, parameters)

    def again(self, inline: Sequence[InlineView] = ()) -> "SqliteLog":
        """Open the same log a second time, for reading."""
        return SqliteLog(self.path, read_only=True, inline=inline)

    def table_problems(self) -> Iterator[str]:
        """Say what is wrong with the tables beside the events, and with their positions, for verification."""
        if (cost := self.left_out()) is not None:
            yield cost
        problems = [*schema_problems(self.query), *damage(self.query)]
        yield from problems
        # Of tables that are not what they should be, nothing is to be expected.
        if not any(problem.startswith("the table") for problem in problems):
            with suppress(CorruptEvent):  # of pages that are damaged neither
                yield from place_problems(self.query)

    def left_out(self) -> str | None:
        """Say which acknowledged events SQLite ignores because its write-ahead log was damaged; None if there are none.

        Raises:
            StoreUnavailable: it can't be read.
        """
        if self.path == MEMORY:
            return None
        with typed(FAILURES):
            found = damage_of(self.path)
            return None if found is None else describe_damage(self.path, found, head=self._events.head())

    def written_by(self) -> Holder | None:
        """Return the process that writes it now; None if there is none."""
        return None if self.path == MEMORY else writer_of(self.path)
