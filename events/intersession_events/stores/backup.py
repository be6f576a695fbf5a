"""Copies a log to a file while it is in use: as of one moment, verified, and renamed to its name only when it is complete.

A log in a file is copied by SQLite's own backup, one on PostgreSQL by `pg_dump`.
"""

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from intersession_events.basics.crash_points import crash_point
from intersession_events.basics.errors import BackupFailed, LogError
from intersession_events.basics.machine import on_disk, random_id, sync
from intersession_events.basics.progress import Progress
from intersession_events.log.files import named_files
from intersession_events.log.verifying.report import VerifyReport
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.database import MEMORY, Row
from intersession_events.stores.files.folder import Folder, folder_of
from intersession_events.stores.portable.filling import Moved
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.sqlite.filling import FileFilling, files_there
from intersession_events.stores.sqlite.log import SqliteLog

if TYPE_CHECKING:
    from intersession_events.stores.postgres.log import PostgresLog

_PAGES: Final = 1024
"""How many pages are copied between two looks at the progress: 4 MiB."""


def back_up(
    log: PortableLog,
    target: str | os.PathLike[str],
    *,
    copying: Progress | None = None,
    verifying: Progress | None = None,
) -> VerifyReport:
    """Copy a log to a new file, and return the verification of the copy, which has no findings.

    The copy holds all events up to a moment, with their positions and hashes, and goes on from there when it is opened. It
    does not matter whether somebody writes to the log meanwhile. The files that it names are copied to `<target>.files`.
    It is made under another name in the target's directory,
    verified, synced, and only then given its name: what has the name is whole. `copying` gets pages done and all of them,
    `verifying` a position and the last one.

    A log on PostgreSQL is copied by `pg_dump`, in its custom format, and its rows are put into a log of their own beside it
    to be verified: that takes as much room once more, for as long as it lasts.

    Raises:
        BackupFailed: the target is there already, can't be written, or the copy is not what it should be.
        LogError: the log can't be read.
    """
    whole = Path(target).absolute()
    _refuse(whole)
    part = whole.with_name(f".{whole.name}.{random_id()[:8]}.part")
    try:
        if isinstance(log, SqliteLog):
            _copy(log, part, copying)
            _copy_files(log, part)
            report = _verified(part, verifying)
        else:
            report = _dumped(cast("PostgresLog", log), part, verifying)
        crash_point("B2")
        # Looked at once more: a rename would replace a file that came meanwhile without a word.
        _refuse(whole)
        # The copy is synced already. So a power cut leaves the name without a file, or with all of it.
        if folder_of(str(part)).exists():
            folder_of(str(part)).rename(folder_of(str(whole)))
        part.rename(whole)
        sync(whole.parent)
    except (OSError, sqlite3.Error) as error:
        raise BackupFailed(
            f"{whole} can't be written: {getattr(error, 'strerror', None) or error}"
        ) from error
    finally:
        for left in files_there(part):
            with suppress(OSError):  # what went wrong before is what is told
                left.unlink(missing_ok=True)
        shutil.rmtree(folder_of(str(part)), ignore_errors=True)
    return report


def _refuse(whole: Path) -> None:
    folder = folder_of(str(whole))
    for there in (*files_there(whole), *([folder] if os.path.lexists(folder) else [])):
        raise BackupFailed(f"{there} is there already, and nothing is overwritten: name a new file")
    if not os.path.isdir(whole.parent):  # noqa: PTH112 - unlike a path's own, it raises nothing
        raise BackupFailed(f"{whole.parent} is no directory, make it first")


def _copy(log: SqliteLog, part: Path, copying: Progress | None) -> None:
    with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)):
        if log.path != MEMORY:
            with on_disk(log.path):
                mode = stat.S_IMODE(Path(log.path).stat().st_mode)
            part.chmod(mode)
    # One snapshot for all of it: SQLite would begin again with each commit that comes between two steps.
    with log.snapshot() as source:
        source.execute("SELECT 1 FROM stored_events LIMIT 1").fetchone()
        try:
            with closing(sqlite3.connect(part)) as copy:
                source.backup(
                    copy,
                    pages=_PAGES,
                    progress=None if copying is None else lambda _, left, pages: copying(pages - left, pages),
                )
        except sqlite3.Error as error:
            raise BackupFailed(f"the copy can't be made in {part.parent}: {error}") from error
    with part.open("rb") as written:
        os.fsync(written.fileno())


def _copy_files(log: SqliteLog, part: Path) -> None:
    """Copy the contents of files as they are stored; of a fork also those that it has of its source."""
    folder = Folder(folder_of(str(part)))
    for name in log.files.stored_names():
        data = log.files.stored(name)
        if data is not None:
            folder.put(name, data)
    if log.lineage.forked is None:
        return
    with SqliteLog(part, read_only=True) as copy:
        for named in named_files(copy):
            copy.files.take(named.file.sha256, log.files)


def _verified(part: Path, verifying: Progress | None) -> VerifyReport:
    try:
        with SqliteLog(part, read_only=True) as copy:
            report = verify_log(copy, progress=verifying)
    except LogError as error:
        raise BackupFailed(f"the copy can't be read, so it was not kept: {error}") from error
    return _unharmed(report)


def _unharmed(report: VerifyReport) -> VerifyReport:
    if not report.ok:
        raise BackupFailed(
            f"the log is not as it was written, so no copy was kept: {report.found}; verify the log itself"
        )
    return report


_BESIDE: Final = ("log_identity", "log_head", "log_topics")
_ROWS: Final = 1000


def _dumped(log: "PostgresLog", part: Path, verifying: Progress | None) -> VerifyReport:
    """Dump a log, and verify the rows that the dump has: in a file of their own, which is deleted then."""
    # Loaded only where a log is on PostgreSQL.
    from intersession_events.stores.postgres.upkeep.dumping import dump, programs_for, rows_in  # noqa: PLC0415

    address = log.application.datastore.address
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    programs = programs_for(address)
    dump(address, programs, part)
    with (
        tempfile.TemporaryDirectory(prefix=f".{part.name}.", dir=part.parent) as room,
        closing(FileFilling(Path(room) / "log.db", anew=True)) as filling,
    ):
        moved = _known_of(list(rows_in(address, programs, part, _BESIDE)))
        filling.begin(moved)
        events = (_event(row) for _, row in rows_in(address, programs, part, ("stored_events",)))
        while rows := list(islice(events, _ROWS)):
            filling.put(rows, after=None)
        with filling.reading() as copied:
            return _unharmed(verify_log(copied, progress=verifying))


def _known_of(rows: Sequence[tuple[str, Mapping[str, str]]]) -> Moved:
    identity = next(row for table, row in rows if table == "log_identity")
    return Moved(
        log_id=identity["log_id"],
        epoch=int(identity["epoch"]),
        created_ms=int(identity["created_ms"]),
        given=next(int(row["position"]) for table, row in rows if table == "log_head"),
        topics=[row["topic"] for table, row in rows if table == "log_topics"],
    )


def _event(row: Mapping[str, str]) -> Row:
    state = bytes.fromhex(row["state"].removeprefix("\\x"))
    return (
        int(row["notification_id"]),
        row["originator_id"],
        int(row["originator_version"]),
        row["topic"],
        state,
    )
