"""The disk of a simulation: directories and files in memory, whose calls fail, and which loses what was not synced with the power.

It stands in for what `intersession_actors.outside.attachments.files` uses of the machine. Names and directories are journaled, as on any
file system of today: with the power goes what was done last, back to any moment since the last sync, and of a file that was
not synced its content.
"""

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any, Final, Self
from unittest.mock import patch

from intersession_actors.outside.attachments import files
from intersession_actors.outside.attachments.checks import ROOT_NAMES
from intersession_events.facts import (
    AttachmentRemovalFailed,
    Attachments,
    AttachmentsReady,
    AttachmentsRemoved,
    ChildArchived,
    Event,
    SpawnAccepted,
    SpawnClosed,
)
from intersession_events.log.recorded import Recorded, parts_in

Place = tuple[str, ...]
"""Where something is: the names from the root on."""

_DIRECTORY_MODE: Final = stat.S_IFDIR | 0o700
_FILE_MODE: Final = stat.S_IFREG | 0o600


class File:
    """A file's content; what of it is `synced` outlives the power."""

    def __init__(self) -> None:
        self.content = b""
        self.synced = b""


Tree = dict[Place, File | None]
"""All there is; a directory is None."""


class Disk:
    """Does what `os` does, as far as it is asked to. `hook` is told of each call that changes or reads something, and may raise."""

    def __init__(self, hook: Callable[[str], None] = lambda _: None) -> None:
        self.hook = hook
        self.tree: Tree = {(): None}
        self._since: list[Tree] = [{(): None}]
        """How it was at the last sync, and after each change since then."""
        self._open: dict[int, Place] = {}
        self._next = 100
        self.supports_dir_fd = {self.open}
        self.path = os.path

    def __getattr__(self, name: str) -> Any:  # the flags of `open`
        if name.startswith("O_"):
            return getattr(os, name)
        raise AttributeError(name)

    @contextmanager
    def mounted(self) -> Generator[None]:
        """Be the disk that attachments are kept on."""

        make = self._make

        class Root(PurePosixPath):
            def mkdir(self, mode: int = 0o777, *, parents: bool, exist_ok: bool) -> None:  # noqa: ARG002
                for end in range(2, len(self.parts) + 1):
                    make(self.parts[1:end])

        with (
            patch.object(files, "os", self),
            patch.object(files, "shutil", SimpleNamespace(rmtree=_Remove(self))),
            patch.object(files, "Path", Root),
        ):
            yield

    def lose_power(self, chosen: Callable[[str, int], int]) -> None:
        """Lose what was not synced, or some of it: `chosen` says how much, of so many."""
        self.tree = dict(self._since[chosen("journal", len(self._since) - 1)])
        for file in self.tree.values():
            if file is not None and file.content != file.synced:
                file.content = file.content[: chosen("content", len(file.content))]
                file.synced = file.content
        self._since = [dict(self.tree)]
        self._open.clear()

    def within(self, place: Place) -> dict[str, File | None]:
        """Return what is right below a directory."""
        depth = len(place)
        return {
            one[-1]: node for one, node in self.tree.items() if len(one) == depth + 1 and one[:depth] == place
        }

    # --- what `os` has

    def open(self, name: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        del mode
        place = () if dir_fd is None else (*self._open[dir_fd], name)
        self.hook("open")
        if flags & os.O_CREAT:
            if place in self.tree:
                raise _error(errno.EEXIST, name)
            self.tree[place] = File()
            self._changed()
        elif place not in self.tree:
            raise _error(errno.ENOENT, name)
        elif flags & os.O_DIRECTORY and self.tree[place] is not None:
            raise _error(errno.ENOTDIR, name)
        self._next += 1
        self._open[self._next] = place
        return self._next

    def close(self, fd: int) -> None:
        self._open.pop(fd, None)

    def fdopen(self, fd: int, mode: str) -> "_Opened":
        return _Opened(self, fd, writes=mode == "wb")

    def mkdir(self, name: str, mode: int = 0o777, *, dir_fd: int) -> None:
        del mode
        self.hook("mkdir")
        self._make((*self._open[dir_fd], name), new=True)

    def rename(self, old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        self.hook("rename")
        source, target = (*self._open[src_dir_fd], old), (*self._open[dst_dir_fd], new)
        depth = len(source)
        for place in [place for place in self.tree if place[:depth] == source]:
            self.tree[(*target, *place[depth:])] = self.tree.pop(place)
        self._changed()

    def unlink(self, name: str, *, dir_fd: int) -> None:
        self.hook("unlink")
        del self.tree[(*self._open[dir_fd], name)]
        self._changed()

    def listdir(self, fd: int) -> list[str]:
        self.hook("listdir")
        return [*self.within(self._open[fd])]

    def stat(self, name: str, *, dir_fd: int, follow_symlinks: bool) -> SimpleNamespace:
        del follow_symlinks
        self.hook("stat")
        return self._told((*self._open[dir_fd], name))

    def fstat(self, fd: int) -> SimpleNamespace:
        return self._told(self._open[fd])

    def fchmod(self, fd: int, mode: int) -> None:
        """Do nothing: nobody else is here."""

    def fsync(self, fd: int) -> None:
        self.hook("fsync")
        file = self.tree[self._open[fd]]
        if file is not None:
            file.synced = file.content
        self._since = [dict(self.tree)]

    # --- inside

    def written(self, fd: int, content: bytes) -> None:
        """Add to a file."""
        self.hook("write")
        file = self.tree[self._open[fd]]
        assert file is not None
        file.content += content

    def read(self, fd: int) -> bytes:
        """Return what is in a file."""
        self.hook("read")
        file = self.tree[self._open[fd]]
        assert file is not None
        return file.content

    def remove(self, place: Place) -> None:
        """Remove a directory and all in it, one after the other."""
        depth = len(place)
        for one in sorted((one for one in self.tree if one[:depth] == place), key=len, reverse=True):
            self.hook("unlink")
            del self.tree[one]
            self._changed()

    def place_of(self, fd: int) -> Place:
        """Return which directory is open."""
        return self._open[fd]

    def _make(self, place: Place, *, new: bool = False) -> None:
        if place in self.tree:
            if new:
                raise _error(errno.EEXIST, place[-1])
            return
        self.tree[place] = None
        self._changed()

    def _changed(self) -> None:
        self._since.append(dict(self.tree))

    def _told(self, place: Place) -> SimpleNamespace:
        if place not in self.tree:
            raise _error(errno.ENOENT, place[-1])
        return SimpleNamespace(
            st_mode=_DIRECTORY_MODE if self.tree[place] is None else _FILE_MODE, st_nlink=1
        )


class _Opened(BytesIO):
    """A file that is open to be read whole, or to be written."""

    def __init__(self, disk: Disk, fd: int, *, writes: bool) -> None:
        self._disk = disk
        self._fd = fd
        super().__init__(b"" if writes else disk.read(fd))

    def __enter__(self) -> Self:
        return self

    def fileno(self) -> int:
        return self._fd

    def write(self, content: Any) -> int:  # what BytesIO takes
        self._disk.written(self._fd, bytes(content))
        return len(content)

    def close(self) -> None:
        self._disk.close(self._fd)
        super().close()


class _Remove:
    avoids_symlink_attacks = shutil.rmtree.avoids_symlink_attacks

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def __call__(self, name: str, *, dir_fd: int) -> None:
        self._disk.remove((*self._disk.place_of(dir_fd), name))


def missing_files(disk: Disk, events: Iterable[Recorded], child: str) -> Iterator[str]:
    """Yield which files a child was given and does not find, as it begins to work; when its task is over they may go."""
    for spawn in _spawns_with_files(events):
        if spawn.accepted.child == child and not spawn.is_over:
            yield from spawn.missing(disk)


def wrong_with_files(disk: Disk, events: Iterable[Recorded]) -> Iterator[str]:
    """Yield what stands where attachments are, and should not, or should and does not, once nothing is open any more."""
    spawns = list(_spawns_with_files(events))
    kept, left = {spawn.directory for spawn in spawns if spawn.is_kept}, set[str]()
    for spawn in spawns:
        if spawn.is_kept:
            yield from spawn.missing(disk)
        if spawn.has_failed:  # it says so, and what is there may be removed by hand
            left |= {spawn.directory}
    for root in {spawn.above for spawn in spawns}:
        for name in sorted(disk.within(root).keys() - kept - left - {files.STAGING}):
            yield f"{name} stands there, and is nobody's (any more)"
        if staged := sorted(disk.within((*root, files.STAGING))):
            accepted = {spawn.accepted.spawn_id for spawn in spawns if not spawn.has_failed}
            yield from (f"{name} is staged still" for name in staged if name.partition(".")[2] in accepted)


class _Spawn:
    """A spawn that was given files, as its stream tells it."""

    def __init__(self, events: Sequence[Event], accepted: SpawnAccepted, given: Attachments) -> None:
        self.accepted = accepted
        self.directory = given.directory
        self._given = given
        self.above: Place = (*PurePosixPath(given.root).parts[1:], *ROOT_NAMES)
        self.has_failed = any(isinstance(event, AttachmentRemovalFailed) for event in events)
        """Whether its files could not be removed once."""
        self.is_over = any(isinstance(event, SpawnClosed | ChildArchived) for event in events)
        is_ready = any(isinstance(event, AttachmentsReady) for event in events)
        is_removed = any(isinstance(event, AttachmentsRemoved) for event in events)
        self.is_kept = is_ready and not is_removed and not self.has_failed

    def missing(self, disk: Disk) -> Iterator[str]:
        """Yield which of its files are not there as they were given."""
        there = disk.within((*self.above, self.directory))
        for given in self._given.files:
            file = there.get(given.name)
            if file is None or hashlib.sha256(file.content).hexdigest() != given.sha256:
                yield f"{self.directory}/{given.name}"


def _spawns_with_files(events: Iterable[Recorded]) -> Iterator[_Spawn]:
    streams: dict[str, list[Event]] = {}
    for item in parts_in(events):
        if item.stream.startswith("spawn:"):
            streams.setdefault(item.stream, []).append(item.event)
    for told in streams.values():
        first = told[0]
        if isinstance(first, SpawnAccepted) and first.attachments is not None:
            yield _Spawn(told, first, first.attachments)


def _error(number: int, name: str) -> OSError:
    return OSError(number, os.strerror(number), name)
