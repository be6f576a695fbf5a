"""A run as a file: a test that replays it, a log of its own that can be mailed, or a bundle for an auditor."""

import io
import tempfile
import zipfile
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec
from litestar import Response

from intersession.web.questions.of_notes import notes_of
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.hindsight.forking.making import Wanted, make_fork
from intersession_actors.hindsight.replaying.exported.as_test import name_of_test, text_of_test
from intersession_actors.hindsight.replaying.recordings import Recordings
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.errors import ForkFailed
from intersession_events.basics.ids import notes_stream, session_stream
from intersession_events.basics.machine import random_id
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import NotePinned
from intersession_events.log.other_words import as_it_is
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.log.verifying.report import VerifyReport
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.database import MEMORY
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.questions.flow_summary import in_words
from intersession_projections.questions.places.located import steps_of_flow
from intersession_projections.questions.places.runs_named import Flow, flow_id, flow_sessions
from intersession_projections.questions.timeline.steps import Step
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.run_outcomes.replies import told_in

What = Literal["test", "log", "bundle"]
_SAID: Final = """Run {run}, up to #{position} of log {log_id}.

  report.html  what happened, and what was verified; opens in any browser, offline
  run.db       the run as a log of its own, with all that it touches
  run.svg      its diagram
  {test}  a test that replays it, with its recording in {recording}
  notes.json   what people wrote beside it
  verify.json  what the verification of the whole log said when this was made

To look at it:      intersession debug run.db
To prove it:        intersession verify --store run.db
                    It shows, without the log, that nothing in it was changed since it was written.
To decide it again: pytest {test}

Whole texts are in it, secrets among them: send it to those who may read them.
"""
_STYLE: Final = (
    "body{font:14px/20px system-ui,sans-serif;max-width:1100px;margin:24px auto;padding:0 16px;color:#16191d}"
    "h1{font-size:20px}h2{font-size:15px;margin-top:24px}table{border-collapse:collapse;width:100%}"
    "td,th{border-bottom:1px solid #dfe2e6;padding:4px 6px;text-align:left;vertical-align:top;overflow-wrap:anywhere}"
    "code{font-size:12px;overflow-wrap:anywhere}svg{max-width:100%;height:auto}.bad{color:#b3261e}.ok{color:#17703f}"
    "tr{break-inside:avoid}"
)


class FileWanted(NamedTuple):
    """The query for a file: the run, the format, and the last place (its head, if none is given)."""

    run: str
    what: What
    at: str | None = None


def handed_out(view: View, wanted: FileWanted) -> JsonObject:
    """Return a file: `{name, body}`.

    Raises:
        ToolRefused: there is no such run or place (`invalid_request`).
    """
    flow = view.flow(wanted.run)
    with tempfile.TemporaryDirectory(prefix="intersession-file-") as folder:
        match wanted.what:
            case "test":
                parts = _test(view, flow, Path(folder))
                return {"name": f"{name_of_test(flow_id(flow))}.zip", "body": _zipped(parts)}
            case "log":
                return {
                    "name": f"run-{flow_id(flow)[:8]}.db",
                    "body": _log(view, flow, wanted.at, Path(folder)),
                }
            case "bundle":
                parts = _bundle(view, flow, wanted.at, Path(folder))
                return {"name": f"run-{flow_id(flow)[:8]}.zip", "body": _zipped(parts)}


def as_attachment(found: JsonObject) -> Response[object]:
    """Return a file as a response that a browser saves, and never shows."""
    headers = {"content-disposition": f'attachment; filename="{found["name"]}"'}
    return Response(found["body"], media_type="application/octet-stream", headers=headers)


def _test(view: View, flow: Flow, folder: Path) -> dict[str, bytes]:
    name = name_of_test(flow_id(flow))
    recording = (folder / name).with_suffix(".jsonl")
    Recordings(view.log).write(flow, recording)
    for step in steps_of_flow(view.log, flow):
        _touch(view, step.stream)
    return {name: text_of_test(flow_id(flow)).encode(), recording.name: recording.read_bytes()}


def _log(view: View, flow: Flow, at: str | None, folder: Path) -> bytes:
    log = _kept(view)
    place = view.place(at).position
    try:
        made = make_fork(
            log,
            Wanted(flow_id(flow), place, exact=True),
            fork_id=random_id(),
            now_ms=view.reader.clock.now_ms(),
            directory=folder,
        )
    except ForkFailed as error:
        raise ToolRefused("unavailable", str(error)) from None
    _add_notes(view, flow, place, made.path)
    with open_log(made.path, read_only=True) as part:
        for stream in part.streams(session_stream("")):
            _touch(view, stream)
    return Path(made.path).read_bytes()


