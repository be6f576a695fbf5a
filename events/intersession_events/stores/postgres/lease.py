"""Names the writer of a log: a row that is valid until a time, and renewed while the writer lives.

That keeps a second writer out politely. What keeps out one that was given up too early is the epoch, in each transaction.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import psycopg
from psycopg import Connection, sql
from psycopg.rows import TupleRow

from intersession_events.basics.errors import LogError, StoreLocked, WriterSuperseded
from intersession_events.log.sql import Question, Row
from intersession_events.stores.database import typed
from intersession_events.stores.hosts.host import Hosts
from intersession_events.stores.portable.identity import Holder
from intersession_events.stores.postgres.address import Address
from intersession_events.stores.postgres.connections import LogDatastore, settle
from intersession_events.stores.postgres.cursor import PgCursor
from intersession_events.stores.postgres.failures import PostgresFailures

ALIVE_S: Final = 15
"""A writer that says nothing for so long may be taken over."""
RENEW_S: Final = 4.0

_LOGGER: Final = logging.getLogger("intersession.store")


class _Process(NamedTuple):
    """A process of some machine."""

    pid: int
    host: str
    boot: str

    @classmethod
    def here(cls) -> "_Process":
        boot = ""
        with suppress(OSError):
            # Containers may share a machine and its name, and have process ids of their own.
            ids = Path("/proc/self/ns/pid").readlink()
            boot = f"{Path('/proc/sys/kernel/random/boot_id').read_text(encoding='ascii').strip()}/{ids}"
        return cls(os.getpid(), socket.gethostname(), boot)

    @classmethod
    def of(cls, text: str) -> "_Process | None":
        pid, _, rest = text.partition(" ")
        host, _, boot = rest.rpartition(" ")
        return cls(int(pid), host, boot) if pid.isdigit() else None

    def __str__(self) -> str:
        return f"{self.pid} {self.host} {self.boot}"

    def is_here(self) -> bool:
        """Whether it is this machine, since its last boot."""
        ours = _Process.here()
        return bool(self.boot) and (self.host, self.boot) == (ours.host, ours.boot)

    def is_dead(self) -> bool:
        """Whether it was of this machine, as it runs now, and has ended."""
        if not self.is_here():
            return False
        try:
            os.kill(self.pid, 0)
            # One that was killed is there until its parent has asked for its end, and does nothing any more.
            return Path(f"/proc/{self.pid}/stat").read_text("utf-8", "replace").rpartition(") ")[2][:1] == "Z"
        except ProcessLookupError:
            return True
        except OSError:
            return False


def released_on(schema: str) -> str:
    """Return the channel that announces that the lease of a log was given up."""
    return f"{schema}.log_writer"


def here() -> str:
    """Return the row that this process writes into a log."""
    return str(_Process.here())


_WRITER: Final = "SELECT holder, epoch, gateway FROM log_writer WHERE alive_until > clock_timestamp()"


def holder_in(rows: Callable[[str], list[Row]]) -> Holder | None:
    """Return the writer of a log; None if there is none."""
    found = _writer_of(rows(_WRITER))
    return None if found is None or found[0].is_dead() else found[1]


def _writer_of(found: Sequence[Row]) -> tuple[_Process, Holder] | None:
    holder = _Process.of(found[0][0]) if found else None
    if holder is None:
        return None
    return holder, Holder(holder.pid, found[0][1], found[0][2], None if holder.is_here() else holder.host)


_TAKE: Final = (
    "UPDATE log_writer SET epoch = (SELECT epoch FROM log_identity), holder = ?, gateway = NULL, "
    "alive_until = clock_timestamp() + make_interval(secs => ?)"
)


def take(cursor: PgCursor, shown: str) -> int:
    """Begin a new epoch, inside a transaction: every earlier writer is fenced off.

    Raises:
        StoreLocked: there is a writer that is alive.
    """
    cursor.execute(
        # Locked: of two that take a log over at once, the second one waits, and finds the row of the first.
        # Compared, and not subtracted: before PostgreSQL 17 no interval is infinite.
        "SELECT holder, gateway, alive_until > clock_timestamp() FROM log_writer FOR UPDATE"
    )
    found = cursor.fetchone()
    if found is not None and found[2]:
        holder = _Process.of(found[0])
        if holder is None or not holder.is_dead():
            who = found[0] if holder is None else f"pid {holder.pid} on {holder.host}"
            raise StoreLocked(
                shown,
                who if found[1] is None else f"{who}, gateway {found[1]}",
                is_here=holder is not None and holder.is_here() and holder.pid == os.getpid(),
            )
    ((taken,),), _ = cursor.together(
        [
            ("UPDATE log_identity SET epoch = epoch + 1 RETURNING epoch", ()),
            (_TAKE, (here(), ALIVE_S)),
        ]
    )
    epoch: int = taken
    return epoch


_ON_ONE_DISK: Final[Question] = ("SELECT set_config('synchronous_commit', 'local', true)", ())
"""Waits for no standby. Where that is gone, the lease would run out and could not be given back; it is no fence."""
# Both with the epoch: a writer that was fenced off must not touch the row of its successor.
_TELL: Final = (
    "UPDATE log_writer SET gateway = ?, alive_until = CASE WHEN ? THEN clock_timestamp() ELSE alive_until END "
    "WHERE epoch = ?"
)
_EPOCH: Final[Question] = ("SELECT epoch FROM log_identity", ())
_RENEW: Final = "UPDATE log_writer SET alive_until = clock_timestamp() + make_interval(secs => ?) WHERE epoch = ? RETURNING 1"


class Lease:
    """The writer's own row until it is released; renewed by a thread, where there are threads."""

    def __init__(
        self, datastore: LogDatastore, epoch: int, *, threads: bool, superseded: Callable[[LogError], object]
    ) -> None:
        """`superseded` hears that another writer has taken the log."""
        self._datastore = datastore
        self._epoch = epoch
        self._superseded = superseded
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="intersession-lease", daemon=True)
        if threads:
            self._thread.start()

    def tell(self, gateway: str | None) -> None:
        """Publish the address of the writer's gateway."""
        self._say([(_TELL, (gateway, False, self._epoch))])

    def release(self) -> None:
        """Release the lease: the next writer need not wait."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        address = self._datastore.address
        ended: Question = (_TELL, (None, True, self._epoch))
        with suppress(psycopg.Error, LogError):
            if address.notifies:
                # The queue of notifications may be full: the lease ends all the same.
                with suppress(psycopg.errors.ProgramLimitExceeded):
                    self._say([ended, ("SELECT pg_notify(?, '')", (released_on(address.schema),))])
                    return
            self._say([ended])

    def _say(self, questions: Sequence[Question]) -> None:
        with self._datastore.writing(None) as cursor:
            cursor.together([_ON_ONE_DISK, *questions])

    def _run(self) -> None:
        while not self._stopping.wait(RENEW_S):
            try:
                with self._datastore.writing(None) as cursor:
                    _, renewed, ((epoch,),) = cursor.together(
                        [_ON_ONE_DISK, (_RENEW, (ALIVE_S, self._epoch)), _EPOCH]
                    )
                if not renewed:
                    _LOGGER.warning("another writer has taken the log over; nothing more is written here")
                    if epoch != self._epoch:  # the fence itself, and not the row that may be anybody's
                        self._superseded(WriterSuperseded(self._epoch, epoch))
                    return
            except (psycopg.Error, LogError) as error:
                _LOGGER.warning(
                    "the log's lease could not be renewed: %s", self._datastore.address.said(error)
                )


_LOOK_S: Final = 1.0
"""How often the lease is looked at beside the notification of its release, which is lost with its connection."""


class Waiting:
    """Waits beside the writer of a log for its lease, on a connection of its own."""

    def __init__(self, address: Address) -> None:
        self._datastore = LogDatastore(address)
        self._failures = PostgresFailures(address)
        self._connection: Connection[TupleRow] | None = None
        self._found: tuple[_Process, Holder] | None = None
        self._looks_at = 0.0
        self.hosts: Hosts = self._datastore.hosts

    def writer(self) -> Holder | None:
        """Return the writer as it was a moment ago; None once its lease is over, or its process of this machine has ended.

        Raises:
            StoreUnavailable: the server is away.
        """
        is_known = self._found is not None and not self._found[0].is_dead()
        if not is_known or time.monotonic() >= self._looks_at:
            with self._connected() as connection:
                there = connection.execute("SELECT to_regclass('log_writer') IS NOT NULL").fetchone()
                found = connection.execute(_WRITER).fetchall() if there and there[0] else []
            self._found, self._looks_at = _writer_of(found), time.monotonic() + _LOOK_S
        return None if self._found is None or self._found[0].is_dead() else self._found[1]

    def pause(self, seconds: float) -> None:
        """Wait a while, or until the lease is released.

        Raises:
            StoreUnavailable: the server is away.
        """
        if not self._datastore.address.notifies:
            time.sleep(seconds)
            return
        with self._connected() as connection:
            if any(True for _ in connection.notifies(timeout=seconds, stop_after=1)):
                self._looks_at = 0.0

    def close(self) -> None:
        """Close all connections."""
        if self._connection is not None:
            self._connection.close()
        self._datastore.close()

    @contextmanager
    def _connected(self) -> Generator[Connection[TupleRow]]:
        """Lend the connection that listens; a new one, where the last one was lost."""
        with typed(self._failures):
            if self._connection is None or self._connection.closed:
                address = self._datastore.address
                self._connection = psycopg.connect(address.conninfo, autocommit=True)
                settle(self._connection, address.schema, writes=False)
                if address.notifies:
                    channel = sql.Identifier(released_on(address.schema))
                    self._connection.execute(sql.SQL("LISTEN {}").format(channel))
                self._looks_at = 0.0
            try:
                yield self._connection
            except psycopg.Error:
                self._connection.close()
                raise
