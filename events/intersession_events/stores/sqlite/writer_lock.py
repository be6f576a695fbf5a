"""Locks a file beside the log, so that it has one writer; the file says who that is and where its gateway is."""

import fcntl
import os
import time
import weakref
from typing import Final

import msgspec

from intersession_events.errors import StoreLocked, StoreUnavailable
from intersession_events.facts import ready

_TRIES: Final = 25
_PAUSE_S: Final = 0.02


@ready
class Holder(msgspec.Struct, frozen=True):
    """Who writes a log: process, epoch, and the address of its gateway if it has one."""

    pid: int
    epoch: int = 0
    gateway: str | None = None


class WriterLock:
    """An flock that is held until `release`, or until the process is gone, however it went."""

    def __init__(self, database: str) -> None:
        """Take the lock.

        Raises:
            StoreLocked: a living process has it.
            StoreUnavailable: the lock's file can't be made.
        """
        self._path = lock_path(database)
        try:
            self._file: int | None = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnavailable(f"{self._path} can't be opened: {error}") from error
        try:
            self._take(self._file, database)
        except StoreLocked:
            self.release()
            raise
        _held.add(self)
        self.tell(Holder(pid=os.getpid()))

    def tell(self, holder: Holder) -> None:
        """Write down for others who holds the lock."""
        if self._file is not None:
            text = msgspec.json.encode(holder)
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
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = holder_of(database)
                if holder is not None and _lives(holder.pid):
                    raise StoreLocked(database, f"pid {holder.pid}") from None
                # The name in the file is of one who is gone: the next one has the lock and will write its own.
                time.sleep(_PAUSE_S)
            else:
                return
        raise StoreLocked(database, "it has not said who it is")


def lock_path(database: str) -> str:
    """Name the lock's file of a database."""
    return f"{database}.lock"


def holder_of(database: str) -> Holder | None:
    """Return the last process that wrote that it holds the lock, which may have ended since; None if there was none."""
    try:
        with open(lock_path(database), "rb") as file:  # noqa: PTH123 - paths are strings here, as SQLite has them
            return msgspec.json.decode(file.read(), type=Holder)
    except (OSError, ValueError, RecursionError):
        return None


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
