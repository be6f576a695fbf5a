"""Detects that a log's files were replaced or deleted: SQLite would go on writing into a deleted file."""

import errno
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.machine import refused

Inode = tuple[int, int]
"""Device and number."""

_NOT_THERE: Final = {errno.ENOENT, errno.ENOTDIR}

_WAL: Final = 1
"""Where the write-ahead log stands among the files, behind the database."""


def inode_of(path: str) -> Inode:
    """Return the file that a path leads to.

    Raises:
        StoreUnavailable: none.
    """
    found = _look(path)
    return (found.st_dev, found.st_ino)


def check_same(path: str, known: Inode) -> None:
    """Check that a path still leads to a file.

    Raises:
        StoreUnavailable: it leads to none, or to another.
    """
    if inode_of(path) != known:
        raise _another(path)


def _look(path: str) -> os.stat_result:
    try:
        return os.stat(path)  # noqa: PTH116 - asked with each commit, so without an object between
    except OSError as error:
        if error.errno in _NOT_THERE:
            raise StoreUnavailable(f"{path} is not where it was opened: {error.strerror}") from error
        raise refused(path, error) from error


def _another(path: str) -> StoreUnavailable:
    return StoreUnavailable(f"{path} is another file than the one that was opened")


class Content(Protocol):
    """Checks the content of a log's files, where size and inode don't show whether all is well."""

    def check(self) -> None:
        """Check the database after a write by another process, a checkpoint of SQLite's or anything else; raises StoreUnavailable."""
        ...

    def check_ahead(self) -> None:
        """Check the write-ahead log after a write by another process; raises StoreUnavailable."""
        ...

    def is_all_folded(self) -> bool:
        """Return whether the database file has all that was ever committed, so that its write-ahead log could be lost."""
        ...


class Presence:
    """The files as they were found when this was made: a database, its write-ahead log, and the others that belong to them.

    The database never becomes shorter, and nobody but SQLite writes into it. The write-ahead log becomes shorter only
    while it is `emptied`, or when somebody has folded all of it. Whoever has written says so (`check_written`): what
    `content` finds out by looking into a file is asked when somebody else has.
    """

    def __init__(self, *paths: str, content: Content | None = None) -> None:
        """Take note of files.

        Raises:
            StoreUnavailable: one of them is not there.
        """
        self._known: Sequence[tuple[str, Inode]] = [(path, inode_of(path)) for path in paths]
        self._sizes = [_look(path).st_size for path in paths]
        self._written = [_look(path).st_mtime_ns for path in paths]
        self._content = content
        self._emptying = 0

    def check(self) -> None:
        """Check that the files are still there, and the same.

        Raises:
            StoreUnavailable: one was deleted, moved, replaced, cut or overwritten.
        """
        self._check(0, len(self._known))

    def check_written(self) -> None:
        """Check the same after a write of our own to the write-ahead log."""
        self._check(0, len(self._known), ours=True)

    def check_contents(self) -> None:
        """Check only the files that hold data: the database and its write-ahead log."""
        self._check(0, _WAL + 1)

    def _check(self, first: int, end: int, *, ours: bool = False) -> None:
        """Check some of them, twice with each commit; `ours` says that we have just written the write-ahead log."""
        for index in range(first, end):
            path, known = self._known[index]
            found = _look(path)
            if (found.st_dev, found.st_ino) != known:
                raise _another(path)
            if index > _WAL or (index == _WAL and self._emptying):
                continue
            size, written = found.st_size, found.st_mtime_ns
            if size < self._sizes[index] and not self._is_folded(index):
                raise StoreUnavailable(
                    f"{path} is shorter than it was: somebody cut it from {self._sizes[index]} to {size} bytes"
                )
            self._sizes[index] = size
            if written != self._written[index]:
                if self._content is not None and not (ours and index == _WAL):
                    look = self._content.check if index == 0 else self._content.check_ahead
                    look()
                self._written[index] = written

    def _is_folded(self, index: int) -> bool:
        return index == _WAL and self._content is not None and self._content.is_all_folded()

    @contextmanager
    def emptied(self) -> Generator[None]:
        """Expect the write-ahead log to become shorter in this block, by our own doing."""
        self._emptying += 1
        try:
            yield
        finally:
            if len(self._known) > _WAL:
                self._sizes[_WAL] = 0
            self._emptying -= 1

    def is_whole(self) -> bool:
        """Return whether they are still there, and the same."""
        try:
            self.check()
        except StoreUnavailable:
            return False
        return True

    def look(self) -> None:
        """Check that each name still leads to its file, and that the database was not cut. May be called from any thread.

        Raises:
            StoreUnavailable: one does not, or it was.
        """
        for index, (path, known) in enumerate(self._known):
            found = _look(path)
            if (found.st_dev, found.st_ino) != known:
                raise _another(path)
            if index == 0 and found.st_size < self._sizes[0]:
                raise StoreUnavailable(f"{path} is shorter than it was: {found.st_size} bytes")

    def are_there(self) -> bool:
        """Return whether each name still leads to its file, whatever its content."""
        try:
            return all(inode_of(path) == known for path, known in self._known)
        except StoreUnavailable:
            return False
