"""The hosts beside the writer, in a folder beside the log's file: a file each, which its process keeps locked."""

import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, final

import msgspec

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.machine import on_disk, wall_clock_ms
from intersession_events.stores.hosts.host import Host

_SUFFIX: Final = ".hosts"
_LONGEST: Final = 4096
_MOST: Final = 1000


@final
class Folder:
    """The hosts beside the writer of a log in a file. The lock of a process that was killed is gone with it."""

    def __init__(self, store: str | None) -> None:
        """Take the path of the log; None for a log in memory, beside which nobody is."""
        self._folder = None if store is None else Path(f"{store}{_SUFFIX}")
        self._ours: dict[str, int] = {}

    def announce(self, host: Host) -> None:
        """Say that a host is there, until it leaves or this process ends.

        Raises:
            StoreUnavailable: its file can't be written.
        """
        if self._folder is None:
            raise StoreUnavailable("a log in memory has no hosts beside its writer")
        path = self._folder / f"{host.pid}-{host.name[-8:]}"
        with on_disk(path):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            # A look that came before the lock took the file away.
            while (file := self._ours.get(host.name)) is None or os.fstat(file).st_nlink == 0:
                self.leave(host.name)
                file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                self._ours[host.name] = file
                fcntl.flock(file, fcntl.LOCK_EX)
            before = _read(os.pread(file, _LONGEST, 0))
            said = msgspec.structs.replace(host, since=wall_clock_ms() if before is None else before.since)
            text = msgspec.json.encode(said)
            os.pwrite(file, text, 0)
            os.ftruncate(file, len(text))

    def leave(self, name: str) -> None:
        """Say that a host of this process has ended."""
        file = self._ours.pop(name, None)
        if file is not None:
            os.close(file)

    def alive(self) -> Sequence[Host]:
        """Return the hosts that are there now, by name.

        Raises:
            StoreUnavailable: the folder can't be read.
        """
        if self._folder is None:
            return []
        with on_disk(self._folder):
            try:
                paths = sorted(self._folder.iterdir())[:_MOST]
            except FileNotFoundError:
                return []
        found = [host for path in paths if (host := self._looked_at(path)) is not None]
        return sorted(found, key=lambda host: host.name)

    def _looked_at(self, path: Path) -> Host | None:
        """Return the host of a file; the file of one that has ended is taken away."""
        with suppress(OSError):
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return _read(os.pread(file, _LONGEST, 0))
                path.unlink()
            finally:
                os.close(file)
        return None


def _read(text: bytes) -> Host | None:
    try:
        return msgspec.json.decode(text, type=Host)
    except (ValueError, RecursionError):
        return None
