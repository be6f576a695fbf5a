"""The machine's own services: time, random bytes, ids, the installed version, durable files.

What the machine refuses becomes an error of the log here (`on_disk`): each call of the operating system on a log's files is made
inside it.

Everything else in this package is handed these, so that a test can hand in others.
"""

import errno
import os
import sys
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final, Never

from intersession_events.basics.errors import Sealed, StoreFull, StoreUnavailable

VERSION: Final = "0.1.0"
"""Of this package, as `pyproject.toml` has it: to look it up among what is installed takes longer than to start without."""

_SEALED: Final[ContextVar[bool]] = ContextVar("intersession_sealed", default=False)
_is_sealed: Final = _SEALED.get
_REACHING_OUT: Final = frozenset(
    {
        "socket.connect",
        "socket.bind",
        "socket.sendto",
        "socket.sendmsg",
        "socket.getaddrinfo",
        "subprocess.Popen",
        "os.system",
    }
)
"""What Python says (`sys.addaudithook`) that somebody is about to do."""


@contextmanager
def sealed() -> Generator[None]:
    """Refuse the machine's services (time, chance, sockets, programs) in a block, for this thread or task.

    What is refused raises `Sealed`, which names the module that asked.
    """
    _watch()
    token = _SEALED.set(True)
    try:
        yield
    finally:
        _SEALED.reset(token)


@cache
def _watch() -> None:
    """Install a hook that reports sockets and programs, for good: a hook can't be removed."""
    # It is called once more after this module has lost its names, at the end of a process.
    reaching_out, is_sealed = _REACHING_OUT, _is_sealed

    def refuse_outside(event: str, _: object) -> None:
        if event in reaching_out and is_sealed():
            raise Sealed(_who(3), event)

    sys.addaudithook(refuse_outside)


def _refuse(what: str) -> Never:
    raise Sealed(_who(3), what)


def _who(depth: int) -> str:
    frame = sys._getframe(depth)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - there is no other way to find the caller
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_name}"


def wall_clock_ms() -> int:
    """Return the wall clock's time in milliseconds since 1970."""
    if _is_sealed():
        _refuse("the time")
    return time.time_ns() // 1_000_000


def monotonic_s() -> float:
    """Return seconds of a clock that only goes forward, whatever happens to the wall clock. It may stand still in sleep."""
    if _is_sealed():
        _refuse("the time")
    return time.monotonic()


def machine_entropy(size: int) -> bytes:
    """Return random bytes, good enough for a salt that must not be guessed."""
    if _is_sealed():
        _refuse("random bytes")
    return os.urandom(size)


def random_id() -> str:
    """Return a new random UUID, to identify a log, a session, a run or a message."""
    if _is_sealed():
        _refuse("a new id")
    return str(uuid.uuid4())


_FULL: Final = {errno.ENOSPC, errno.EDQUOT}


def refused(path: str | os.PathLike[str], error: OSError) -> StoreUnavailable:
    """Return the log's error for an error of the operating system."""
    said = error.strerror or str(error)
    if error.errno in _FULL:
        return StoreFull(
            f"no space left for the log: {os.fspath(path)}: {said}; reading still works, free some space"
        )
    return StoreUnavailable(f"{os.fspath(path)} can't be used: {said}")


@contextmanager
def on_disk(path: str | os.PathLike[str]) -> Generator[None]:
    """Raise errors of the operating system as errors of the log, for a block that works on a file or folder.

    Raises:
        StoreFull: there is no space left.
        StoreUnavailable: it refused for another reason.
    """
    try:
        yield
    except OSError as error:
        raise refused(path, error) from error


def sync(path: Path) -> None:
    """Make a file's content, or a folder's names, survive a power cut.

    Raises:
        OSError: the file system refuses.
    """
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextmanager
def private_file(path: Path, *, new: bool) -> Generator[BinaryIO]:
    """Open a file for writing that only its owner may read, whatever the umask: it may hold messages.

    One that is there keeps who may read it. A `new` one that can't be written whole is taken away.

    Raises:
        FileExistsError: it is to be `new`, and is there.
        OSError: it can't be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | (os.O_EXCL if new else 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
    except BaseException:
        if new:
            with suppress(OSError):
                path.unlink()
        raise


def read_at_most(path: Path, most: int) -> bytes:
    """Read a file of a user's up to a limit: the size of a file does not tell how much a device yields.

    Raises:
        OSError: it can't be read, or has more than `most` bytes.
    """
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes")
    return content
