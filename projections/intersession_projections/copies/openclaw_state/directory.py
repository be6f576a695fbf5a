"""A directory that is being written, readable by its owner alone: everything in it is new, and no link is followed."""

import os
import shutil
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from intersession_events.basics.errors import ExportFailed

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class NewDirectory:
    """An empty or new directory, and the files and folders that are made in it."""

    def __init__(self, path: Path, root: int) -> None:
        self.path = path
        self._root = root
        self._folders: dict[tuple[str, ...], int] = {}

    @contextmanager
    def file(self, *names: str) -> Generator[BinaryIO]:
        """Make a file, by the names of the folders on the way to it and its own.

        Raises:
            OSError: it is there already, or can't be written.
        """
        folder = self._folder(names[:-1])
        with os.fdopen(os.open(names[-1], _NEW, 0o600, dir_fd=folder), "wb") as file:
            yield file

    def close(self) -> None:
        """Give up all folders."""
        for descriptor in self._folders.values():
            os.close(descriptor)
        os.close(self._root)

    def _folder(self, names: tuple[str, ...]) -> int:
        if not names:
            return self._root
        if names not in self._folders:
            above = self._folder(names[:-1])
            os.mkdir(names[-1], 0o700, dir_fd=above)
            self._folders[names] = os.open(names[-1], _FOLDER, dir_fd=above)
        return self._folders[names]


@contextmanager
def new_directory(path: Path) -> Generator[NewDirectory]:
    """Make a directory, or take an empty one, to write into; its final mode is restored at the end of the block.

    Raises:
        ExportFailed: it is not empty, no directory, a link, or can't be made or written.
    """
    is_new = not os.path.exists(path)  # noqa: PTH110 - unlike a path's own, it raises nothing
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        real = path.resolve(strict=True)
        str(real).encode()
        root = os.open(path, _FOLDER)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ExportFailed(
            f"{path} can't be exported to ({reason}); name a directory that is empty or not there, and no link"
        ) from error
    made = NewDirectory(real, root)
    try:
        if os.listdir(root):  # noqa: PTH208 - of what was opened, not of what has the name now
            raise ExportFailed(f"{path} is not empty; name a directory that is empty or not there")
        try:
            yield made
        except OSError:
            raise  # a disk that is full is looked at as it is
        except BaseException:
            _clear(root)
            if is_new:
                with suppress(OSError):
                    path.rmdir()
            raise
    except OSError as error:
        raise ExportFailed(
            f"{path} can't be written ({error.strerror or error}); it holds a part of the export, take it away"
        ) from error
    finally:
        made.close()


def _clear(root: int) -> None:
    """Remove what was made, so that the export can be repeated."""
    for name in os.listdir(root):
        if stat.S_ISDIR(os.stat(name, dir_fd=root, follow_symlinks=False).st_mode):
            shutil.rmtree(name, ignore_errors=True, dir_fd=root)
        else:
            os.unlink(name, dir_fd=root)
