"""Sees whether a log's files are still the ones that were opened: SQLite goes on writing into a file that was deleted."""

import os
from collections.abc import Sequence

from intersession_events.errors import StoreUnavailable

Inode = tuple[int, int]
"""Device and number."""


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
    """The files as they were found when this was made. The first one is a database, which never becomes shorter."""

    def __init__(self, *paths: str) -> None:
        """Take note of files.

        Raises:
            StoreUnavailable: one of them is not there.
        """
        self._known: Sequence[tuple[str, Inode]] = [(path, inode_of(path)) for path in paths]
        self._size = _look(paths[0]).st_size

    def check(self) -> None:
        """Make sure that they are still there, and the same; costs two microseconds a file.

        Raises:
            StoreUnavailable: one was deleted, moved or replaced, or the first one was cut.
        """
        for index, (path, known) in enumerate(self._known):
            found = _look(path)
            if (found.st_dev, found.st_ino) != known:
                raise _another(path)
            if index == 0:
                if found.st_size < self._size:
                    raise StoreUnavailable(
                        f"{path} is shorter than it was: somebody cut it from {self._size} to {found.st_size} bytes"
                    )
                self._size = found.st_size

    def is_whole(self) -> bool:
        """Return whether they are still there, and the same."""
        try:
            self.check()
        except StoreUnavailable:
            return False
        return True
