"""Forks: a part of a log, as it stood at a place, copied into a file that is a log of its own and can be proven."""

from intersession_events.forks.files import (
    databases_beside,
    directory_of,
    forks_beside,
    forks_called,
    is_itself,
    lies_with_forks,
    remove_fork,
)
from intersession_events.forks.forking import Fork, ForkWanted, fork_log

__all__ = [
    "Fork",
    "ForkWanted",
    "databases_beside",
    "directory_of",
    "fork_log",
    "forks_beside",
    "forks_called",
    "is_itself",
    "lies_with_forks",
    "remove_fork",
]
