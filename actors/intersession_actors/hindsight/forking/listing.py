"""The forks of a log: all of them, those of a run, or the named one (FORK-9)."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from intersession_actors.hindsight.forking.describing import describe_edits
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.errors import LogError, NotALog
from intersession_events.basics.plain_json import JsonObject
from intersession_events.copies.forks.files import databases_beside, forks_called, is_itself
from intersession_events.stores.database import MEMORY
from intersession_events.stores.opened import open_log
from intersession_projections.copies.forks.summary import ForkSummary, fork_summary


class Listed(NamedTuple):
    """Forks, oldest first, and the unreadable files beside them."""

    forks: list[ForkSummary]
    unread: list[tuple[Path, LogError]]

    def as_json(self) -> JsonObject:
        """Return them for programs: `{forks, unread}`."""
        rows: list[JsonObject] = [
            {**msgspec.to_builtins(told), "edits": describe_edits(told.edits)} for told in self.forks
        ]
        unread = [{"id": file.stem, "problem": str(error)} for file, error in self.unread]
        return {"forks": rows, "unread": unread}


def forks_of(path: str, run: str | None = None) -> Listed:
    """Return the forks of a log by its path; with a `run`, by its flow's id, only those of it."""
    listed = Listed([], [])
    files = databases_beside(path) if path != MEMORY else []
    for file in files:
        try:
            with open_log(str(file), read_only=True) as log:
                told = fork_summary(log) if is_itself(log, file) else None
                log_id = log.log_id
            if told is None and log_id not in {one.stem for one in files}:
                raise NotALog(f"{file} holds the log {log_id}: give the file that name again")
        except LogError as error:
            listed.unread.append((file, error))
            continue
        if told is not None and run in {None, told.run, told.outcome.run}:
            listed.forks.append(told)
    listed.forks.sort(key=lambda told: (told.time_ms, told.id))
    return listed


def only_fork(path: str, name: str) -> Path:
    """Return the file of the one fork whose id begins so.

    Raises:
        ToolRefused: there is none, or there are several.
    """
    found = forks_called(path, name) if path != MEMORY else []
    if not found:
        raise ToolRefused(
            "invalid_request", f"fork: no fork is called {name[:64]!a}, list the forks to see what there is"
        )
    if len(found) > 1:
        ids = ", ".join(file.stem for file in found)
        raise ToolRefused("invalid_request", f"fork: several have ids that begin with {name[:64]!a}: {ids}")
    return found[0]
