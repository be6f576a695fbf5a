"""Stores the contents of files before the event that names them, and takes those away that no event came to name (FILE-1)."""

from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager

from intersession_actors.outside.attachments.message_files import MessageFile, check_files
from intersession_actors.rules.config.host import Files
from intersession_actors.rules.errors import ToolRefused
from intersession_events.facts import FileBlock
from intersession_events.log.files import HasRows, named_files
from intersession_events.log.log import ReadsEvents


@contextmanager
def storing(log: ReadsEvents, files: Sequence[MessageFile]) -> Generator[Sequence[FileBlock]]:
    """Store files for a block that records what names them.

    Raises:
        StoreUnavailable: they can't be stored.
    """
    if not files:
        yield ()
        return
    store, since = log.files, log.head()
    stored: list[str] = []
    try:
        stored += (store.write(file.content, since=since) for file in files)
        yield [file.block for file in files]
    except ToolRefused as refused:
        if refused.code != "unavailable":  # else it may be recorded yet: the next start looks
            store.drop(stored)
        raise
    store.keep(stored)


def store_reply_files(log: ReadsEvents, rules: Files, given: object) -> Sequence[FileBlock]:
    """Store the files of an agent's answer; `keep_files` follows once it is on record, else the next start removes them.

    Raises:
        ToolRefused: one can't be taken.
        StoreUnavailable: they can't be stored.
    """
    files, since = check_files(given, rules), log.head()
    for file in files:
        log.files.write(file.content, since=since)
    return [file.block for file in files]


def keep_files(log: ReadsEvents, files: Sequence[FileBlock]) -> None:
    """Note that an event on record names files."""
    log.files.keep(file.sha256 for file in files)


def named_in(log: HasRows, contents: Collection[str], since: int) -> Collection[str]:
    """Return which contents events of a log name, behind a position."""
    wanted, found = {*contents}, set[str]()
    for named in named_files(log, after=since):
        if named.file.sha256 in wanted:
            found.add(named.file.sha256)
            if found == wanted:
                break
    return found
