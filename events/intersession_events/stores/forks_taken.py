"""Takes the forks of a log along to where it was moved: each is a log in a file, and is found beside the log that it is of."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from intersession_events.errors import BackupFailed, LogError
from intersession_events.forks import directory_of, forks_beside, lies_with_forks
from intersession_events.stores.backup import back_up
from intersession_events.stores.opened import located
from intersession_events.stores.sqlite import MEMORY, SqliteLog

_NONE: Final[Mapping[str, str]] = {}


class Taken(NamedTuple):
    """What became of the forks of a log."""

    forks: int = 0
    """So many more lie beside the new one."""
    left: Mapping[str, str] = _NONE
    """The files of those that could not be copied, and why; they are where they were."""


def take_forks(source: str, target: str) -> Taken:
    """Copy the forks of a log to where those of another one lie, each verified; what is there already stays as it is.

    The logs are named by their URLs. A fork that is moved itself leaves the others: they are of the log that it was made of.
    """
    origin, place = located(source).place, located(target).place
    if MEMORY in {origin, place} or lies_with_forks(origin) or lies_with_forks(place):
        return Taken()
    directory = directory_of(place)
    missing = [file for file in forks_beside(origin) if not (directory / file.name).exists()]
    left: dict[str, str] = {}
    for file in missing:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            with SqliteLog(file, read_only=True) as fork:
                back_up(fork, directory / file.name)
        except (BackupFailed, LogError, OSError) as error:
            left[str(file)] = str(error)
    return Taken(len(missing) - len(left), left)
