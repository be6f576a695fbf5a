"""Sees whether a log's files are still the ones that were opened: SQLite goes on writing into a file that was deleted."""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from intersession_events.errors import StoreUnavailable

Inode = tuple[int, int]
"""Device and number."""

_WAL: Final = 1
"""Where the write-ahead log stands among the files, behind the database."""


def inode_of(path: str) -> Inode:
    """Return which file a path leads to.

    Raises:
        StoreUnavailable: none.
    """
    found = _look(path)
    return (found.st_dev, found.st_ino)


def check_same(path: str, known: Inode) -> None:
    """Make sure that a path still leads to a file.

    Raises:
        StoreUnavailable: it leads to none, or to another.
    """
    if inode_of(path) != known:
        raise _another(path)


def _look(path: str) -> os.stat_result:
    try:
        return os.stat(path)  # noqa: PTH116 - asked with each commit, so without an object between
    except OSError as error:
        raise StoreUnavailable(f"{path} is not where it was opened: {error.strerror}") from error


def _another(path: str) -> StoreUnavailable:
    return StoreUnavailable(f"{path} is another file than the one that was opened")


class Presence:
    """The files as they were found when this was made: a database, its write-ahead log, and what else belongs to them.

    The database never becomes shorter, and nobody but SQLite writes into it: `folded` is asked whenever somebody has.
    The write-ahead log becomes shorter only while it is `emptied`.
    """

    def __init__(self, *paths: str, folded: Callable[[], None] | None = None) -> None:
        """Take note of files.

        Raises:
            StoreUnavailable: one of them is not there.
        """
        self._known: Sequence[tuple[str, Inode]] = [(path, inode_of(path)) for path in paths]
        self._sizes = [_look(path).st_size for path in paths]
        self._written = _look(paths[0]).st_mtime_ns
        self._folded = folded
        self._emptying = 0

    def check(self) -> None:
        """Make sure that they are still there, and the same; costs two microseconds a file.

        Raises:
            StoreUnavailable: one was deleted, moved, replaced, cut or overwritten.
        """
        for index, (path, known) in enumerate(self._known):
            found = _look(path)
            if (found.st_dev, found.st_ino) != known:
                raise _another(path)
            if index <= _WAL and not (index == _WAL and self._emptying):
                if found.st_size < self._sizes[index]:
                    raise StoreUnavailable(
                        f"{path} is shorter than it was: somebody cut it from {self._sizes[index]} to {found.st_size} bytes"
                    )
                self._sizes[index] = found.st_size
            if index == 0 and found.st_mtime_ns != self._written:
                if self._folded is not None:
                    self._folded()
                self._written = found.st_mtime_ns

    @contextmanager
    def emptied(self) -> Generator[None]:
        """Let the write-ahead log become shorter inside, by our own doing."""
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

    def are_there(self) -> bool:
        """Return whether each name still leads to its file, whatever became of what is in it."""
        try:
            return all(inode_of(path) == known for path, known in self._known)
        except StoreUnavailable:
            return False
