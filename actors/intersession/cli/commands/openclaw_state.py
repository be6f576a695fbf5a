"""`intersession import`, `import openclaw` and `imports`: what other systems kept, and what imports left out."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import App, Parameter

from intersession.cli.host.beside import host_beside, import_beside
from intersession.cli.host.reading import reading_log, store_url
from intersession.cli.host.verb_call import VerbCall, asks, at_most
from intersession.cli.shell.answer import READING, Answer, Reading, UsageError
from intersession.cli.shell.terminal import Screen, one_line, safe
from intersession.cli.shell.times import moment
from intersession_actors.hindsight.debugger.lists.imports import ImportsAnswer
from intersession_actors.hindsight.debugger.verbs.verbs import IMPORTS
from intersession_actors.owners.session.snapshots import take_snapshots
from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.disclosure.redaction import redact_raw
from intersession_actors.running.runtime.clock import SystemClock
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts.reasons import counted
from intersession_events.stores.opened import located, open_log
from intersession_events.transcripts.foreign.importing import read_framework
from intersession_events.transcripts.openclaw.importing import OnTaken, import_state
from intersession_events.transcripts.openclaw.reading.files import read_state
from intersession_events.transcripts.openclaw.reading.state import OpenClawState
from intersession_events.transcripts.openclaw.report import ImportReport
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.tailed_views import take_in

importing = App(name="import", help="Make a log of another system's transcripts.")

_MOST_LINES = 20


_TAKEN_HELP = (
    "What to do with a session whose key the log has from elsewhere: keep it beside, under a key of its own, or refuse the "
    "import. Default: beside."
)
Taken = Annotated[Literal["beside", "refuse"], Parameter(help=_TAKEN_HELP)]


@importing.default
def framework_in(
    source: str,
    /,
    *,
    framework: Annotated[
        Literal["langgraph", "openai-agents"] | None,
        Parameter(
            name="--from",
            help="Whose database it is: checkpoints of LangGraph, or sessions of the OpenAI Agents SDK.",
        ),
    ] = None,
    agent: Annotated[
        str | None,
        Parameter(help="The id of the agent whose its sessions become. Default: what --from says."),
    ] = None,
    on_taken: Taken = "beside",
    reading: Reading = READING,
) -> Answer:
    """Import the database of another framework; again to add what is new in it.

    Threads and sessions become sessions, what was said in them can be replayed, searched and asked like all else. Nothing is
    lost without a line in the report. `import openclaw` takes a state directory.

    Args:
        source: The database: an SQLite file, or a postgresql:// URL. It is only read.
    """
    if framework is None:
        raise UsageError(
            "say whose database it is: --from langgraph or openai-agents; for an OpenClaw state directory, "
            f"`intersession import openclaw {source}`"
        )
    there = source if "://" in source else os.path.abspath(source)  # noqa: PTH100 - no link is followed here
    asked: JsonObject = {"from": framework, "source": there, "onTaken": on_taken}
    return _imported(
        reading,
        partial(read_framework, framework, source, agent),
        on_taken,
        ("import.framework", present({**asked, "agent": agent})),
        shown=source.partition("?")[0].rpartition("@")[2],
    )


@importing.command(name="openclaw")
def openclaw_in(directory: Path, /, *, on_taken: Taken = "beside", reading: Reading = READING) -> Answer:
    """Import an OpenClaw state directory; again to add what is new in it.

    Nothing is lost without a line in the report, and the report is kept in the log. Where the log has a host, it
    imports, as long as it runs on this machine, and its sessions go on meanwhile.

    Args:
        directory: The state directory: the one with agents/<id>/sessions in it. It is only read.
    """
    there = os.path.abspath(directory)  # noqa: PTH100 - no link is followed here
    return _imported(
        reading,
        partial(read_state, directory),
        on_taken,
        ("import.openclaw", {"directory": there, "onTaken": on_taken}),
        shown=str(directory),
    )


def _imported(
    reading: Reading,
    read: Callable[[], OpenClawState],
    on_taken: OnTaken,
    method: tuple[str, JsonObject],
    *,
    shown: str,
) -> Answer:
    """Import into the log that is named: by the process that writes it, else here."""
    screen = Screen()
    config = load_config(reading.config).config
    url = store_url(reading, config)
    path = located(url).shown
    with screen.progress(f"Importing {shown}") as progress:
        if (beside := host_beside(reading)) is not None:
            with beside, reading_log(reading, config=config) as log:
                report = import_beside(beside, log, *method, progress=progress)
        else:
            state = read()  # first, since a wrong source must not leave an empty log behind
            with open_log(url, inline=inline_views()) as log:
                appended = set[str]()
                report = import_state(
                    state,
                    log,
                    clock=SystemClock().now_ms,
                    on_taken=on_taken,
                    progress=progress,
                    appended=appended.update,
                )
                take_snapshots(log, appended)
                take_in(log, redact_raw)
    value: JsonObject = msgspec.to_builtins(report)
    return Answer(value | {"store": path}, lambda on: _show_import(on, report, path))


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
