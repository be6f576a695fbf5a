"""`intersession restore`: a copy of a log in the place of it, with what that loses and does again."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from intersession.cli.changes.copies import PUBLISHED, TRUST, published_lines, refused, verified
from intersession.cli.host.reading import folding, reader_of, store_url
from intersession.cli.shell.answer import COMMON, Answer, Common, Reading
from intersession.cli.shell.terminal import Screen, safe
from intersession_events.basics.errors import BackupFailed, LogError, LogRewritten
from intersession_events.basics.machine import sync
from intersession_events.basics.plain_json import JsonObject
from intersession_events.copies.migrating import migrate
from intersession_events.facts import Erased
from intersession_events.facts.reasons import counted
from intersession_events.proofs.signatures import trusted_keys
from intersession_events.stores.backup import back_up
from intersession_events.stores.files.folder import folder_of
from intersession_events.stores.keys.opening import check_keys
from intersession_events.stores.keys.records import KeyFile, file_of
from intersession_events.stores.opened import Located, located, open_log, writer_of
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.basics.row_prefilter import prefiltered
from intersession_projections.basics.spans import Span
from intersession_projections.views.flows.rows import DeliveriesWanted
from intersession_projections.views.inline_views import inline_views


def restore(
    copy: Annotated[Path, Parameter(name="COPY", help="A copy that `intersession backup` made.")],
    /,
    *,
    aside: Annotated[
        bool,
        Parameter(
            help="Move a log that is in the place of --store aside, to NAME.aside, with its companions.",
            negative=(),
        ),
    ] = False,
    published: PUBLISHED = None,
    trust: TRUST = None,
    common: Common = COMMON,
) -> Answer:
    """Put a copy in the place of a log.

    The copy is verified, against checkpoints that were published if they are given; nothing is overwritten. --store may be
    another store: a copy in a file becomes a log on PostgreSQL. It says what is lost, as far as published checkpoints or the
    log aside tell, which erasures are not in the copy, and what the next host does again: runs that are open there are made
    again, and texts may go out again. Exit code 4 if the copy is not as it was written; nothing is restored then.
    """
    lines, keys = published_lines(published), trusted_keys(trust or ())
    where = located(store_url(common))
    with SqliteLog(copy, read_only=True) as there:
        log_id, head = there.log_id, there.head()
        check_keys(there, KeyFile(file_of(where.place)))
    later = [one.position for one in lines if one.log_id == log_id and one.position > head]
    known = [one for one in lines if one.position <= head or one.log_id != log_id]
    report = verified(copy, known, keys)
    if not report.ok:
        error = LogRewritten(
            f"{copy} is not as it was written: {report.found}; `intersession verify` says more"
        )
        return refused("NOT restored: ", error, {"copy": str(copy)})
    if where.is_file and os.path.lexists(where.place) and not aside:
        raise BackupFailed(
            f"{where.shown} is there already: --aside moves it away, or name another place with --store"
        )
    moved = _moved_aside(where) if aside and where.is_file else None
    try:
        _put(copy, where)
    except BaseException:
        if moved is not None:
            _moved_back(moved, where)
        raise
    # Views come along as they lie in the copy, unproven: they are made of its events here.
    views = inline_views()
    with folding() as on_folding, open_log(where.url, inline=views, on_folding=on_folding) as log:
        if left := [view.name for view in views if view.name not in log.built]:
            with Screen().progress("Building the views") as progress:
                log.rebuild(*left, progress=progress)
        log.states.drop()
    lost = _lost(head, later, moved)
    with reader_of(Reading(store=where.url)) as reader:
        again = {
            "runs": [run.run_id for run in reader.runs.open_runs()],
            "deliveries": [
                row.delivery_id
                for row in reader.flows.deliveries(DeliveriesWanted(pending=True), _MOST_AGAIN)
            ],
        }
    value: JsonObject = {
        "ok": True,
        "copy": str(copy),
        "store": where.shown,
        "logId": log_id,
        "position": head,
        "aside": None if moved is None else str(moved),
        "lost": lost,
        "again": again,
        "unproven": list(report.unproven),
    }
    return Answer(value, lambda screen: _show_restored(screen, value))


_MOST_AGAIN: Final = 1_000


def _put(copy: Path, where: Located) -> None:
    if where.is_file:
        with SqliteLog(copy, read_only=True) as there, Screen().progress("Copying") as progress:
            back_up(there, where.place, copying=progress)
        return
    # What moves a log takes it as its writer does, and the copy stays as it is.
    with tempfile.TemporaryDirectory(prefix="intersession-restore-", dir=copy.absolute().parent) as room:
        taken = Path(room) / "log.db"
        with SqliteLog(copy, read_only=True) as there:
            back_up(there, taken)
        if (keys := file_of(where.place)).exists():  # where they were to be put before
            file_of(str(taken)).symlink_to(keys)
        with Screen().progress("Copying") as progress:
            migrate(
                str(taken),
                where.url,
                progress=lambda what, done, of: progress(done, of) if what == "copying" else None,
            )


def _moved_aside(where: Located) -> Path | None:
    """Give the log that is there another name, with its companions; None if there is none.

    Raises:
        BackupFailed: a process writes to it, or something has that name.
    """
    log = Path(where.place)
    target = log.with_name(f"{log.name}.aside")
    if os.path.lexists(log):
        if writer_of(where) is not None:
            raise BackupFailed(f"a process writes to {log}: stop it first")
        for suffix in ("", *_BESIDE):
            if os.path.lexists(there := target.with_name(f"{target.name}{suffix}")):
                raise BackupFailed(f"{there} is there already, from an earlier restore: move it away")
    elif not os.path.lexists(target):
        return None
    elif folder_of(str(target)).exists():
        # The copy's files, which an attempt has put here before its log, and was killed.
        shutil.rmtree(folder_of(str(log)), ignore_errors=True)
    # The log first: one that is still there without its -wal would be opened without its last events. After a kill the
    # next attempt moves what is left.
    _rename(log, target, ("", *_BESIDE))
    sync(log.parent)
    return target


def _moved_back(aside: Path, where: Located) -> None:
    # The log last, for the same reason.
    _rename(aside, Path(where.place), (*_BESIDE, ""))


def _rename(log: Path, target: Path, suffixes: Sequence[str]) -> None:
    for suffix in suffixes:
        beside, there = (path.with_name(f"{path.name}{suffix}") for path in (log, target))
        if os.path.lexists(beside) and not os.path.lexists(there):
            beside.rename(there)


_BESIDE: Final = ("-wal", "-shm", ".views", ".files")


def _lost(head: int, later: Sequence[int], aside: Path | None) -> JsonObject:
    """Return what the restored log does not have, as far as anything tells."""
    found: JsonObject = {"publishedUpTo": max(later, default=None), "asideUpTo": None, "erasures": []}
    if aside is None:
        return found
    try:
        with open_log(str(aside), read_only=True) as log:
            found["asideUpTo"] = log.head()
            found["erasures"] = [
                {
                    "position": recorded.position,
                    "stream": recorded.event.stream,
                    "reason": recorded.event.reason,
                }
                for recorded in prefiltered(log, Span(after=head), lambda row: row[3].startswith("erased."))
                if isinstance(recorded.event, Erased)
            ]
    except LogError as error:
        found["aside"] = f"it can't be read: {error}"
    return found


def _show_restored(screen: Screen, value: JsonObject) -> None:
    screen.line(
        safe("restored: ", "bold green"), f"up to position {value['position']}, verified, in {value['store']}"
    )
    if value["aside"] is not None:
        screen.line(f"  the log that was there is {value['aside']} now")
    lost, again = value["lost"], value["again"]
    ends = [end for end in (lost["publishedUpTo"], lost["asideUpTo"]) if end is not None]
    if ends and max(ends) > value["position"]:
        screen.line(safe("  lost: ", "bold yellow"), f"positions {value['position'] + 1} to {max(ends)}")
    if streams := [erased["stream"] for erased in lost["erasures"]]:
        sessions = [one.removeprefix("session:") for one in streams if one.startswith("session:")]
        screen.line(
            safe("  not erased in it: ", "bold yellow"),
            f"{counted(len(streams), 'stream')} of which the log aside says so; erase again: {', '.join(sessions)}",
        )
    if again["runs"] or again["deliveries"]:
        screen.line(
            safe("  again: ", "bold yellow"),
            f"the next host makes {counted(len(again['runs']), 'run')} again, and "
            f"{counted(len(again['deliveries']), 'text')} may go out again; `intersession runs --open` and `deliveries --pending` list them",
        )
    screen.dim("`intersession verify` says what that does not prove; start the host to go on from there")
