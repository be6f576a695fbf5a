"""The files of mirrored transcripts: their names, how far each is, and how lines are added.

Everything is opened below the directory and never through a link: somebody else may be able to write there.
"""

import errno
import os
import re
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from intersession_events.facts import ready
from intersession_events.log.log import Log
from intersession_events.stores.database import MEMORY

_STATE: Final = ".mirror.json"
_CHUNK: Final = 1 << 16
_LONGEST: Final = 200
_LOG_ID: Final = re.compile(r"[0-9a-f-]{36}")
_OF_THE_DISK: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)


@ready
class Mirrored(msgspec.Struct, frozen=True, rename="camel"):
    """How far a directory's files are, of which log."""

    log_id: str
    position: int = 0


class _LinePosition(msgspec.Struct):
    position: int = 0


@ready
class LastLine(msgspec.Struct):
    """The last line of a file as it is read back: the entry's id, and its position in the log."""

    id: str | None = None
    intersession: _LinePosition = msgspec.field(default_factory=_LinePosition)

    @classmethod
    def at(cls, entry_id: str, position: int) -> "LastLine":
        """Return what would be read back from a line."""
        return cls(entry_id, _LinePosition(position))

    @property
    def position(self) -> int:
        """Its position in the log; 0 for a file without such a line."""
        return self.intersession.position


def mirror_directory(log: Log, *, wanted: bool) -> Path | None:
    """Return where transcripts are mirrored: `<store>.transcripts` beside a log that has a place, if `transcripts.mirror` is on."""
    return Path(f"{log.place}.transcripts") if wanted and log.place != MEMORY else None


def file_name(session_id: str) -> str:
    """Return the file name of a session id: the id itself if it is a valid name, else with %2F-like escapes."""
    name = quote(session_id, safe=" !#$&'()+,;=@[]{}~")
    name = name.replace(".", "%2E", 1) if name.startswith(".") else name
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}~{sha256(session_id.encode()).hexdigest()[:16]}"
    return f"{name}.jsonl"


class TranscriptFiles:
    """The files in one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def resume(self, log_id: str) -> tuple[int, Path | None]:
        """Return how far the files are, and where another log's files were moved to, if there were any.

        Raises:
            OSError: the directory can't be made or read.
        """
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = self._state() or Mirrored(log_id)
        if found.log_id == log_id:
            return found.position, None
        whose = found.log_id if _LOG_ID.fullmatch(found.log_id) else "unknown"
        aside = self.directory.with_name(f"{self.directory.name}.{whose}")
        number = 1
        while os.path.lexists(aside):
            number += 1
            aside = self.directory.with_name(f"{self.directory.name}.{whose}.{number}")
        self.directory.rename(aside)
        self.directory.mkdir(mode=0o700)
        return 0, aside

    def remember(self, mirrored: Mirrored) -> None:
        """Store how far the files are.

        Raises:
            OSError: it can't be written.
        """
        with self._opened() as folder:
            partial = f"{_STATE}.new"
            with suppress(FileNotFoundError):
                os.unlink(partial, dir_fd=folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(partial, flags, 0o600, dir_fd=folder), "wb") as file:
                file.write(msgspec.json.encode(mirrored))
            os.replace(partial, _STATE, src_dir_fd=folder, dst_dir_fd=folder)

    def last_line(self, session_id: str) -> LastLine | None:
        """Return the last readable line, None if there is no file yet; a line that a crash cut short is removed.

        Raises:
            OSError: it can't be read, or is no file.
        """
        try:
            with self._opened() as folder, self._file(folder, session_id, os.O_RDWR) as descriptor:
                return _last_line(descriptor)
        except FileNotFoundError:
            return None

    def remove(self, session_id: str) -> None:
        """Delete a file, if it exists.

        Raises:
            OSError: it can't be taken away.
        """
        with suppress(FileNotFoundError), self._opened() as folder:
            os.unlink(file_name(session_id), dir_fd=folder)

    def append(self, session_id: str, lines: bytes) -> None:
        """Add whole lines to a file.

        Raises:
            OSError: they can't be written; some of them may have been.
        """
        with (
            self._opened() as folder,
            self._file(folder, session_id, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as descriptor,
            os.fdopen(descriptor, "ab", closefd=False) as file,
        ):
            file.write(lines)

    def _state(self) -> Mirrored | None:
        try:
            with self._opened() as folder:
                descriptor = os.open(
                    _STATE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder
                )
                with os.fdopen(descriptor, "rb") as file:
                    return msgspec.json.decode(file.read(_CHUNK), type=Mirrored)
        except (FileNotFoundError, ValueError, RecursionError):
            return None

    def concerns_one_file(self, error: OSError) -> bool:
        """Return whether an error concerns one file, and not the directory or the disk of all."""
        return error.errno not in _OF_THE_DISK and error.filename != str(self.directory)

    @contextmanager
    def _opened(self) -> Generator[int]:
        folder = os.open(str(self.directory), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def _file(self, folder: int, session_id: str, flags: int) -> Generator[int]:
        # Non-blocking, in case it is not a file: the other end of a pipe may never be read.
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(file_name(session_id), flags, 0o600, dir_fd=folder)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "no file", file_name(session_id))
            yield descriptor
        finally:
            os.close(descriptor)


def _last_line(descriptor: int) -> LastLine:
    """Return the last line with a position, looking back from the end as far as necessary."""
    end = os.fstat(descriptor).st_size
    whole = _line_end_before(descriptor, end)
    if whole != end:
        os.ftruncate(descriptor, whole)
    while whole > 0:
        start = _line_end_before(descriptor, whole - 1)
        try:
            return msgspec.json.decode(os.pread(descriptor, whole - start, start), type=LastLine)
        except (ValueError, RecursionError):
            whole = start  # somebody has written into the file
    return LastLine()


def _line_end_before(descriptor: int, end: int) -> int:
    """Return the place behind the last line break before a place; 0 if there is none."""
    while end > 0:
        start = max(0, end - _CHUNK)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
