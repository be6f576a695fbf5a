"""Where forks lie: `<store>.forks/<id>.db`, all that come from one log together, forks of forks among them (FORK-9)."""

import re
import shutil
from pathlib import Path
from typing import Final

from intersession_events.basics.errors import ForkFailed, StoreLocked
from intersession_events.basics.machine import on_disk
from intersession_events.log.log import Log
from intersession_events.stores.opened import located, writer_of

FEWEST: Final = 4
"""How many characters of an id are enough, if no other id begins with them."""

_SUFFIX: Final = ".forks"
_NAME: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.db")


def directory_of(path: str) -> Path:
    """Return where the forks of a log lie, by the log's path; those of a fork beside it."""
    store = Path(path)
    return store.parent if lies_with_forks(path) else store.with_name(f"{store.name}{_SUFFIX}")


def lies_with_forks(path: str) -> bool:
    """Whether a path is one of a fork beside its log: in the folder, and with the name, of a fork."""
    store = Path(path)
    return store.parent.name.endswith(_SUFFIX) and _NAME.fullmatch(store.name) is not None


def fork_path(directory: Path, fork_id: str) -> Path:
    """Return where a fork lies."""
    return directory / f"{fork_id}.db"


def forks_beside(path: str) -> list[Path]:
    """Return the files of all forks that come from a log, by the log's path.

    Raises:
        StoreUnavailable: their folder can't be read.
    """
    return [file for file in databases_beside(path) if _NAME.fullmatch(file.name)]


def databases_beside(path: str) -> list[Path]:
    """Return the databases in the folder of a log's forks: forks, and files that are not named like one.

    Raises:
        StoreUnavailable: their folder can't be read.
    """
    directory = directory_of(path)
    with on_disk(directory):
        if not directory.is_dir():
            return []
        return sorted(file for file in directory.iterdir() if file.suffix == ".db")


def is_itself(log: Log, file: Path) -> bool:
    """Whether a fork's file is named after its own id; a file named after another id is a copy of the same fork."""
    return log.log_id == file.stem


def forks_called(path: str, name: str) -> list[Path]:
    """Return the files of the forks of a log whose ids are a text, or begin with it."""
    typed = name.strip().lower()
    if len(typed) < FEWEST:
        return []
    return [file for file in forks_beside(path) if file.stem.startswith(typed)]


def remove_fork(file: Path) -> None:
    """Delete a fork: its file, and whatever lies beside it under its name (views, transcripts, attachments).

    Raises:
        ForkFailed: it is no fork, so nothing is deleted, or it can't be deleted.
        StoreLocked: a process writes to it.
    """
    if file not in forks_beside(str(file)):
        raise ForkFailed(f"{file} is no fork, so it was not deleted")
    writer = writer_of(located(str(file)))
    if writer is not None:
        raise StoreLocked(str(file), str(writer))
    try:
        # The fork's file last: what lies beside it is found by it, and whoever was killed deletes it once more.
        for left in (*file.parent.glob(f"{file.name}[.-]*"), file):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
            else:
                left.unlink()
    except OSError as error:
        raise ForkFailed(f"{file} can't be deleted whole: {error}") from error
