"""The log in a schema of a PostgreSQL database: one writer, fenced by its epoch, and readers on connections of their own."""

import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Final

from intersession_events.basics.errors import NoSuchStore
from intersession_events.basics.machine import machine_entropy, random_id, wall_clock_ms
from intersession_events.basics.progress import Progress
from intersession_events.log.log import Moment
from intersession_events.log.sql import Question, Row, SqlValue
from intersession_events.log.views import InlineView
from intersession_events.stores.database import Cursor, typed
from intersession_events.stores.files.encrypted import encrypted
from intersession_events.stores.files.store import FileStore
from intersession_events.stores.files.table import Table
from intersession_events.stores.folding.fold import layout_of, temporary
from intersession_events.stores.keys.opening import keys_at, learn
from intersession_events.stores.keys.source import Encryption
from intersession_events.stores.portable.application import own_settings
from intersession_events.stores.portable.identity import Holder
from intersession_events.stores.portable.inline_views import ViewTables
from intersession_events.stores.portable.log import FUNCTIONS, PortableLog
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.application import PostgresApplication
from intersession_events.stores.postgres.connections import URL
from intersession_events.stores.postgres.lease import holder_in
from intersession_events.stores.postgres.opening import OpenedSchema, inspect, open_for_writing
from intersession_events.stores.postgres.queue.work import SchemaWork
from intersession_events.stores.postgres.readers import Reading
from intersession_events.stores.postgres.tables import FUNCTIONS_OF, digest_of_functions, problems_of_log
from intersession_events.stores.postgres.upkeep.vacuum import let_go
from intersession_events.stores.postgres.views import PostgresViews, copy_views

_MAY_KEEP: Final = "SELECT has_table_privilege('inline_views', 'INSERT, UPDATE') AND NOT pg_is_in_recovery()"


