"""Contents of files in a folder beside an SQLite log, `<store>.files`, which only its owner can read (FILE-1)."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, final

from intersession_events.basics.machine import on_disk, private_file, sync
from intersession_events.stores.files.encrypted import encrypted
from intersession_events.stores.files.store import Contents
from intersession_events.stores.keys.opening import keys_at
from intersession_events.stores.keys.records import KeyFile, file_of

_SUFFIX: Final = ".files"
_FORKS: Final = ".forks"
_NAME: Final = re.compile(r"[0-9a-f]{64}(\.enc)?(\.doubt)?")
_PART: Final = ".part"


def folder_of(store: str) -> Path:
    """Return the folder of a log's files, by the log's path."""
    return Path(f"{store}{_SUFFIX}")


def sources_of(store: str, log_ids: Iterable[str]) -> Sequence[Contents]:
    """Return the folders of the logs that a fork comes from, by its path and their ids; empty for a log that is no fork."""
    folder = Path(store).parent
    if not folder.name.endswith(_FORKS):
        return ()
    root = folder.with_name(folder.name.removesuffix(_FORKS))
    return [_of(str(root)), *(_of(str(folder / f"{one}.db")) for one in log_ids)]


def _of(store: str) -> Contents:
    """Return the folder of another log's files, to be read with that log's own keys."""
    return encrypted(Folder(folder_of(store)), keys_at(KeyFile(file_of(store)), writes=False))


@final
class Folder:
    """Contents in a folder, each in a file of its own. It is made when something is put into it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str) -> bytes | None:
        """Return the bytes of a file; None where it is not there.

        Raises:
            StoreUnavailable: it can't be read.
        """
        with on_disk(self._folder):
            try:
                return (self._folder / name).read_bytes()
            except FileNotFoundError:
                return None

    def put(self, name: str, data: bytes) -> None:
        """Write a file under another name, sync it, and give it its name.

        Raises:
            StoreFull: there is no space left.
            StoreUnavailable: it can't be written.
        """
        with on_disk(self._folder):
            if not self._folder.is_dir():
                self._folder.mkdir(mode=0o700)
                sync(self._folder.parent)
            part = self._folder / f"{name}{_PART}"
            with private_file(part, new=False) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._folder / name)
            sync(self._folder)

    def remove(self, name: str) -> None:
        """Delete a file, if it is there.

        Raises:
            StoreUnavailable: it can't be deleted.
        """
        with on_disk(self._folder):
            # What a kill has left of it while it was written, first: nothing else would name that any more.
            (self._folder / f"{name}{_PART}").unlink(missing_ok=True)
            (self._folder / name).unlink(missing_ok=True)

    def names(self) -> Iterable[str]:
        """Return the names of the files; what is not named like a content is not looked at.

        Raises:
            StoreUnavailable: the folder can't be read.
        """
        with on_disk(self._folder):
            if not self._folder.is_dir():
                return ()
            return [name for name in os.listdir(self._folder) if _NAME.fullmatch(name)]  # noqa: PTH208 - names alone

    def path(self, name: str) -> Path | None:
        """Return the file; None where it is not there."""
        path = self._folder / name
        return path if path.is_file() else None

    @property
    def stored(self) -> "Folder":
        """Return itself: nothing is encrypted here."""
        return self
