"""Deletes a fork, with all that was kept beside its file (FORK-9)."""

import shutil
from pathlib import Path

from intersession_events.errors import ForkFailed, StoreLocked
from intersession_events.forks import forks_beside
from intersession_events.stores.sqlite import writer_of


def remove_fork(file: Path) -> None:
    """Delete a fork: its file, and whatever lies beside it under its name (views, transcripts, attachments).

    Raises:
        ForkFailed: it is no fork, so nothing is deleted, or it can't be deleted.
        StoreLocked: a process writes to it.
    """
    if file not in forks_beside(str(file)):
        raise ForkFailed(f"{file} is no fork, so it was not deleted")
    writer = writer_of(str(file))
    if writer is not None:
        raise StoreLocked(str(file), str(writer))
    try:
        file.unlink()
        for left in file.parent.glob(f"{file.name}[.-]*"):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
            else:
                left.unlink()
    except OSError as error:
        raise ForkFailed(f"{file} can't be deleted whole: {error}") from error
