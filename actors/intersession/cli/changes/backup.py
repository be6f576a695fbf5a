"""`intersession backup`: a copy of the log, made while it is in use, and verified."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from intersession.cli.host import reading_log
from intersession.cli.shell import COMMON, Answer, Common, Screen, safe
from intersession_events.plain_json import JsonObject
from intersession_events.stores import back_up
from intersession_projections.wording import counted

_MIB = 1024 * 1024


def backup(
    file: Annotated[Path, Parameter(help="Where to: a file that is not there yet.")],
    /,
    *,
    common: Common = COMMON,
) -> Answer:
    """Copy a log to a file, also while it is in use.

    The copy holds all events up to a moment, as they are. It is verified, and has its name only when it is whole; nothing is
    overwritten. It can be put in the place of the log, and then goes on from there.
    """
    with reading_log(common) as log:
        screen = Screen()
        with screen.progress("Copying") as copying, screen.progress("Verifying") as verifying:
            report = back_up(log, file, copying=copying, verifying=verifying)
        size = file.stat().st_size
        value: JsonObject = {
            "ok": True,
            "store": log.path,
            "file": str(file),
            "logId": log.log_id,
            "position": report.head.position,
            "events": report.events,
            "bytes": size,
        }

    def show(on: Screen) -> None:
        events = f"{counted(report.events, 'event')} up to position {report.head.position}"
        on.line(safe("backed up: ", "bold green"), f"{events}, {size / _MIB:.1f} MiB, verified, in {file}")

    return Answer(value, show)
