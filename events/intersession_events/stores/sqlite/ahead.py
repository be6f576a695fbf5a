"""The frames of SQLite's write-ahead log: which of them are intact, and which events stand behind a damaged one.

SQLite proves them only when it begins to read a write-ahead log that nobody has open, and leaves out, without a word, all that
stands behind the first one that is wrong (https://sqlite.org/fileformat2.html#walformat). While somebody has it open, it trusts
its index.
"""

import os
import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from intersession_events.basics.machine import on_disk
from intersession_events.stores.sqlite.connections import connect_to_read
from intersession_events.stores.sqlite.held import keep_open
from intersession_events.stores.sqlite.names import inode_of

_HEADER: Final = 32
_FRAME: Final = 24
_MAGIC: Final = (0x377F0682, 0x377F0683)
_MODULUS: Final = 0xFFFFFFFF

Sum = tuple[int, int]


class Index(NamedTuple):
    """The content of the index beside a write-ahead log."""

    frames: int
    """The number of its committed frames."""
    folded: int
    """The number of them that are in the database as well."""
    tried: int
    """The number of them that may be there: a checkpoint in progress, or a failed one, began with them."""

    @classmethod
    def read(cls, descriptor: int) -> "Index":
        """Read it from the file that all connections share (`-shm`), which must not be closed while a connection is open."""
        beginning = os.pread(descriptor, 132, 0).ljust(132, b"\0")
        return cls(*(struct.unpack_from("=I", beginning, at)[0] for at in (16, 96, 128)))


class Damage(NamedTuple):
    """Committed frames that SQLite ignores because an earlier frame is damaged."""

    frame: int
    """The first one that is wrong, counted from 1."""
    commits: int
    """The number of intact commits behind it."""


class Frames:
    """A write-ahead log that is open for reading."""

    def __init__(self, file: BinaryIO, *, page: int | None = None) -> None:
        """`page` is the size of a page, where the beginning can't be trusted."""
        self._file = file
        beginning = file.read(_HEADER)
        self.size = os.fstat(file.fileno()).st_size
        """In bytes."""
        self.is_begun = len(beginning) == _HEADER
        """Whether it has a beginning at all."""
        words = struct.unpack(">8I", beginning.ljust(_HEADER, b"\0"))
        self._order = ">" if words[0] & 1 else "<"
        self.is_known = (
            self.is_begun
            and words[0] in _MAGIC
            and _sum(beginning[:24], (0, 0), self._order) == (words[6], words[7])
        )
        """Whether its beginning is one of a write-ahead log, as its own sum says."""
        self._salts = beginning[16:24] if self.is_known else None
        self._begins: Sum = (words[6], words[7])
        if not self.is_known:
            self._order = "<" if struct.pack("=H", 1)[0] else ">"
        self._page = words[2] if self.is_known else page or 0

    @property
    def number(self) -> int:
        """The number of frames that the file has room for."""
        return max(self.size - _HEADER, 0) // (_FRAME + self._page) if self._page else 0

    def whole(self, most: int) -> int:
        """Return how many of the first frames, up to a limit, are intact."""
        before = self._begins
        for number in range(1, (most if self.is_known else 0) + 1):
            frame = self._read(number)
            if frame is None or frame[16:24] != _packed(self._summed(frame, before)):
                return number - 1
            before = _unpacked(frame[16:24])
        return most if self.is_known else 0

    def folded(self, index: Index) -> Iterator[tuple[int, bytes]]:
        """Yield the number and content of each page that the database must have from here, the ones checkpointed last first.

        A page that stands again behind what is folded is left out by a fold altogether, and so here.
        """
        seen: set[int] = set()
        for number in range(index.frames, 0, -1):
            (page,) = struct.unpack(">I", self._header(number)[:4].ljust(4, b"\0"))
            if page not in seen:
                seen.add(page)
                if number <= index.folded:
                    yield page, (self._read(number) or b"")[_FRAME:]

    def behind(self, read: int) -> Damage | None:
        """Return the acknowledged frames behind those that SQLite has read; None if there are none.

        A crash may leave one commit there that was never acknowledged, whole or in parts. No second one is begun before the first
        is on the disk: two say that something was lost.
        """
        commits, before = 0, None
        for number in range(read + 1, self.number + 1):
            header = self._header(number)
            is_ours = self._salts is None or header[8:16] == self._salts
            follows = False
            if is_ours and before is not None:
                frame = self._read(number)
                follows = frame is not None and frame[16:24] == _packed(self._summed(frame, before))
            if follows and header[4:8] != b"\0\0\0\0":
                commits += 1
            elif not follows and commits:
                break
            before = _unpacked(header[16:24]) if is_ours else None
        return Damage(read + 1, commits) if commits > 1 else None

    def mended(self) -> Iterator[bytes]:
        """Yield the file without its damaged frames, with new checksums, so that SQLite reads the rest."""
        salts = self._salts or b"\0" * 8
        magic = _MAGIC[self._order == ">"]
        beginning = struct.pack(">4I", magic, 3007000, self._page, 0) + salts
        running = _sum(beginning, (0, 0), self._order)
        yield beginning + _packed(running)
        before: Sum | None = self._begins if self.is_known else None
        for number in range(1, self.number + 1):
            frame = self._read(number)
            if frame is None:
                return
            is_right = (
                before is not None
                and (self._salts is None or frame[8:16] == self._salts)
                and frame[16:24] == _packed(self._summed(frame, before))
            )
            before = _unpacked(frame[16:24])
            if is_right:
                running = self._summed(frame, running)
                yield frame[:8] + salts + _packed(running) + frame[_FRAME:]

    def _header(self, number: int) -> bytes:
        return os.pread(self._file.fileno(), _FRAME, self._at(number))

    def _read(self, number: int) -> bytes | None:
        frame = os.pread(self._file.fileno(), _FRAME + self._page, self._at(number))
        return frame if len(frame) == _FRAME + self._page else None

    def _at(self, number: int) -> int:
        return _HEADER + (number - 1) * (_FRAME + self._page)

    def _summed(self, frame: bytes, before: Sum) -> Sum:
        return _sum(frame[_FRAME:], _sum(frame[:8], before, self._order), self._order)


