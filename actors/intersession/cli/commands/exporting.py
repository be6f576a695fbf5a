"""`intersession export` and `export openclaw`: a log in forms that other tools and systems read."""

from pathlib import Path

import msgspec
from cyclopts import App

from intersession.cli.host.bundles import value_of
from intersession.cli.host.reading import reader_of
from intersession.cli.shell.answer import READING, Answer, AsOf, Reading, Since, Until
from intersession.cli.shell.terminal import Screen, safe
from intersession_actors.assembly.system.state_export import export_state
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.hindsight.exporting.export import ExportMade, ExportTo, ExportWanted, export
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts.reasons import counted
from intersession_projections.copies.openclaw_state.exporting import ExportReport

exporting = App(name="export", help="Write a log in a form that other tools read.")


@exporting.default
def export_out(
    out: Path,
    /,
    *,
    to: ExportTo,
    run: str | None = None,
    session: str | None = None,
    since: Since = None,
    until: Until = None,
    at: AsOf = None,
    raw: bool = False,
    reading: Reading = READING,
) -> Answer:
    """Write a log, or a part of it, in a form that other tools read.

    otlp: spans of runs, tool calls, exchanges, spawns and deliveries, for a collector of OpenTelemetry. cloudevents: each event.
    openai, responses, anthropic: what a session was told and has said, as the body of a request. parquet: tables, for DuckDB and
    others. `export openclaw` writes a state directory.

    Args:
        out: The file, for parquet the directory, which must not exist. Only you can read it.
        to: The form.
        run: Only an exchange, a spawn or a run, with the sessions that take part.
        session: Only a session, its flows and deliveries.
        raw: Do not hide secrets.
    """
    wanted = ExportWanted(to=to, run=run, session=session, since=since, until=until, at=at, raw=raw)
    screen = Screen()
    with reader_of(reading) as reader, screen.progress(f"Exporting to {out}") as progress:
        made = export(View(reader), wanted, out, progress=progress)
    return Answer(value_of(made), lambda on: _show_made(on, made))


def _show_made(screen: Screen, made: ExportMade) -> None:
    told = ", ".join(f"{count} {name}" for name, count in made.counts.items())
    screen.line(safe(f"Exported to {made.path}", "bold"))
    screen.line(f"  {told}")
    screen.dim(f"  as of position {made.position}")


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
