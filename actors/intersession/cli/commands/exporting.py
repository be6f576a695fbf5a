"""`intersession export openclaw`: sessions of a log as another system keeps them."""

from pathlib import Path

import msgspec
from cyclopts import App

from intersession.cli.host.reading import reader_of
from intersession.cli.shell.answer import READING, Answer, AsOf, Reading
from intersession.cli.shell.terminal import Screen, safe
from intersession_actors.assembly.system.state_export import export_state
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts.reasons import counted
from intersession_projections.copies.openclaw_state.exporting import ExportReport

exporting = App(name="export", help="Write sessions of a log as another system keeps them.")


@exporting.command(name="openclaw")
def openclaw_out(
    directory: Path,
    /,
    *,
    session: tuple[str, ...] = (),
    as_of: AsOf = None,
    reading: Reading = READING,
) -> Answer:
    """Write an OpenClaw state directory, which OpenClaw lists and goes on with, and which `import` reads back.

    Texts are written as they are in the log, uncut and with whatever they hold; only you can read the files.

    Args:
        directory: Where to: a directory that is empty or not there.
        session: Only this session, by its key in any form or a session id; may be given several times.
    """
    screen = Screen()
    with reader_of(reading) as reader, screen.progress(f"Exporting to {directory}") as progress:
        report = export_state(reader, directory, as_of=as_of, sessions=session, progress=progress)
    value: JsonObject = msgspec.to_builtins(report)
    return Answer(value, lambda on: _show_export(on, report))


def _show_export(screen: Screen, report: ExportReport) -> None:
    screen.line(safe(f"Exported to {report.directory}", "bold"))
    listed = f"{counted(report.sessions, 'session')} of {counted(report.agents, 'agent')}"
    archived = f", {report.archived} archived" if report.archived else ""
    screen.line(f"  {listed}{archived}, {counted(report.spawns, 'sub-agent')}")
    others = f", {counted(report.lines, 'other line')}" if report.lines else ""
    files = counted(report.transcripts, "transcript")
    screen.line(f"  {counted(report.messages, 'message')}{others} in {files}")
    screen.dim(f"  as of position {report.position}")
