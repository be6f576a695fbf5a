"""Locks a log's file itself, under whatever name: the lock file beside it is found only by its name.

A log that is moved while it is open, or whose lock's file was deleted, could get a second writer by the lock beside
it alone. This is an flock on the file itself, which SQLite's own locks (fcntl) do not meet. But the system drops all
fcntl locks of a process on a file when the process closes *any* descriptor of it, and then another process could take
SQLite's write-ahead log away under it. So a descriptor stays open until nothing in this process uses the file.
"""

import fcntl
import os
import struct
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import Final

from intersession_events.basics.errors import StoreLocked, StoreUnavailable
from intersession_events.basics.machine import on_disk
from intersession_events.stores.sqlite.names import Inode, check_same

_TRIES: Final = 25
_PAUSE_S: Final = 0.02

_SHARED: Final = (0x40000002, 510)
"""Where in the file SQLite's readers lock, and how many bytes (https://sqlite.org/fileformat2.html#the_lock_byte_page)."""

_lock: Final = threading.Lock()
_users: Final[Counter[Inode]] = Counter()
_descriptors: Final[dict[Inode, list[int]]] = {}
_kept: Final[dict[tuple[Inode, Inode], int]] = {}
"""Descriptors of files beside a log, by the log's file and theirs."""


def keep_open(inode: Inode, beside: str) -> int:
    """Return a descriptor of a file beside the log that SQLite locks; it stays open as long as the log is in use.

    Raises:
        StoreUnavailable: it can't be opened.
    """
    with _lock, on_disk(beside):
        found = os.stat(beside)  # noqa: PTH116 - as SQLite has its name
        key = (inode, (found.st_dev, found.st_ino))
        if key not in _kept:
            _kept[key] = os.open(beside, os.O_RDONLY | os.O_CLOEXEC)
            _descriptors.setdefault(inode, []).append(_kept[key])
        return _kept[key]


class FileUse:
    """Notes that SQLite has a file open in this process, until `end`."""

    def __init__(self, inode: Inode) -> None:
        self._inode: Inode | None = inode
        with _lock:
            _users[inode] += 1

    def end(self) -> None:
        """Note that all connections of this use are closed; may be called again."""
        inode, self._inode = self._inode, None
        if inode is None:
            return
        with _lock:
            _users[inode] -= 1
            if _users[inode] <= 0:
                del _users[inode]
                for descriptor in _descriptors.pop(inode, ()):
                    os.close(descriptor)
                for key in [key for key in _kept if key[0] == inode]:
                    del _kept[key]


class HeldFile:
    """The lock on a file itself. A missing file is made, readable by its owner alone: it holds what agents say."""

    def __init__(self, path: str) -> None:
        """Take the lock.

        Raises:
            StoreLocked: a living writer has the file, by whatever name.
            StoreUnavailable: it can't be opened.
        """
        with on_disk(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            found = os.fstat(descriptor)
        inode = (found.st_dev, found.st_ino)
        is_here = bool(_descriptors.get(inode))
        self._use = FileUse(inode)
        with _lock:
            _descriptors.setdefault(inode, []).append(descriptor)
        self._descriptor: int | None = descriptor
        try:
            _take(descriptor, path, is_here=is_here)
            check_same(path, inode)
        except StoreUnavailable:
            self.release()
            raise

    def keep_names(self) -> None:
        """Keep SQLite from deleting files by their names when it closes: other files may have the names now.

        SQLite takes its write-ahead log away if nobody else reads the file. So this reads it, as another process does.
        """
        if self._descriptor is not None and sys.platform == "linux":
            flock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, *_SHARED, 0)
            with suppress(OSError):  # somebody else is just closing it
                fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, flock)

    def release(self) -> None:
        """Give the lock up. SQLite must have closed what it had open for this use."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            # Said aloud, as for the lock beside it: a fork may have a copy of the descriptor.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            self._use.end()


def _take(descriptor: int, path: str, *, is_here: bool) -> None:
    for _ in range(_TRIES):
        with on_disk(path), suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_PAUSE_S)  # a fork of a writer that is gone may hold it for a moment
    raise StoreLocked(path, "by another name, or the lock beside it was deleted", is_here=is_here)


def _let_go_in_the_child() -> None:
    # SQLite's connections are the parent's; a copy of a descriptor would keep the lock after the parent's death.
    for descriptors in _descriptors.values():
        for descriptor in descriptors:
            os.close(descriptor)
    _descriptors.clear()
    _kept.clear()
    _users.clear()
    _lock.release()


os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_let_go_in_the_child)
