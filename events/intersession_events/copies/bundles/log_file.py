"""The log of a bundle as a file that opens: the whole log up to a place, or a fork with some of its streams."""

import errno
import sqlite3
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from intersession_events.basics.closing import Closing
from intersession_events.copies.forks.forking import OwnRows
from intersession_events.copies.forks.prefix import STREAM
from intersession_events.facts import Erased, ForkedFrom
from intersession_events.log.erasing import erased_stream
from intersession_events.log.sql import Row
from intersession_events.stores.portable.filling import Moved
from intersession_events.stores.sqlite.filling import FileFilling

_AT_ONCE: Final = 1000


class LogFile(Closing):
    """Fills a new file with rows in the order of their positions. It has no views: opening it folds them.

    What SQLite can't write is an `OSError`, as for any file. Nothing in it comes from a clock or from chance, so that the same rows make the same file.
    """

    def __init__(self, path: Path) -> None:
        self._filling = FileFilling(path, anew=True)
        self._rows: list[Row] = []
        self._topics: set[str] = set()
        self._last = 0

    def close(self) -> None:
        """Close what was opened."""
        self._filling.close()

    def begin(self, log_id: str, created_ms: int) -> None:
        """Make the file of a log."""
        with _written():
            self._filling.begin(Moved(log_id, 0, created_ms, 0, ()))

    def add(self, row: Row) -> None:
        """Add a row behind those that are there."""
        self._rows.append(row)
        self._topics.add(row[3])
        self._last = row[0]
        if len(self._rows) >= _AT_ONCE:
            self._put()

    def finish(self, epoch: int) -> None:
        """Give the file its name. `epoch` is at least that of each of its events."""
        self._put()
        with _written(), self._filling.writing() as made:
            made.execute("UPDATE log_identity SET epoch=?", (epoch,))
            made.executemany(
                "INSERT INTO log_topics VALUES (?)", [(topic,) for topic in sorted(self._topics)]
            )
            if self._last:
                made.execute("DELETE FROM sqlite_sequence WHERE name='stored_events'")
                made.execute("INSERT INTO sqlite_sequence VALUES ('stored_events', ?)", (self._last,))
        with _written():
            self._filling.finish()

    def _put(self) -> None:
        if self._rows:
            with _written():
                self._filling.put(self._rows, after=None)
            self._rows = []


@contextmanager
def _written() -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        # As elsewhere: what SQLite calls an error of the disk is one that is full, in most cases.
        is_full = error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
        raise OSError(errno.ENOSPC if is_full else errno.EIO, str(error)) from error


class ForkEnd(NamedTuple):
    """How a fork's own events follow its prefix: their time, and the last event of each stream, of `log` each that it has."""

    forked: ForkedFrom
    time: int
    epoch: int
    erased: Iterable[Erased]


def own_rows(fork_id: str, end: ForkEnd) -> Sequence[Row]:
    """Return the events by which a bundle's fork names its origin. They are the same for the same prefix."""
    salts = Derived(fork_id)
    own = OwnRows(fork_id, epoch=end.epoch, time=end.time, entropy=salts)
    for stream, version, hashed in end.forked.heads:
        own.follows(stream, version, hashed)
    at = end.forked.position + 1
    return [
        own.row(STREAM, end.forked, at=at),
        *(own.row(erased_stream(event.stream), event, at=at + 1 + n) for n, event in enumerate(end.erased)),
    ]


class Derived:
    """Bytes in the place of random ones. What they salt is said in the bundle, so that there is nothing to guess."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._taken = 0

    def __call__(self, size: int) -> bytes:
        """Return the next bytes."""
        self._taken += 1
        return sha256(f"intersession bundle 1 {self._seed} {self._taken}".encode()).digest()[:size]
