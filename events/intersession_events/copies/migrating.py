"""Moves a log to another store: the same events at the same positions, with their hashes, ids, epochs, checkpoints and proofs."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from hashlib import sha256
from typing import Final, Literal, NamedTuple

from intersession_events.basics.crash_points import crash_point
from intersession_events.basics.errors import (
    BackupFailed,
    BadKey,
    CorruptEvent,
    LogError,
    MigrationFailed,
    UnknownTopic,
)
from intersession_events.copies.forks.files import directory_of, forks_beside, lies_with_forks
from intersession_events.log.files import named_files
from intersession_events.log.row_state import hash_in
from intersession_events.log.verifying.report import LogHead
from intersession_events.log.verifying.verification import verify_log
from intersession_events.proofs.statement import line_of
from intersession_events.stores.backup import back_up
from intersession_events.stores.database import MEMORY
from intersession_events.stores.keys.records import KeyFile, file_of
from intersession_events.stores.opened import filling_at, located, open_log
from intersession_events.stores.portable.filling import Filling, Moved
from intersession_events.stores.portable.log import PortableLog

PAGE: Final = 1000
"""The number of rows that are moved at a time."""

Progress = Callable[[Literal["verifying", "copying", "comparing"], int, int], None]
"""What is done, up to which position, of which last one."""


_NONE: Final[Mapping[str, str]] = {}


class Taken(NamedTuple):
    """The outcome of the migration for the forks of a log."""

    forks: int = 0
    """The number of forks beside the new log."""
    left: Mapping[str, str] = _NONE
    """The files of those that could not be copied, and why; they are where they were."""


class Migrated(NamedTuple):
    """A log after its migration to another store."""

    source: str
    target: str
    """Where it was and is, without passwords."""
    events: int
    resumed_at: int
    """The last position that an earlier attempt had moved already; 0 if there was none."""
    head: LogHead
    """What both logs are up to the last position (`verify --expect-head`)."""
    files: int = 0
    """How many contents of files lie beside the new log, or in it (FILE-7)."""
    taken: Taken = Taken()
    """What became of the forks that lie beside the source."""


def migrate(source: str, target: str, *, progress: Progress | None = None) -> Migrated:
    """Move a log from one store to another, SQLite or PostgreSQL, and return what is there then.

    The source is taken as its writer takes it, so nobody else writes meanwhile; it stays as it is, but for an epoch that has
    begun. Rows go over in pages, each durable at once, and the target can be opened only after all rows were compared and
    proven: who is killed, at whatever point, runs it again, and it goes on. Run once more after that, it compares.

    Contents of files follow, and forks are copied and verified as soon as the target is whole: they lie beside it then as they lie beside the source. Views,
    snapshots and what follows a log in its own time are not moved: they are made from the events when the target is opened
    for writing.

    Raises:
        MigrationFailed: the target holds something else, can't be written, or can't hold what the source holds; or the source
            is not as it was written.
        StoreLocked: a process writes to the source.
        NoSuchStore: there is no source, or a URL does not name a store.
        LogError: the source or the target can't be reached, or read.
    """
    moved = _migrated(source, target, progress or _tell_nobody)
    return moved._replace(files=_take_files(source, target), taken=_take_forks(source, target))


def _migrated(source: str, target: str, told: Progress) -> Migrated:
    with ExitStack() as opened:
        place = filling_at(target)
        opened.callback(place.close)
        there = place.whole()
        if there is None:
            log = opened.enter_context(_taken(source))
        else:
            before = _epoch_in(opened.enter_context(there))
            log = opened.enter_context(_taken(source))
            if before < _epoch_in(there) == log.epoch:
                raise MigrationFailed(f"{there.path} is the log itself: name another place to move it to")
            return _moved_before(log, there, told)
        # Both have the same rows at the end, so one of them is verified: what lies in a file is looked at without a network.
        is_verified = located(source).is_file or not located(target).is_file
        if is_verified:
            _check(log, "verifying", told)
        moved = _known_of(log)
        resumed_at = _copy(log, place, moved, told)
        with place.reading() as copied:
            head, events = _compared(log, copied, told)
            if not is_verified:
                _check(copied, "comparing", told)
        crash_point("M2")
        place.finish()
        crash_point("M3")
        return Migrated(log.path, place.shown, events, resumed_at, head)


def _epoch_in(log: PortableLog) -> int:
    ((epoch,),) = log.query("SELECT epoch FROM log_identity")
    found: int = epoch
    return found


def _tell_nobody(_what: Literal["verifying", "copying", "comparing"], _done: int, _of: int) -> None:
    pass


def _taken(url: str) -> PortableLog:
    """Open a log that is there as its one writer, without its views."""
    open_log(url, read_only=True).close()
    return open_log(url)


def _known_of(log: PortableLog) -> Moved:
    ((created_ms,),) = log.query("SELECT created_ms FROM log_identity")
    return Moved(
        log_id=log.log_id,
        epoch=log.epoch,
        created_ms=created_ms,
        given=log.positions_given(),
        topics=[topic for (topic,) in log.query("SELECT topic FROM log_topics")],
        keys=log.keys,
    )


def _copy(log: PortableLog, place: Filling, moved: Moved, told: Progress) -> int:
    """Copy all rows to the target, and return the position up to which it had them before."""
    reached = place.begin(moved)
    if reached:
        with place.reading() as begun:
            same = _same_up_to(log, begun)
        # The source has changed since: words were erased, say.
        if same < reached:
            place.cut(same)
    else:
        same = 0
    after = same
    while rows := log.rows(after=after, limit=PAGE):
        place.put(rows, after=after)
        after = rows[-1][0]
        told("copying", after, moved.given)
        crash_point("M1")
    return same


def _same_up_to(log: PortableLog, begun: PortableLog) -> int:
    """Return the last position up to which two logs have the same rows."""
    after = 0
    while rows := begun.rows(after=after, limit=PAGE):
        for theirs, ours in zip(rows, log.rows(after=after, limit=PAGE), strict=False):
            if theirs != ours:
                return after
            after = theirs[0]
        if after != rows[-1][0]:
            break
    return after


def _compared(log: PortableLog, copied: PortableLog, told: Progress) -> tuple[LogHead, int]:
    """Compare all of two logs, hash each row again, and return their head and how many events there are.

    Raises:
        MigrationFailed: they are not the same, or not as they were written.
    """
    lines, events, after = sha256(), 0, 0
    given = log.positions_given()
    while True:
        rows, copies = (one.rows(after=after, limit=PAGE) for one in (log, copied))
        if rows != copies:
            differs = next(
                (a[0] for a, b in zip(rows, copies, strict=False) if a != b),
                after + min(len(rows), len(copies)) + 1,
            )
            raise MigrationFailed(f"{copied.path} is not what {log.path} is, from position {differs} on")
        if not rows:
            break
        for row in copies:
            try:
                copied.proven(row)
            except (CorruptEvent, UnknownTopic) as error:
                raise MigrationFailed(
                    f"the log is not as it was written: position {row[0]}: {error}"
                ) from error
            lines.update(line_of(row[0], hash_in(row[4], where=f"position {row[0]}")))
        events, after = events + len(rows), rows[-1][0]
        told("comparing", after, given)
    if (log.log_id, given) != (copied.log_id, copied.positions_given()):
        raise MigrationFailed(f"{copied.path} is not what {log.path} is: another id, or positions were given")
    return LogHead(log_id=log.log_id, position=after, hash=lines.hexdigest()), events


def _check(log: PortableLog, what: Literal["verifying", "comparing"], told: Progress) -> None:
    """Verify a log: its hashes, chains, positions and checkpoints.

    Raises:
        MigrationFailed: it is not as it was written.
    """
    report = verify_log(log, progress=partial(told, what))
    if not report.ok:
        raise MigrationFailed(
            f"{log.path} is not as it was written, so it is not moved: {report.found}; `intersession verify` says more"
        )


def _moved_before(log: PortableLog, there: PortableLog, told: Progress) -> Migrated:
    """Return the result of an earlier attempt that ended without reporting it.

    Raises:
        MigrationFailed: the target holds another log, or one that has gone on.
    """
    if (there.log_id, there.head()) != (log.log_id, log.head()):
        raise MigrationFailed(
            f"{there.path} holds the log {there.log_id} up to position {there.head()}, and {log.path} is the log "
            f"{log.log_id} up to position {log.head()}: nothing is overwritten, name another target"
        )
    head, events = _compared(log, there, told)
    return Migrated(log.path, there.path, events, head.position, head)


def _take_files(source: str, target: str) -> int:
    """Copy the contents of files that events name; existing ones stay as they are."""
    with open_log(source, read_only=True) as log:
        wanted = {named.file.sha256 for named in named_files(log)}
        if not wanted:
            return 0
        with open_log(target) as other:
            return sum(other.files.take(sha256, log.files) for sha256 in sorted(wanted))


def _take_forks(source: str, target: str) -> Taken:
    """Copy the forks of a log to the place of the other's, each verified; existing ones stay as they are.

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
            with open_log(str(file), read_only=True) as fork:
                if fork.keys is not None:  # its rows are copied as they are
                    KeyFile(file_of(str(directory / file.name))).write(KeyFile(file_of(str(file))).load())
                back_up(fork, directory / file.name)
        except (BackupFailed, BadKey, LogError, OSError) as error:
            left[str(file)] = str(error)
    return Taken(len(missing) - len(left), left)
