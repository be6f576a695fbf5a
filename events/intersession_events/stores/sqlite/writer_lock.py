"""Locks a file beside the log, so that it has one writer; the file names the writer and its gateway."""

import fcntl
import ipaddress
import os
import stat
import time
import weakref
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from intersession_events.basics.errors import StoreLocked, StoreUnavailable
from intersession_events.basics.machine import on_disk, refused
from intersession_events.stores.database import MEMORY
from intersession_events.stores.hosts.folder import Folder
from intersession_events.stores.hosts.host import Hosts
from intersession_events.stores.portable.identity import Holder

_TRIES: Final = 25
_PAUSE_S: Final = 0.02
_LONGEST: Final = 4096
_SHOWN: Final = 128


class WriterLock:
    """A lock (flock) that is held until `release`, or until the process ends in whatever way."""

    def __init__(self, database: str) -> None:
        """Take the lock.

        Raises:
            StoreLocked: a living process has it.
            StoreUnavailable: the lock's file can't be made.
        """
        self.path = lock_path(database)
        with on_disk(self.path):
            self._file: int | None = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._take(self._file, database)
            self.tell(Holder(pid=os.getpid()))
        except StoreUnavailable:
            self.release()
            raise
        _held.add(self)

    def tell(self, holder: Holder) -> None:
        """Write down the holder of the lock, for other processes."""
        if self._file is not None:
            text = msgspec.json.encode(holder)
            with on_disk(self.path):
                os.pwrite(self._file, text, 0)
                os.ftruncate(self._file, len(text))

    def release(self) -> None:
        """Give the lock up. The file stays: removing it could let two processes in."""
        if self._file is not None:
            # Said aloud: a process that was forked a moment ago may not have closed its copy of the file yet.
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self.close()

    def close(self) -> None:
        """Close the file, and give the lock up only if no other process shares it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            _held.discard(self)

    def _take(self, file: int, database: str) -> None:
        for _ in range(_TRIES):
            with on_disk(self.path):
                if _locked(file, fcntl.LOCK_EX):
                    return
            holder = holder_of(database)
            if holder is not None and _lives(holder.pid) and _is_written_under(file):
                # By what is held here, and not by the process id: another container's may be the same.
                is_here = any(lock.path == self.path for lock in _held)
                raise StoreLocked(database, f"pid {holder.pid}", is_here=is_here)
            # The file names a process that is gone: another one has the lock by now, and will write its own name.
            time.sleep(_PAUSE_S)
        raise StoreLocked(database, "it has not said who it is")


def lock_path(database: str) -> str:
    """Name the lock's file of a database."""
    return f"{database}.lock"


def holder_of(database: str) -> Holder | None:
    """Return the last process that held the lock, by its own note, which may have ended since; None if there was none."""
    try:
        with open(lock_path(database), "rb") as file:  # noqa: PTH123 - paths are strings here, as SQLite has them
            return _read(file.read(_LONGEST))
    except OSError:
        return None


class _Claim(NamedTuple):
    """The content of the lock's file while a writer has the lock, and the file's metadata."""

    text: bytes
    about: os.stat_result


def _claim_in(path: str) -> _Claim | None:
    """Return the content of a lock's file; None if the lock is free. An OSError means that it can't be opened."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        with on_disk(path):
            return _Claim(os.pread(file, _LONGEST, 0), os.fstat(file)) if _is_written_under(file) else None
    finally:
        os.close(file)


def writer_of(database: str) -> Holder | None:
    """Return the process that writes a log now; None if there is none. The process id is alive; its other claims are not checked."""
    try:
        found = _claim_in(lock_path(os.path.realpath(database)))
    except OSError:
        return None
    return None if found is None else _read(found.text) or Holder(pid=0)


class Waiting:
    """Waits beside the writer of a log for its lock. A process that is stopped keeps it; one that was killed does not."""

    def __init__(self, database: str) -> None:
        self._database = database
        self.hosts: Hosts = Folder(None if database == MEMORY else os.path.realpath(database))

    def writer(self) -> Holder | None:
        """Return the process that has the lock now; None if there is none."""
        return None if self._database == MEMORY else writer_of(self._database)

    def pause(self, seconds: float) -> None:
        """Wait a while."""
        time.sleep(seconds)

    def close(self) -> None:
        """Do nothing: no file is kept open."""


def gateway_of(database: str) -> str | None:
    """Return the address of the gateway of the process that writes a log now; None if there is no writer, or no gateway.

    What the lock's file says counts only while the lock is held: after a `kill -9` the address may be anybody's.

    Raises:
        StoreUnavailable: somebody else than this user could have written what it says, or the address is not of this
            machine's loopback.
    """
    path = lock_path(os.path.realpath(database))
    try:
        found = _claim_in(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refused(path, error) from error
    if found is None:
        return None
    about = found.about
    if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
        raise StoreUnavailable(
            f"{path} belongs to user {about.st_uid}, so its gateway is not asked; run this as the user that writes the log"
        )
    if stat.S_IMODE(about.st_mode) & 0o077 or about.st_nlink != 1:
        raise StoreUnavailable(
            f"{path} is open to others ({stat.filemode(about.st_mode)}, {about.st_nlink} names), so its gateway is not "
            "asked; stop the writer, remove the file and start the writer again"
        )
    holder = _read(found.text)
    if holder is None or holder.gateway is None or not _lives(holder.pid):
        return None
    if not is_loopback(holder.gateway):
        raise StoreUnavailable(
            f"{path} names a gateway at {holder.gateway[:_SHOWN]!r}, which is not this machine's loopback; "
            "let the gateway listen there (gateway.bind), or ask it over the network with its token"
        )
    return holder.gateway


def _is_written_under(file: int) -> bool:
    """Whether a writer has the lock. A look shares it for a moment, so that no look takes another one for a writer."""
    if not _locked(file, fcntl.LOCK_SH):
        return True
    fcntl.flock(file, fcntl.LOCK_UN)
    return False


def _locked(file: int, kind: int) -> bool:
    """Take a free lock; an OSError means that this file system has no locks."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(text: bytes) -> Holder | None:
    try:
        return msgspec.json.decode(text, type=Holder)
    except (ValueError, RecursionError):
        return None


def is_loopback(url: str) -> bool:
    """Return whether a URL is of this machine's loopback."""
    try:
        parts = urlsplit(url)
        return (
            parts.scheme == "http"
            and parts.port is not None
            and parts.netloc.rpartition(":")[0].strip("[]") == parts.hostname
            and ipaddress.ip_address(parts.hostname or "").is_loopback
            and not parts.path + parts.query + parts.fragment
        )
    except ValueError:
        return False


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


_held: Final[weakref.WeakSet[WriterLock]] = weakref.WeakSet()


def _let_go_in_the_child() -> None:
    # A child shares the lock with its parent, and would keep it after the parent's death.
    for lock in list(_held):
        lock.close()


os.register_at_fork(after_in_child=_let_go_in_the_child)
