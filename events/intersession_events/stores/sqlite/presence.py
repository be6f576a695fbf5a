"""Detects that a log's files were replaced or deleted: SQLite would go on writing into a deleted file."""

import os
import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Final

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.machine import on_disk
from intersession_events.stores.sqlite.ahead import Frames, Index
from intersession_events.stores.sqlite.connections import connect_to_read, database_uri
from intersession_events.stores.sqlite.held import keep_open
from intersession_events.stores.sqlite.names import Inode, another_file, found_at, inode_of

_WAL: Final = 1
"""Where the write-ahead log stands among the files, behind the database."""
_COMPARED: Final = 64
"""The number of pages that tell whether the last checkpoint is there."""


class Folded:
    """The state of the database file without its write-ahead log. A checkpoint moves it forward, and nothing moves it back.

    A backup that is copied over a log while that is open leaves the same file, with something else in it.
    """

    def __init__(self, path: str, log_id: str, head: Callable[[], int]) -> None:
        """`head` says up to which position was committed."""
        self._path = path
        self._log_id = log_id
        self._head = head
        self._position = 0
        self._overwritten = False

    def check(self) -> None:
        """Check that it is still the same log, and as far as it was.

        Raises:
            StoreUnavailable: somebody has written something else over it.
        """
        try:
            with closing(
                sqlite3.connect(database_uri(self._path, mode="ro&immutable=1"), uri=True)
            ) as connection:
                (log_id,) = connection.execute("SELECT log_id FROM log_identity").fetchone()
                (position,) = connection.execute(
                    "SELECT COALESCE(MAX(rowid), 0) FROM stored_events"
                ).fetchone()
        except sqlite3.DatabaseError as error:
            if "not a database" in str(error):
                raise self._refused("no database") from error
            return  # folded only in part, by a full disk for example: its next reader hears of it
        if log_id != self._log_id:
            raise self._refused(f"the log {log_id}")
        if position < self._position and not self._is_of_no_one_moment():
            raise self._refused(f"this log up to position {position}, and it had come to {self._position}")
        self._position = max(position, self._position)

    def _is_of_no_one_moment(self) -> bool:
        """Return whether a fold has come only part of the way, so that the database by itself need not hold together.

        While a reader needs what was before, a fold leaves out each page that was written again since: a leaf that was split may be
        there without the page that names its other half. What was folded last is there then, page by page; written over, it is not.
        """
        index = Index.read(keep_open(inode_of(self._path), f"{self._path}-shm"))
        if index.tried > index.folded:
            return True  # somebody is at it, or failed; the next look tells more
        if not 0 < index.folded < index.frames:
            return False
        # Kept open: closing it would drop the locks that SQLite holds on it.
        database, wal = keep_open(inode_of(self._path), self._path), f"{self._path}-wal"
        with on_disk(wal), open(wal, "rb") as file:  # noqa: PTH123 - SQLite holds no locks on this one, so it may be closed again
            ahead = Frames(file)
            return ahead.number >= index.frames and all(  # of one that was cut there is nothing to compare
                os.pread(database, len(content), (page - 1) * len(content)) == content
                for page, content in islice(ahead.folded(index), _COMPARED)
            )

    def is_all_folded(self) -> bool:
        """Return whether the file by itself has all that was committed: another process checkpointed the write-ahead log."""
        self.check()
        return self._position >= self._head()

    def check_ahead(self) -> None:
        """Check that the write-ahead log, which another process has written to, still has all that was committed.

        SQLite proves its frames only when nobody had it open before, and lets a writer go on behind whatever became of them. So
        they are proven here: a second for 12 MB, and only when a stranger has written.

        Raises:
            StoreUnavailable: somebody has written something else over it.
        """
        wal, head = f"{self._path}-wal", self._head()
        index = Index.read(keep_open(inode_of(self._path), f"{self._path}-shm"))
        with on_disk(wal), open(wal, "rb") as file:  # noqa: PTH123 - SQLite holds no locks on this one, so it may be closed again
            frames = Frames(file)
            if frames.is_begun and not frames.is_known:
                raise self._refused_ahead(wal, "it does not begin like a write-ahead log")
            if index.folded < index.frames and (whole := frames.whole(index.frames)) < index.frames:
                raise self._refused_ahead(wal, f"frame {whole + 1} of {index.frames} is not what was written")
        try:
            with closing(connect_to_read(self._path)) as connection:
                (log_id,) = connection.execute("SELECT log_id FROM log_identity").fetchone()
                found = connection.execute(
                    "SELECT length(state) FROM stored_events WHERE rowid=?", (head,)
                ).fetchone()
        except sqlite3.DatabaseError as error:
            raise self._refused_ahead(wal, f"{error}") from error
        if log_id != self._log_id or (head and found is None):
            raise self._refused_ahead(wal, f"position {head} is not in it any more")

    def leave(self) -> None:
        """Move a closed write-ahead log aside, so that SQLite can't apply it to a database that was replaced."""
        if self._overwritten:
            with suppress(OSError):
                Path(f"{self._path}-wal").replace(f"{self._path}-wal.of-{self._log_id}")

    def _refused_ahead(self, wal: str, found: str) -> StoreUnavailable:
        return StoreUnavailable(f"{wal} was overwritten while it was open: {found}")

    def _refused(self, found: str) -> StoreUnavailable:
        self._overwritten = True
        return StoreUnavailable(
            f"{self._path} was overwritten while it was open: what is in it now is {found}"
        )