def _add_notes(view: View, flow: Flow, place: int, path: str) -> None:
    """Add notes that were written after the place to a file: events of its own, after its cut."""
    stream = notes_stream(flow_id(flow))
    drafts = tuple(
        Draft(event=recorded.event, id=recorded.id, time=recorded.time, is_dated=True)
        for recorded in view.log.stream(stream)
        if isinstance(recorded.event, NotePinned)
        and recorded.position > place
        and recorded.event.position <= place
    )
    if drafts:
        with open_log(path, inline=inline_views()) as part:
            part.append_now((StreamAppend(stream=stream, expected=ANY_VERSION, drafts=drafts),))


def _kept(view: View) -> PortableLog:
    """Return the log, if it is one that can be opened once more."""
    log = as_it_is(view.log)
    if not isinstance(log, PortableLog) or log.place == MEMORY:
        raise invalid("what", "a log in memory has no file, keep it in one")
    return log


def _bundle(view: View, flow: Flow, at: str | None, folder: Path) -> dict[str, bytes]:
    place = view.place(at).position
    log = _log(view, flow, at, folder)
    test = _test(view, flow, folder)
    with _kept(view).again() as stored:
        report = verify_log(stored)
    name, recording = test
    said = _SAID.format(
        run=flow_id(flow), position=place, log_id=view.log.log_id, test=name, recording=recording
    )
    notes = notes_of(view, flow_id(flow), flow_sessions(flow)[-1])
    drawn = Debugger(view).diagram(flow_id(flow), at=place).svg()
    return {
        "README.txt": said.encode(),
        "report.html": _report(view, flow, place, _Parts(report, drawn, notes)).encode(),
        "run.db": log,
        "run.svg": drawn.encode(),
        "notes.json": msgspec.json.format(msgspec.json.encode(notes), indent=2),
        "verify.json": msgspec.json.format(msgspec.json.encode(report), indent=2),
        **test,
    }


class _Parts(NamedTuple):
    report: VerifyReport
    drawn: str
    notes: list[JsonObject]


def _report(view: View, flow: Flow, place: int, parts: _Parts) -> str:
    """Return the report: markup of ours, with every text of the log escaped."""
    report, drawn, notes = parts
    steps = [step for step in steps_of_flow(view.log, flow) if step.position <= place]
    verdict = (
        f'<p class="ok">As it was written: {report.events} events in {report.streams} streams.</p>'
        if report.ok
        else f'<p class="bad">NOT as it was written: {sum(report.counts.values())} findings.</p>'
    )
    findings = "".join(f"<li>{escape(one.problem)}</li>" for one in report.findings)
    said = "".join(
        f"<li>#{one['place']['position']} {escape(one['by'])}: {escape(one['text'])}</li>" for one in notes
    )
    unproven = "".join(f"<li>{escape(said)}</li>" for said in report.unproven)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Run {flow_id(flow)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>Run {flow_id(flow)}</h1><p>{escape(in_words(flow))}. Log <code>{view.log.log_id}</code>, up to #{place}: "
        f"{escape(view.at(place)['text'])}.</p>"
        f"<h2>Verification</h2>{verdict}<ul>{findings}</ul><p>Head: <code>{report.head.hash}</code></p>"
        f"<p>Not proven by this:</p><ul>{unproven}</ul><h2>What happened</h2>{drawn}"
        f"{f'<h2>Notes</h2><ul>{said}</ul>' if said else ''}"
        "<h2>All events of the run</h2><table><thead><tr><th>#</th><th>When</th><th>Event</th><th>Who, and the words</th>"
        f"<th>Hash</th></tr></thead><tbody>{''.join(_rows(view, steps))}</tbody></table></body></html>\n"
    )


def _rows(view: View, steps: list[Step]) -> list[str]:
    rows: list[str] = []
    for recorded in told_in(view.log, view.log.at([step.position for step in steps])):
        words = recorded.in_words()
        who = " → ".join(part for part in (words.who, words.to) if part)
        rows.append(
            f"<tr><td>#{recorded.position}</td><td>{_utc(recorded.time)}</td>"
            f"<td>{escape(recorded.topic.rpartition('.')[0].replace('_', ' '))}</td>"
            f"<td>{escape(who)}<br>{escape(words.brief)}</td><td><code>{recorded.hash[:16]}</code></td></tr>"
        )
    return rows


def _utc(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _touch(view: View, stream: str) -> None:
    """Take down for the receipt that a session is in the file."""
    kind, _, key = stream.partition(":")
    if kind == "session":
        view.is_seen(key)


def _zipped(parts: dict[str, bytes]) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in parts.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), body, zipfile.ZIP_DEFLATED)
    return whole.getvalue()
