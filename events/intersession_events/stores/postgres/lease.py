"""Names the writer of a log: a row that is valid until a time, and renewed while the writer lives.

That keeps a second writer out politely. What keeps out one that was given up too early is the epoch, in each transaction.
"""

import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import psycopg

from intersession_events.basics.errors import LogError, StoreLocked
from intersession_events.log.sql import Question, Row
from intersession_events.stores.portable.identity import Holder
from intersession_events.stores.postgres.connections import LogDatastore
from intersession_events.stores.postgres.cursor import PgCursor

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
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False


def here() -> str:
    """Return the row that this process writes into a log."""
    return str(_Process.here())


def holder_in(rows: Callable[[str], list[Row]]) -> Holder | None:
    """Return the writer of a log; None if there is none."""
    found = rows("SELECT holder, epoch, gateway FROM log_writer WHERE alive_until > clock_timestamp()")
    holder = _Process.of(found[0][0]) if found else None
    if holder is None or holder.is_dead():
        return None
    return Holder(holder.pid, found[0][1], found[0][2], None if holder.is_here() else holder.host)


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
_RENEW: Final = "UPDATE log_writer SET alive_until = clock_timestamp() + make_interval(secs => ?) WHERE epoch = ? RETURNING 1"


class Lease:
    """The writer's own row until it is released; renewed by a thread, where there are threads."""

    def __init__(self, datastore: LogDatastore, epoch: int, *, threads: bool) -> None:
        self._datastore = datastore
        self._epoch = epoch
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="intersession-lease", daemon=True)
        if threads:
            self._thread.start()

    def tell(self, gateway: str | None, *, ends: bool = False) -> None:
        """Publish the address of the writer's gateway; with `ends` the lease runs out now."""
        with self._datastore.writing(None) as cursor:
            cursor.together([_ON_ONE_DISK, (_TELL, (gateway, ends, self._epoch))])

    def release(self) -> None:
        """Release the lease: the next writer need not wait."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        with suppress(psycopg.Error, LogError):
            self.tell(None, ends=True)

    def _run(self) -> None:
        while not self._stopping.wait(RENEW_S):
            try:
                with self._datastore.writing(None) as cursor:
                    _, renewed = cursor.together([_ON_ONE_DISK, (_RENEW, (ALIVE_S, self._epoch))])
                    if not renewed:
                        _LOGGER.warning("another writer has taken the log over; nothing more is written here")
                        return
            except (psycopg.Error, LogError) as error:
                _LOGGER.warning(
                    "the log's lease could not be renewed: %s", self._datastore.address.said(error)
                )