class Presence:
    """The files as they were found when this was made: a database, its write-ahead log, and the others that belong to them.

    The database never becomes shorter, and nobody but SQLite writes into it. The write-ahead log becomes shorter only
    while it is `emptied`, or when somebody has folded all of it. Our own writes are announced (`ours`): what
    `content` finds out by looking into a file is asked when somebody else has.
    """

    def __init__(self, *paths: str, content: Folded | None = None) -> None:
        """Take note of files.

        Raises:
            StoreUnavailable: one of them is not there.
        """
        self._known: Sequence[tuple[str, Inode]] = [(path, inode_of(path)) for path in paths]
        self._sizes = [found_at(path).st_size for path in paths]
        self._written = [found_at(path).st_mtime_ns for path in paths]
        self._content = content
        self._emptying = 0

    def check(self, *, contents: bool = False, ours: bool = False) -> None:
        """Check that the files are still there, and the same; `contents` leaves out those that hold no data.

        `ours` says that we have just written the write-ahead log. Each commit calls this twice.

        Raises:
            StoreUnavailable: one was deleted, moved, replaced, cut or overwritten.
        """
        for index in range(_WAL + 1 if contents else len(self._known)):
            path, known = self._known[index]
            found = found_at(path)
            if (found.st_dev, found.st_ino) != known:
                raise another_file(path)
            if index > _WAL or (index == _WAL and self._emptying):
                continue
            size, written = found.st_size, found.st_mtime_ns
            if size < self._sizes[index] and not (
                index == _WAL and self._content is not None and self._content.is_all_folded()
            ):
                raise StoreUnavailable(
                    f"{path} is shorter than it was: somebody cut it from {self._sizes[index]} to {size} bytes"
                )
            self._sizes[index] = size
            if written != self._written[index]:
                if self._content is not None and not (ours and index == _WAL):
                    look = self._content.check if index == 0 else self._content.check_ahead
                    look()
                self._written[index] = written

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
            found = found_at(path)
            if (found.st_dev, found.st_ino) != known:
                raise another_file(path)
            if index == 0 and found.st_size < self._sizes[0]:
                raise StoreUnavailable(f"{path} is shorter than it was: {found.st_size} bytes")

    def are_there(self) -> bool:
        """Return whether each name still leads to its file, whatever its content."""
        try:
            return all(inode_of(path) == known for path, known in self._known)
        except StoreUnavailable:
            return False
