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
    try:
        found = os.stat(path)  # noqa: PTH116 - asked with each commit, so without an object between
    except OSError as error:
        raise StoreUnavailable(f"{path} is not where it was opened: {error.strerror}") from error
    return (found.st_dev, found.st_ino)


def check_same(path: str, known: Inode) -> None:
    """Make sure that a path still leads to a file.

    Raises:
        StoreUnavailable: it leads to none, or to another.
    """
    if inode_of(path) != known:
        raise StoreUnavailable(f"{path} is another file than the one that was opened")


class Presence:
    """The files as they were found when this was made."""

    def __init__(self, *paths: str) -> None:
        """Take note of files.

        Raises:
            StoreUnavailable: one of them is not there.
        """
        self._known: Sequence[tuple[str, Inode]] = [(path, inode_of(path)) for path in paths]

    def check(self) -> None:
        """Make sure that they are still there, and the same; costs two microseconds a file.

        Raises:
            StoreUnavailable: one was deleted, moved or replaced.
        """
        for path, known in self._known:
            check_same(path, known)

    def is_whole(self) -> bool:
        """Return whether they are still there, and the same."""
        try:
            self.check()
        except StoreUnavailable:
            return False
        return True
