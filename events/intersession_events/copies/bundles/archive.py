"""Writes a bundle's archive: a zip that is the same bit for bit for the same entries, whole under its name or not there at all."""

import errno
import fcntl
import os
import shutil
import zipfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from intersession_events.basics.errors import BundleFailed
from intersession_events.basics.machine import sync
from intersession_events.stores.sqlite.filling import files_there

_MOMENT: Final = (1980, 1, 1, 0, 0, 0)
"""The date of every entry, the first that a zip can say: when it was made is not part of what a bundle says."""
_END_BYTES: Final = 22
"""The record at the end of a zip, without its comment."""
_CHUNK: Final = 1 << 20


class Entry(NamedTuple):
    """A file of the archive: its name there, and the file that has its content."""

    name: str
    path: Path


class Archived(NamedTuple):
    """An archive that was written: the SHA-256 of the whole file, and its size in bytes."""

    sha256: str
    size: int


def check_target(path: Path) -> None:
    """Check that a bundle can be written to a path.

    Raises:
        BundleFailed: something has the name already, or its folder is missing.
    """
    if there := files_there(path):
        raise BundleFailed(f"{there[0]} is there already, and nothing is overwritten: name a new file")
    if not path.parent.is_dir():
        raise BundleFailed(f"{path.parent} is no directory, make it first")


@contextmanager
def workplace(whole: Path) -> Generator[Path]:
    """Lend an empty folder beside a bundle's file, for the time of a block: what a killed process left there is taken away.

    Raises:
        BundleFailed: another process makes that file now, or something that is not ours has the folder's name.
        OSError: the folder can't be made.
    """
    place = whole.with_name(f".{whole.name}.part")
    place.mkdir(mode=0o700, exist_ok=True)
    folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # Whole texts come there: nobody else may have laid it out.
        there = os.fstat(folder)
        if there.st_uid != os.geteuid() or there.st_mode & 0o077:
            raise BundleFailed(
                f"{place} is in the way and can be read by others: delete it, or name another file"
            )
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BundleFailed(
                f"{whole} is being made by another process: wait for it, or name another file"
            ) from None
        if not place.exists() or not os.path.samestat(there, place.stat()):
            raise BundleFailed(f"{whole} was being made by another process until now: try again")
        try:
            for left in place.iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            yield place
        finally:
            shutil.rmtree(place)
    finally:
        os.close(folder)


def digest_of(path: Path) -> tuple[int, str]:
    """Return the size of a file and its SHA-256."""
    hashed, size = sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            hashed.update(chunk)
            size += len(chunk)
    return size, hashed.hexdigest()


def write_archive(entries: Sequence[Entry], part: Path, whole: Path) -> Archived:
    """Write an archive as `part`, and give it the name `whole` once all of it is on disk.

    Its comment is `sha256:` and the hash of all bytes before the record at its end.

    Raises:
        BundleFailed: it can't be written, or something has the name meanwhile.
    """
    try:
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w+b") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                for entry in entries:
                    _add(archive, entry)
            _sign_off(file.fileno())
            found = _digest_of_open(file.fileno())
        check_target(whole)
        # In this order, so that a power cut leaves the name without a file, or with all of it.
        sync(part)
        part.rename(whole)
        sync(whole.parent)
    except OSError as error:
        raise no_room(whole, error) from error
    return found


def no_room(whole: Path, error: OSError) -> BundleFailed:
    """Return the error for a bundle that the operating system let nobody write."""
    said = error.strerror or str(error)
    remedy = (
        "free some space" if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG} else "name another file"
    )
    return BundleFailed(f"{whole} can't be written: {said}; nothing is left of it, {remedy}")


def _add(archive: zipfile.ZipFile, entry: Entry) -> None:
    named = zipfile.ZipInfo(entry.name, _MOMENT)
    named.compress_type = zipfile.ZIP_DEFLATED
    named.create_system = 3  # Unix, wherever it is made
    named.external_attr = 0o600 << 16
    named.file_size = entry.path.stat().st_size  # says whether it takes the form for large files
    with entry.path.open("rb") as content, archive.open(named, "w") as target:
        shutil.copyfileobj(content, target, _CHUNK)


def _sign_off(file: int) -> None:
    """Add the comment to an archive that has none."""
    size = os.fstat(file).st_size
    comment = f"sha256:{_hashed(file, size - _END_BYTES)}".encode()
    os.pwrite(file, len(comment).to_bytes(2, "little") + comment, size - 2)


def _digest_of_open(file: int) -> Archived:
    size = os.fstat(file).st_size
    return Archived(_hashed(file, size), size)


def _hashed(file: int, size: int) -> str:
    hashed, at = sha256(), 0
    while at < size:
        chunk = os.pread(file, min(_CHUNK, size - at), at)
        hashed.update(chunk)
        at += len(chunk)
    return hashed.hexdigest()
