"""Refuses a file that has a second name: SQLite looks for the write-ahead log beside the name that it opened.

What one process acknowledged lies in the write-ahead log beside its own name; another, which came by the other
name, would not find it there, begin a new one, and overwrite the first one's pages.

Which file a path leads to is known by its inode.
"""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.machine import on_disk, refused

Inode = tuple[int, int]
"""Device and number."""

_NOT_THERE: Final = {errno.ENOENT, errno.ENOTDIR}
MOUNTS: Final = Path("/proc/self/mountinfo")
_MOUNT_POINT: Final = 4  # its column


def check_one_name(path: str, *, mounts: Path = MOUNTS) -> None:
    """Check that a real path is the only name of its file. A missing file has no other name.

    Raises:
        StoreUnavailable: it has hard links, or was mounted by itself; the message says what to do instead.
    """
    try:
        found = Path(path).stat()
    except OSError:
        return  # opening it says what is wrong
    if not stat.S_ISREG(found.st_mode):
        return
    if found.st_nlink > 1:
        raise StoreUnavailable(
            f"{path} has {found.st_nlink} names (hard links), and what was acknowledged under one of them would be "
            f"lost under another: keep one name, or copy the log with SQLite's backup. "
            f"`find DIRECTORY -inum {found.st_ino}` finds the others"
        )
    with on_disk(Path(path).parent):
        folder = Path(path).parent.stat()
    if folder.st_dev != found.st_dev or os.fsencode(path) in _mount_points(mounts):
        raise StoreUnavailable(
            f"{path} is mounted by itself, so its write-ahead log ({path}-wal) is not kept with it and what was "
            f"acknowledged would be lost: mount the directory that holds the log instead of the file "
            f"(`-v /srv/log:/data`, not `-v /srv/log/log.db:/data/log.db`)"
        )


def _mount_points(mounts: Path) -> set[bytes]:
    """Return where this process sees something mounted; nothing where the system has no such list."""
    found: set[bytes] = set()
    with suppress(OSError):
        for line in mounts.read_bytes().splitlines():
            columns = line.split(b" ")
            if len(columns) > _MOUNT_POINT:
                # Spaces and the like are written as \040; unicode_escape would read the bytes beyond ASCII as Latin-1.
                found.add(_unescaped(columns[_MOUNT_POINT]))
    return found


def _unescaped(name: bytes) -> bytes:
    first, *rest = name.split(b"\\")
    return first + b"".join(bytes([int(each[:3], 8)]) + each[3:] for each in rest)


def inode_of(path: str) -> Inode:
    """Return the file that a path leads to.

    Raises:
        StoreUnavailable: none.
    """
    found = found_at(path)
    return (found.st_dev, found.st_ino)


def check_same(path: str, known: Inode) -> None:
    """Check that a path still leads to a file.

    Raises:
        StoreUnavailable: it leads to none, or to another.
    """
    if inode_of(path) != known:
        raise another_file(path)


def found_at(path: str) -> os.stat_result:
    """Return what a path leads to.

    Raises:
        StoreUnavailable: it leads to nothing.
    """
    try:
        return os.stat(path)  # noqa: PTH116 - asked with each commit, so without an object between
    except OSError as error:
        if error.errno in _NOT_THERE:
            raise StoreUnavailable(f"{path} is not where it was opened: {error.strerror}") from error
        raise refused(path, error) from error


def another_file(path: str) -> StoreUnavailable:
    """Return the error that a path leads to another file than the opened one."""
    return StoreUnavailable(f"{path} is another file than the one that was opened")
