"""`intersession export`: writes sessions of a log as another system keeps them."""

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from intersession.cli.host import reader_of
from intersession.cli.shell import READING, Answer, AsOf, Reading, Screen, place, safe
from intersession_actors.system import export_state
from intersession_events.plain_json import JsonObject
from intersession_projections.openclaw_state import ExportReport
from intersession_projections.timeline import counted

exporting = App(name="export", help="Write sessions of a log as another system keeps them.")


@exporting.command
def openclaw(
    directory: Annotated[Path, Parameter(help="Where to: a directory that is empty or not there.")],
    /,
    *,
    session: Annotated[
        tuple[str, ...],
        Parameter(
            help="Only this session, by its key in any form or a session id; may be given several times."
        ),
    ] = (),
    as_of: AsOf = None,
    reading: Reading = READING,
) -> Answer:
    """Write an OpenClaw state directory, which OpenClaw lists and goes on with, and which `import` reads back.

    Texts are written as they are in the log, uncut and with whatever they hold; only you can read the files.
    """
    screen = Screen()
    with reader_of(reading) as reader, screen.progress(f"Exporting to {directory}") as progress:
        report = export_state(reader, directory, as_of=place(as_of), sessions=session, progress=progress)
    value: JsonObject = msgspec.to_builtins(report)
    return Answer(value, lambda on: _show(on, report))


def _show(screen: Screen, report: ExportReport) -> None:
    screen.line(safe(f"Exported to {report.directory}", "bold"))
    listed = f"{counted(report.sessions, 'session')} of {counted(report.agents, 'agent')}"
    archived = f", {report.archived} archived" if report.archived else ""
    screen.line(f"  {listed}{archived}, {counted(report.spawns, 'sub-agent')}")
    others = f", {counted(report.lines, 'other line')}" if report.lines else ""
    files = counted(report.transcripts, "transcript")
    screen.line(f"  {counted(report.messages, 'message')}{others} in {files}")
    screen.line(safe(f"  as of position {report.position}", "dim"))
