"""Keeps a spawn's files on disk: stages, claims, removes and sweeps them (ATT-3, ATT-5).

A workspace belongs to an agent, and an agent may be talked into anything. So every step goes from an open directory to
the next one by name, follows no symbolic link, makes what it makes exclusively, and looks at what is there before it
says so. Outside of the workspace's own path nothing is opened, written or removed, whatever the tree looks like by then.
"""

import errno
import hashlib
import logging
import os
import shutil
import stat
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from intersession_actors.outside.attachments.checks import MANIFEST, ROOT_NAMES, CheckedFile, receipt
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.crash_points import crash_point
from intersession_events.facts import Attachments

logger = logging.getLogger("intersession.flows")

STAGING: Final = ".staging"
DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600

_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_PASSED: Final = _DIRECTORY | getattr(os, "O_PATH", 0)
"""How a directory is opened that is only passed through; on Linux without the right to list it."""
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_OLD_FILE: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_LINKED: Final = frozenset({errno.ELOOP, errno.ENOTDIR})


class Place(NamedTuple):
    """The owner of files: the workspace, resolved, and the spawn, which names its staging together with its log."""

    root: str
    log_id: str
    spawn_id: str

    @property
    def staged(self) -> str:
        """The name of the directory the files are staged in."""
        return f"{self.log_id}.{self.spawn_id}"


def can_be_safe() -> bool:
    """Return whether this system can walk directories without following links."""
    return os.open in os.supports_dir_fd and shutil.rmtree.avoids_symlink_attacks


def stage_files(place: Place, attachments: Attachments, files: Sequence[CheckedFile]) -> None:
    """Write the files and their manifest, durable, in a place that no agent reads yet.

    Raises:
        ToolRefused: `unsafe_path` where a link stands in the way, else `unavailable`. Nothing is left.
    """
    with _refusing(place.root):
        Path(place.root).mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        with _attachments(place.root, make=True) as parent, _directory(STAGING, parent, make=True) as staging:
            _remove(place.staged, staging)
            try:
                os.mkdir(place.staged, DIRECTORY_MODE, dir_fd=staging)
                with _directory(place.staged, staging) as own:
                    os.fchmod(own, DIRECTORY_MODE)
                    for file in files:
                        _write(file.file.name, file.content, own)
                    _write(MANIFEST, _manifest(attachments), own)
                    os.fsync(own)
                os.fsync(staging)
            except BaseException:
                with suppress(OSError):
                    _remove(place.staged, staging)
                raise


def claim_files(place: Place, attachments: Attachments) -> str:
    """Move staged files to their place and return the SHA-256 of their manifest. May be called again.

    Raises:
        ToolRefused: `unsafe_path` where something else stands there or the files are not those that were given.
    """
    with _refusing(place.root), _attachments(place.root) as parent:
        with suppress(FileNotFoundError), _directory(STAGING, parent) as staging:
            if _is_there(place.staged, staging):
                if _is_there(attachments.directory, parent):
                    raise _unsafe(f"something stands at {attachments.directory} already")
                os.rename(place.staged, attachments.directory, src_dir_fd=staging, dst_dir_fd=parent)
                crash_point("P3")
            # Also where another process put them there, which may have ended before it came to this.
            os.fsync(staging)
        os.fsync(parent)
        with _directory(attachments.directory, parent) as own:
            return _checked(own, attachments)


def manifest_sha256(attachments: Attachments) -> str:
    """Return the SHA-256 of the manifest that goes with files."""
    return hashlib.sha256(_manifest(attachments)).hexdigest()


def discard_staged(place: Place) -> None:
    """Remove the staged files of a spawn that was not accepted; leftovers are swept at the next start."""
    try:
        with _attachments(place.root) as parent, _directory(STAGING, parent) as staging:
            _remove(place.staged, staging)
    except OSError as error:
        logger.warning("staged attachments of %s could not be removed: %s", place.spawn_id, error)


def remove_claimed(place: Place, directory: str) -> None:
    """Remove a spawn's files and everything else in their directory; missing ones are ignored.

    Raises:
        OSError: something of it could not be removed. Nothing outside was touched.
    """
    try:
        with _openclaw(place.root) as above:
            if _is_link(ROOT_NAMES[-1], above):
                # What was ours is not here any more; the link is not followed, and does not stay.
                os.unlink(ROOT_NAMES[-1], dir_fd=above)
                os.fsync(above)
                return
            with _directory(ROOT_NAMES[-1], above) as parent:
                _remove(directory, parent)
                os.fsync(parent)
                with _directory(STAGING, parent) as staging:
                    _remove(place.staged, staging)
    except FileNotFoundError:
        return


