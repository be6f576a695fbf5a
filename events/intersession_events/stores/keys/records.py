"""The wrapped keys of a log, in a file beside it, `<store>.keys`: never in the log, so that no copy of the log has them (CRYPT-1).

The first line says how the log is kept, each other one is a key:

    {"check": …, "format": "intersession keys 1", "master": {"file": …}, "sessions": "all" | […], "vouched": …}
    {"id": 32 hexadecimal digits, "key": 80 characters, "owner": a stream, a file, or "unfinished answers"}

`key` is the base64 of a nonce and of the key, encrypted with the master key. Of a key that was destroyed, `destroyed:` and the time
in ms stand in its place, written over it.
"""

import fcntl
import os
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, final

import msgspec

from intersession_events.basics.crash_points import crash_point
from intersession_events.basics.errors import BadKey
from intersession_events.basics.machine import on_disk, private_file, sync
from intersession_events.facts import ready
from intersession_events.stores.keys.source import Sessions, Source

FORMAT: Final = "intersession keys 1"
_SUFFIX: Final = ".keys"
_DESTROYED: Final = "destroyed:"
_LENGTH: Final = 80
"""Characters of a wrapped key."""
_BEGINS: Final = b'{"id":"'
_ID: Final = 32
"""Digits of an id, behind that."""


@ready
class Header(msgspec.Struct, frozen=True, kw_only=True):
    """How a log is kept. `check` proves that a holder of the master key has said so, `vouched` that one of the key before has."""

    check: str
    format: str = FORMAT
    master: Source | None
    """Where its master key is; None for one that a command prints: no file says which program to run."""
    sessions: Sessions
    """Of which sessions the streams are kept encrypted, by patterns of their keys."""
    vouched: str = ""


@ready
class Wrapped(msgspec.Struct, frozen=True, gc=False):
    """A key, encrypted with the master key, and the stream or the file that it is for."""

    id: str
    key: str
    owner: str

    @property
    def destroyed(self) -> int | None:
        """When it was destroyed (ms); None for one that is there."""
        if not self.key.startswith(_DESTROYED):
            return None
        digits = self.key.removeprefix(_DESTROYED).strip("-")
        return int(digits) if digits.isdigit() else 0

    def gone(self, now_ms: int) -> "Wrapped":
        """Return what is left of it once it is destroyed."""
        return Wrapped(self.id, f"{_DESTROYED}{now_ms}".ljust(_LENGTH, "-"), self.owner)


class KeyRecords(msgspec.Struct, frozen=True):
    """All that is kept of a log's keys."""

    header: Header
    keys: Sequence[Wrapped]


_ENCODE: Final = msgspec.json.Encoder(order="sorted").encode


def file_of(store: str) -> Path:
    """Return the file of a log's keys, by the path beside which its files lie."""
    return Path(f"{store}{_SUFFIX}")


class Stamp(NamedTuple):
    """A state of the file."""

    inode: int
    size: int
    changed_ns: int


@final
class KeyFile:
    """The file of a log's wrapped keys. What was changed in it is durable."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_name(f"{path.name}.part")
        self.shown = str(path)

    def stamp(self) -> Stamp | None:
        """Return a value that differs once anything was changed; None if there is no file.

        Raises:
            StoreUnavailable: it can't be looked at.
        """
        with on_disk(self._path):
            try:
                found = self._path.stat()
            except FileNotFoundError:
                return None
        return Stamp(found.st_ino, found.st_size, found.st_mtime_ns)

    def added(self, after: int) -> Sequence[Wrapped]:
        """Return the keys whose lines begin at or behind a place of the file.

        Raises:
            StoreUnavailable: it can't be read.
        """
        with on_disk(self._path), self._path.open("rb") as file:
            file.seek(after)
            return [*filter(None, map(_key_in, file.read().split(b"\n")))]

    def load(self) -> KeyRecords:
        """Return its content. A last line that a crash cut short is of a key that nothing was encrypted with.

        Raises:
            BadKey: it is something else.
            StoreUnavailable: it can't be read.
        """
        with on_disk(self._path):
            first, *lines = self._path.read_bytes().split(b"\n")
        try:
            header = msgspec.json.decode(first, type=Header)
        except (msgspec.MsgspecError, ValueError) as error:
            raise BadKey(f"{self.shown} holds no keys of a log: {error}") from error
        if header.format != FORMAT:
            raise BadKey(
                f"{self.shown} has the format {header.format[:64]!r}, and this version reads {FORMAT!r}"
            )
        return KeyRecords(header, [*filter(None, map(_key_in, lines))])

    def write(self, kept: KeyRecords) -> None:
        """Put this in the place of the file, or make it: whole, or not at all.

        Raises:
            StoreUnavailable: it can't be written.
        """
        part = self._part
        with on_disk(self._path):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with private_file(part, new=False) as file:
                file.write(b"".join(_ENCODE(one) + b"\n" for one in (kept.header, *kept.keys)))
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._path)
            sync(self._path.parent)

    @contextmanager
    def held(self) -> Generator["HeldFile"]:
        """Keep other processes from changing it, for a block: the master key may be rotated while a host runs.

        Raises:
            StoreUnavailable: it can't be opened, or written.
        """
        with on_disk(self._path):
            while True:
                file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX)
                    if os.fstat(file).st_ino == self._path.stat().st_ino:  # else it was replaced meanwhile
                        # Left by a kill: it would keep keys that are destroyed from now on.
                        self._part.unlink(missing_ok=True)
                        yield HeldFile(file)
                        return
                finally:
                    os.close(file)


@final
class HeldFile:
    """The file of keys, while no other process changes it."""

    def __init__(self, file: int) -> None:
        self._file = file

    def add(self, keys: Sequence[Wrapped]) -> None:
        """Append keys."""
        end = os.lseek(self._file, 0, os.SEEK_END)
        is_whole = os.pread(self._file, 1, end - 1) == b"\n"
        os.write(self._file, b"".join((b"" if is_whole else b"\n", *(_ENCODE(key) + b"\n" for key in keys))))
        os.fsync(self._file)
        crash_point("Y1")

    def destroy(self, ids: Collection[str], now_ms: int) -> Sequence[Wrapped]:
        """Write over keys where they stand: a new file would leave the blocks of this one. Others are passed over.

        Return what is left of them.
        """
        at, gone = 0, list[Wrapped]()
        for line in os.pread(self._file, os.fstat(self._file).st_size, 0).split(b"\n"):
            # As we write a key, its id stands first, and most lines need not be decoded.
            maybe = not line.startswith(_BEGINS) or line[len(_BEGINS) :][:_ID].decode(errors="replace") in ids
            key = _key_in(line) if maybe else None
            if key is not None and key.id in ids and key.destroyed is None:
                gone.append(key.gone(now_ms))
                os.pwrite(self._file, _ENCODE(gone[-1]), at)
            at += len(line) + 1
        os.fsync(self._file)
        return gone


def _key_in(line: bytes) -> Wrapped | None:
    try:
        return msgspec.json.decode(line, type=Wrapped)
    except (msgspec.MsgspecError, ValueError):
        return None
