"""The log in a schema of a PostgreSQL database: one writer, fenced by its epoch, and readers on connections of their own."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from intersession_events.errors import NoSuchStore
from intersession_events.log import InlineView, Moment, Recorded, Row, SqlValue
from intersession_events.machine import machine_entropy, random_id, wall_clock_ms
from intersession_events.stores.database import Cursor, typed
from intersession_events.stores.library import Frontier
from intersession_events.stores.portable import EventReader, PortableLog, Writer
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.application import PostgresApplication, settings_of
from intersession_events.stores.postgres.opening import OpenedSchema, inspect, open_for_writing


class PostgresLog(PortableLog):
    """A `Log` in a schema of a PostgreSQL database: `postgresql://user@host/database?schema=name`.

    The arguments are those of `SqliteLog`. Views are not kept here yet: `inline` must be empty.

    Raises:
        StoreLocked: another process is the writer.
        NotALog: there are other tables in the schema.
        LogTooNew: a newer version wrote it; open it with `read_only`.
        NoSuchStore: it is to be read only, and is not there; or the server is none that a log can lie on.
        StoreUnavailable: the server can't be reached, or refuses.
    """

    _may_be_unfinished = False
    """Whether it may be one that is still moved here."""

    def __init__(
        self,
        url: str,
        *,
        inline: Sequence[InlineView] = (),
        read_only: bool = False,
        clock: Callable[[], int] = wall_clock_ms,
        entropy: Callable[[int], bytes] = machine_entropy,
        new_log_id: Callable[[], str] = random_id,
        threads: bool = True,
    ) -> None:
        address = address_of(url)
        self.path = address.shown
        if inline:
            raise NoSuchStore(
                self.path,
                "this version keeps a log's events on PostgreSQL, and no views of them yet; use SQLite",
            )
        super().__init__(threads=threads)
        self._writer = None
        opened: OpenedSchema | None = None
        if read_only:
            known = inspect(address, unfinished=self._may_be_unfinished)
            if known is None:
                raise NoSuchStore(self.path, "there is no log to be read")
            app = PostgresApplication(settings_of(url))
            app.chained.lineage = known.lineage
            self._log_id, self._epoch, self._frontier = known.log_id, 0, Frontier(0)
        else:
            opened = open_for_writing(url, address, clock=clock, new_log_id=new_log_id, threads=threads)
            app = opened.app
            self._log_id, self._epoch, self._frontier = opened.log_id, opened.epoch, Frontier(opened.head)
            app.reading.frontier = self._frontier
        self._application: PostgresApplication = app
        self._recorder = app.reading
        self._events = EventReader(app.reading, app.chained)
        self._states = self._states_of(app)
        if opened is not None:
            self._writer = Writer(
                opened,
                views=_NoViews(),
                entropy=entropy,
                events=self._events,
                frontier=self._frontier,
                by_hand=not threads,
            )

    @property
    def application(self) -> PostgresApplication:
        """The log as an application of the eventsourcing library: its notification log, event store and mapper."""
        return self._application

    def query(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        """Run a reading statement of portable SQL; rows are tuples.

        Raises:
            StoreUnavailable: PostgreSQL refused it.
        """
        self._check_process()
        with typed(self._recorder.failures):
            return self._recorder.rows(statement, parameters)

    @contextmanager
    def moment(self) -> Generator[Moment]:
        """Lend a way to query that sees the log as it is now, for a block.

        Raises:
            StoreUnavailable: PostgreSQL refused it.
        """
        self._check_process()
        with typed(self._recorder.failures), self._application.datastore.moment() as query:
            yield Moment(query, query("SELECT COALESCE(MAX(rowid), 0) FROM stored_events", ())[0][0])

    def _end(self) -> None:
        self._recorder.close_readers()
        if self._writer is not None:
            self._writer.close()
        else:
            self._recorder.close()
            self._application.close()


class _NoViews:
    """In the place of views that are written with the events: there are none."""

    def look(self, cursor: Cursor) -> None:
        """Do nothing."""

    def apply(self, cursor: Cursor, recorded: Sequence[Recorded], *, carefully: bool) -> None:
        """Do nothing."""