class PostgresLog(PortableLog):
    """A `Log` in a schema of a PostgreSQL database: `postgresql://user@host/database?schema=name`.

    The arguments are those of `SqliteLog`.

    Raises:
        StoreLocked: another process is the writer.
        NotALog: there are other tables in the schema.
        LogTooNew: a newer version wrote it; open it with `read_only`.
        NoSuchStore: it is to be read only, and is not there; or the server can't hold a log.
        StoreUnavailable: the server can't be reached, or refuses.
    """

    keeps_views = True
    _may_be_unfinished = False
    """Whether it may be one that is still moved here."""

    _unread = (
        (
            "What else is in the database and nothing reads: tables of a host's own, other schemas, who may do what, settings and "
            "statistics of the server, rows that are dead and not yet vacuumed; how the server has laid out in pages what is read, its "
            "indexes among that; and which snapshots there are: one that is gone is taken anew."
        ),
        (
            "What is kept beside the log in files: transcripts, and its forks. Deleted transcripts are made anew; each fork "
            "is a log, and is verified by itself."
        ),
    )

    def __init__(
        self,
        url: str,
        *,
        inline: Sequence[InlineView] = (),
        read_only: bool = False,
        clock: Callable[[], int] = wall_clock_ms,
        monotonic: Callable[[], float] | None = None,
        entropy: Callable[[int], bytes] = machine_entropy,
        new_log_id: Callable[[], str] = random_id,
        environment: Mapping[str, str] | None = None,
        threads: bool = True,
        encryption: Encryption | None = None,
        on_folding: Progress | None = None,
    ) -> None:
        address = address_of(url)
        self.path, self.place, self._url = address.shown, address.place, url
        super().__init__(threads=threads, clock=clock, monotonic=monotonic)
        opened: OpenedSchema | None = None
        if read_only:
            app = PostgresApplication(own_settings({URL: url}))
            known = inspect(address, unfinished=self._may_be_unfinished, keep=app.datastore.readers.keep)
            if known is None:
                app.close()
                raise NoSuchStore(self.path, "there is no log to be read")
            app.chained.lineage = known.lineage
            learn(app.wrapped, encryption)
            app.encrypt(keys_at(app.wrapped, writes=False))
        else:
            opened = open_for_writing(
                own_settings({URL: url, **(environment or {})}),
                address,
                clock=clock,
                new_log_id=new_log_id,
                threads=threads,
                keeps_views=bool(inline),
                entropy=entropy,
                encryption=encryption,
            )
            app = opened.app
        self.application: Final = app
        """The log as an application of the eventsourcing library: its notification log, event store and mapper."""
        self.view_tables: ViewTables = PostgresViews(app.reading.failures)
        """What is done in PostgreSQL's own way for the tables of a view."""
        self.files = FileStore(encrypted(Table(self), app.chained.keys, clock))
        self.hosts = app.datastore.hosts
        self._begin(app, opened, self.view_tables, inline, entropy=entropy, on_folding=on_folding)
        self.work = SchemaWork(self, url, writes=opened is not None)

    @contextmanager
    def stored(self) -> Generator[Reading]:
        """Lend a way to query the database itself as it is now, for a block."""
        self._check_process()
        with typed(self._recorder.failures), self.application.datastore.readers.moment() as reading:
            yield reading

    @contextmanager
    def _at_one_moment(self) -> Generator[Moment]:
        with self.stored() as reading:
            yield Moment(reading, together=reading.together)

    @contextmanager
    def snapshot(self, views: Sequence[InlineView] = ()) -> Generator[sqlite3.Connection]:
        """Lend a copy of the table of all views, and of the tables of the named views, as they are now."""
        with self.stored() as reading, closing(temporary()) as copy:
            copy_views(reading, copy, [layout_of(view) for view in views])
            yield copy

    def again(self, inline: Sequence[InlineView] = ()) -> "PostgresLog":
        """Open the same log a second time, for reading."""
        return PostgresLog(self._url, read_only=True, inline=inline)

    def written_by(self) -> Holder | None:
        """Return the process that writes it now; None if there is none."""
        self._check_process()
        with typed(self._recorder.failures):
            return holder_in(self._recorder.rows)

    def table_problems(self) -> Iterator[str]:
        """Say what is wrong with the tables beside the events, and with their positions, for verification."""
        with self.stored() as reading:
            yield from problems_of_log(reading.together)

    @contextmanager
    def keeping(self, view: str) -> Generator[Cursor]:
        """Run a transaction round a block on the tables of a tailed view: no other process keeps it meanwhile."""
        self._check_process()
        with typed(self._recorder.failures), self.application.datastore.writing(None) as cursor:
            # A lock on a name, since the tables may not be there yet; of the transaction, since behind a pooler a session's
            # lock would be another client's.
            lock = f"intersession {address_of(self._url).schema} {view}"
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (lock,))
            yield cursor

    def let_go_of(self, tables: Sequence[str]) -> Sequence[str]:
        """Have the server write tables anew; return in words what it could not let go of."""
        return let_go(self.application.datastore.address, tables)

    def outdated(self, views: Sequence[InlineView]) -> Sequence[str]:
        """Name what the next writer makes anew, its functions as well: only the owner of the schema can make those."""
        ((made_of,),) = self.query(*FUNCTIONS_OF)
        return [*super().outdated(views), *([FUNCTIONS] if made_of != digest_of_functions() else [])]

    def may_keep(self) -> bool:
        """Return whether tailed views can be written here: not on a standby, nor with a read-only role."""
        return self.kept_rows(_MAY_KEEP) == [(True,)]

    def kept_rows(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Return the rows of a reading statement on the tables of tailed views."""
        self._check_process()
        with typed(self._recorder.failures):
            return self._recorder.rows(statement, parameters)

    def kept_together(self, questions: Sequence[Question]) -> list[list[Row]]:
        """Return the rows of several statements in one round trip."""
        with self.stored() as reading:
            return reading.together(questions)