def sweep_unclaimed(root: str, log_id: str, claimed: Collection[str]) -> tuple[str, ...]:
    """Remove staged files of this log's spawns that are not among `claimed`; return their ids."""
    swept: list[str] = []
    try:
        with _attachments(root) as parent, _directory(STAGING, parent) as staging:
            for name in sorted(os.listdir(staging)):  # noqa: PTH208 - an open directory, no path
                owner, _, spawn_id = name.partition(".")
                if owner == log_id and spawn_id not in claimed:
                    _remove(name, staging)
                    swept.append(spawn_id)
    except FileNotFoundError:
        pass
    except OSError as error:
        logger.warning("staged attachments in %s could not be swept: %s", root, error)
    return tuple(swept)


@contextmanager
def _refusing(root: str) -> Generator[None]:
    """Turn the system's errors into a refusal."""
    try:
        yield
    except OSError as error:
        if error.errno in _LINKED:
            raise _unsafe(f"a link, or no directory, in the way below {root} ({error.strerror})") from error
        raise ToolRefused(
            "unavailable",
            f"attachments: {root} can't be written ({error.strerror}), look at it and try again",
        ) from error


def _unsafe(what: str) -> ToolRefused:
    return ToolRefused("unsafe_path", f"attachments: {what}, clean the workspace up")


@contextmanager
def _root(root: str) -> Generator[int]:
    """Open a workspace, no component of its resolved path being a link."""
    path = Path(root)
    passed = os.open(path.anchor, _PASSED)
    try:
        *above, last = path.parts[1:] or (".",)
        for name, flags in (*((name, _PASSED) for name in above), (last, _DIRECTORY)):
            following = os.open(name, flags, dir_fd=passed)
            os.close(passed)
            passed = following
        yield passed
    finally:
        os.close(passed)


@contextmanager
def _openclaw(root: str, *, make: bool = False) -> Generator[int]:
    with _root(root) as opened, _directory(ROOT_NAMES[0], opened, make=make) as openclaw:
        yield openclaw


@contextmanager
def _attachments(root: str, *, make: bool = False) -> Generator[int]:
    with _openclaw(root, make=make) as above, _directory(ROOT_NAMES[1], above, make=make) as parent:
        yield parent


@contextmanager
def _directory(name: str, parent: int, *, make: bool = False) -> Generator[int]:
    """Open a directory that is not a link, making it if necessary; then make its name durable in any case."""
    made = False
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, DIRECTORY_MODE, dir_fd=parent)
            made = True
    opened = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        if made:
            os.fchmod(opened, DIRECTORY_MODE)
        if make:
            os.fsync(parent)
        yield opened
    finally:
        os.close(opened)


def _write(name: str, content: bytes, parent: int) -> None:
    with os.fdopen(os.open(name, _NEW_FILE, FILE_MODE, dir_fd=parent), "wb") as file:
        os.fchmod(file.fileno(), FILE_MODE)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _manifest(attachments: Attachments) -> bytes:
    return msgspec.json.encode(receipt(attachments), order="sorted") + b"\n"


def _checked(own: int, attachments: Attachments) -> str:
    """Return the manifest's hash if all is there as it was given, and nothing else."""
    wanted = {file.name: file.sha256 for file in attachments.files}
    wanted[MANIFEST] = manifest_sha256(attachments)
    if set(os.listdir(own)) != set(wanted):
        raise _unsafe(f"other files stand at {attachments.directory} than were put there")
    for name, sha256 in wanted.items():
        with os.fdopen(os.open(name, _OLD_FILE, dir_fd=own), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
                raise _unsafe(f"{name} is no plain file of its own any more")
            if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                raise _unsafe(f"{name} is not what was put there")
    return wanted[MANIFEST]


def _is_there(name: str, parent: int) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _is_link(name: str, parent: int) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)


def _remove(name: str, parent: int) -> None:
    """Remove a directory with all in it, or whatever stands there in its place."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(found.st_mode):
        shutil.rmtree(name, dir_fd=parent)
    else:
        os.unlink(name, dir_fd=parent)