def _sum(data: bytes, before: Sum, order: str) -> Sum:
    first, second = before
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & _MODULUS
        second = (second + odd + first) & _MODULUS
    return first, second


def _packed(both: Sum) -> bytes:
    return struct.pack(">2I", *both)


def _unpacked(stored: bytes) -> Sum:
    first, second = struct.unpack(">2I", stored)
    return first, second


def damage_of(path: str) -> Damage | None:
    """Return the acknowledged frames that SQLite ignores in the write-ahead log of a log that this process uses.

    Raises:
        StoreUnavailable: it can't be read.
        sqlite3.Error: SQLite can't open the log.
    """
    if not _has(path):
        return None
    with closing(connect_to_read(path)) as connection:
        page = _page(connection)
        if not os.path.exists(f"{path}-shm"):  # noqa: PTH110 - on media that can't be written there is none
            return None
        index = keep_open(inode_of(path), f"{path}-shm")
        while True:
            read = Index.read(index)
            with on_disk(f"{path}-wal"), open(f"{path}-wal", "rb") as wal:  # noqa: PTH123 - as SQLite has its name
                found = Frames(wal, page=page).behind(read.frames)
            if read == Index.read(index):  # else a living writer has added frames meanwhile
                return found


def _has(path: str) -> bool:
    with on_disk(f"{path}-wal"), suppress(FileNotFoundError):
        return os.stat(f"{path}-wal").st_size > _HEADER  # noqa: PTH116 - as SQLite has its name
    return False


def _page(connection: sqlite3.Connection) -> int:
    page: int = connection.execute("PRAGMA page_size").fetchone()[0]
    return page


def legible(path: str, after: int) -> list[int]:
    """Return the positions of ignored events that can still be read, from a temporary copy.

    Raises:
        StoreUnavailable: the copy can't be made.
    """
    with closing(connect_to_read(path)) as connection:
        page = _page(connection)
    with tempfile.TemporaryDirectory(prefix="intersession-") as private:
        copy = Path(private) / "log.db"
        with on_disk(path):
            shutil.copyfile(path, copy)
            with open(f"{path}-wal", "rb") as wal, open(f"{copy}-wal", "wb") as mended:  # noqa: PTH123 - as its name is
                mended.writelines(Frames(wal, page=page).mended())
        found: list[int] = []
        with suppress(sqlite3.Error), closing(sqlite3.connect(copy)) as connection:
            for (position,) in connection.execute(
                "SELECT rowid FROM stored_events WHERE rowid>? ORDER BY rowid", (after,)
            ):
                found.append(position)
        return found


def describe_damage(path: str, damage: Damage, *, head: int) -> str:
    """Say in a sentence which events a damage has cost, behind the last position that SQLite still reads."""
    found = legible(path, head)
    positions = (
        f"positions {found[0]} to {found[-1]}" if found else "events whose positions can't be read any more"
    )
    return (
        f"{path}-wal was damaged at frame {damage.frame}: {damage.commits} commits behind it are left out, with {positions}, "
        "which were acknowledged"
    )
