"""`intersession import openclaw`, `export openclaw` and `imports`: state directories in and out, and what imports left out."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import App, Parameter

from intersession.cli.host.beside import host_beside, import_beside
from intersession.cli.host.reading import reader_of, reading_log, store_url
from intersession.cli.host.verb_call import VerbCall, asks, at_most
from intersession.cli.shell.answer import READING, Answer, AsOf, Reading
from intersession.cli.shell.terminal import Screen, one_line, safe
from intersession.cli.shell.times import moment
from intersession_actors.assembly.system.state_export import export_state
from intersession_actors.hindsight.debugger.lists.imports import ImportsAnswer
from intersession_actors.hindsight.debugger.verbs.verbs import IMPORTS
from intersession_actors.owners.session.snapshots import take_snapshots
from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.disclosure.redaction import redact_raw
from intersession_actors.running.runtime.clock import SystemClock
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts.reasons import counted
from intersession_events.stores.opened import located, open_log
from intersession_events.transcripts.openclaw.importing import import_openclaw
from intersession_events.transcripts.openclaw.reading.files import read_state
from intersession_events.transcripts.openclaw.report import ImportReport
from intersession_projections.copies.openclaw_state.exporting import ExportReport
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.tailed_views import take_in

importing = App(name="import", help="Make a log of another system's transcripts.")
exporting = App(name="export", help="Write sessions of a log as another system keeps them.")

_MOST_LINES = 20


@importing.command(name="openclaw")
def openclaw_in(
    directory: Path,
    /,
    *,
    on_taken: Literal["beside", "refuse"] = "beside",
    reading: Reading = READING,
) -> Answer:
    """Import an OpenClaw state directory; again to add what is new in it.

    Nothing is lost without a line in the report, and the report is kept in the log. Where the log has a host, it
    imports, as long as it runs on this machine, and its sessions go on meanwhile.

    Args:
        directory: The state directory: the one with agents/<id>/sessions in it. It is only read.
        on_taken: What to do with a session whose key the log has from elsewhere: keep it beside, under a key of its own, or refuse the import. Default: beside.
    """
    screen = Screen()
    config = load_config(reading.config).config
    url = store_url(reading, config)
    store = located(url)
    path = store.shown
    with screen.progress(f"Importing {directory}") as progress:
        if (beside := host_beside(reading)) is not None:
            with beside, reading_log(reading, config=config) as log:
                report = import_beside(beside, log, directory, on_taken=on_taken, progress=progress)
        else:
            if not store.is_file or not Path(path).exists():
                read_state(directory)  # a wrong directory must not leave an empty log behind
            with open_log(url, inline=inline_views()) as log:
                appended = set[str]()
                report = import_openclaw(
                    directory,
                    log,
                    clock=SystemClock().now_ms,
                    progress=progress,
                    on_taken=on_taken,
                    appended=appended.update,
                )
                take_snapshots(log, appended)
                take_in(log, redact_raw)
    value: JsonObject = msgspec.to_builtins(report)
    return Answer(value | {"store": path}, lambda on: _show_import(on, report, path))


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


def _show_import(screen: Screen, report: ImportReport, path: str) -> None:
    screen.line(safe(f"Imported {report.source}", "bold"), safe(f"  into {path}", "dim"))
    if report.first_ms is not None and report.last_ms is not None:
        screen.dim(f"  from {moment(report.first_ms)} to {moment(report.last_ms)} UTC")
    rows = [
        (
            "sessions",
            report.sessions,
            "" if report.generations <= report.sessions else f"{report.generations} generations",
        ),
        (
            "messages",
            report.messages,
            f"{report.inter_session} between sessions, {report.attributed} of them attributed",
        ),
        (
            "exchanges",
            report.exchanges,
            f"{counted(report.turns, 'turn')}, {counted(report.announces, 'announce')}, {report.refused_sends} sends were refused",
        ),
        ("spawns", report.spawns, f"{report.refused_spawns} were refused"),
        (
            "other lines",
            sum(report.lines.values()),
            ", ".join(f"{count} {kind}" for kind, count in report.lines.items()),
        ),
        ("skipped lines", report.skipped_lines, ""),
        ("events", report.events, _appended(report)),
    ]
    screen.table(["what", "count", "of which"], [(what, str(count), more) for what, count, more in rows])
    _list(
        screen,
        "Under another key here",
        [f"{each.original} is {each.key}: {each.reason}" for each in report.renamed],
    )
    _list(
        screen,
        "Skipped",
        [
            f"{each.file}:{each.line}"
            + (f"-{each.last_line}" if each.last_line != each.line else "")
            + f": {each.reason}"
            + (" (kept as text)" if each.kept else "")
            for each in report.skipped
        ],
    )
    _list(
        screen,
        "Belongs to no exchange or spawn that could be found",
        [f"{each.where}: {each.what}: {each.reason}" for each in report.unattributed],
    )
    _list(screen, "Notes", [f"{each.subject}: {each.what}" for each in report.notes])


def _appended(report: ImportReport) -> str:
    if report.already_imported and report.appended == 0:
        return "all in the log already, nothing was added"
    return f"{report.appended} added"


def _list(screen: Screen, title: str, lines: list[str]) -> None:
    if not lines:
        return
    screen.line(safe(title, "bold"))
    for line in lines[:_MOST_LINES]:
        screen.indented(line, 2)
    if len(lines) > _MOST_LINES:
        screen.dim(f"  and {len(lines) - _MOST_LINES} more; --json has all of them")


def _show_export(screen: Screen, report: ExportReport) -> None:
    screen.line(safe(f"Exported to {report.directory}", "bold"))
    listed = f"{counted(report.sessions, 'session')} of {counted(report.agents, 'agent')}"
    archived = f", {report.archived} archived" if report.archived else ""
    screen.line(f"  {listed}{archived}, {counted(report.spawns, 'sub-agent')}")
    others = f", {counted(report.lines, 'other line')}" if report.lines else ""
    files = counted(report.transcripts, "transcript")
    screen.line(f"  {counted(report.messages, 'message')}{others} in {files}")
    screen.dim(f"  as of position {report.position}")


_TEXT = 160
_WHAT = Annotated[
    Literal["skipped", "refused", "unattributed", "renamed", "note"] | None,
    Parameter(
        help="Only rows of this: lines that were skipped, calls that the other system refused, and so on."
    ),
]
_LIMIT = at_most("At most this many rows. Default: 50.")


@asks(IMPORTS, options={"what": _WHAT, "limit": _LIMIT})
def imports(asked: VerbCall[ImportsAnswer]) -> Answer:
    """List what imports left out, and why.

    Lines that could not be read, calls that the other system had refused, what belongs to no exchange or spawn, sessions that
    have another key here: each with its file, its line and the reason. The newest import comes first.
    """
    with asked.answered() as (found, _):
        return Answer(dict(found), lambda screen: _show(screen, found))


def _show(screen: Screen, found: ImportsAnswer) -> None:
    for each in found["imports"]:
        came = f"{counted(each['sessions'], 'session')}, {counted(each['messages'], 'message')}"
        refused = (
            f"{counted(each['refusedSends'], 'send')} and {counted(each['refusedSpawns'], 'spawn')} refused"
        )
        screen.one_line(
            safe(f"#{each['position']}  {moment(each['timeMs'])}  ", "dim"), safe(each["source"], "bold")
        )
        screen.dim(f"    {came}; {counted(each['skipped'], 'line')} skipped, {refused}")
    for row in found["rows"]:
        screen.one_line(safe(f"{row['what']}  ", "bold"), _where(row), ": ", one_line(row["reason"], _TEXT))
    if not found["imports"]:
        screen.dim("nothing was imported into this log")
        return
    screen.dim(counted(found["count"], "row"))
    screen.more(found["cursor"])


def _where(row: JsonObject) -> str:
    line = "" if "line" not in row else f":{row['line']}"
    last = "" if "lastLine" not in row else f"-{row['lastLine']}"
    file = "" if "file" not in row else f"{row['file']}{line}{last}"
    of = "" if "of" not in row else str(row["of"])
    key = "" if "key" not in row else f" is {row['key']} here"
    return "  ".join(filter(None, (file, of + key)))
