"""A run or a session as a file: a bundle for an auditor, an export for other tools; of a run a test that replays it, or a log of its own."""

import tempfile
from pathlib import Path
from typing import Literal, NamedTuple

from litestar import Response

from intersession_actors.assembly.checkpoints.targets import signing_key
from intersession_actors.assembly.methods.debug import Made, bundle_in, content_of, export_in, zipped
from intersession_actors.assembly.methods.params import BundleParams, ExportParams
from intersession_actors.hindsight.bundling.wanted import Redact
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.hindsight.exporting.export import ExportTo
from intersession_actors.hindsight.forking.making import Wanted, make_fork
from intersession_actors.hindsight.replaying.exported.as_test import name_of_test, text_of_test
from intersession_actors.hindsight.replaying.recordings import Recordings
from intersession_actors.rules.errors import ConfigError, ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.errors import ForkFailed
from intersession_events.basics.ids import notes_stream, session_stream
from intersession_events.basics.machine import random_id
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import NotePinned
from intersession_events.log.other_words import as_it_is
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.proofs.signatures import PrivateKey
from intersession_events.stores.database import MEMORY
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.questions.places.located import steps_of_flow
from intersession_projections.questions.places.runs_named import Flow, flow_id
from intersession_projections.views.inline_views import inline_views

What = Literal["test", "log", "bundle"] | ExportTo


class FileWanted(NamedTuple):
    """The query for a file: the run or the session, the format, the last place (the head, if none is given), and what a bundle withholds."""

    what: What
    run: str | None = None
    session: str | None = None
    at: str | None = None
    redact: Redact | None = None


def handed_out(view: View, wanted: FileWanted) -> JsonObject:
    """Return a file: `{name, body}`.

    Raises:
        ToolRefused: there is no such run or place (`invalid_request`).
    """
    if (wanted.run is None) == (wanted.session is None):
        raise invalid("run", "a file is of one run or of one session: give run or session")
    part: JsonObject = {"run": wanted.run, "session": wanted.session, "at": wanted.at}
    with tempfile.TemporaryDirectory(prefix="intersession-file-") as place:
        folder = Path(place)
        match wanted.what:
            case "test" | "log":
                return _of_run(view, wanted, folder)
            case "bundle":
                asked = BundleParams(**part, redact=wanted.redact)
                made: Made = bundle_in(folder, view, asked, key=_key(view))
            case form:
                made = export_in(folder, view, ExportParams(**part, to=form))
        name, content = content_of(made)
        return {"name": name, "body": content}


def _of_run(view: View, wanted: FileWanted, folder: Path) -> JsonObject:
    if wanted.run is None:
        raise invalid("what", f"a {wanted.what} is of a run: name one, or take a bundle or an export")
    flow = view.flow(wanted.run)
    if wanted.what == "log":
        return {"name": f"run-{flow_id(flow)[:8]}.db", "body": _log(view, flow, wanted.at, folder)}
    return {"name": f"{name_of_test(flow_id(flow))}.zip", "body": zipped(_test(view, flow, folder))}


def _key(view: View) -> PrivateKey | None:
    try:
        return signing_key(view.reader.config)
    except ConfigError as error:
        raise ToolRefused("unavailable", str(error)) from None


def as_attachment(found: JsonObject) -> Response[object]:
    """Return a file as a response that a browser saves, and never shows."""
    headers = {"content-disposition": f'attachment; filename="{found["name"]}"'}
    return Response(found["body"], media_type="application/octet-stream", headers=headers)


def _test(view: View, flow: Flow, folder: Path) -> dict[str, bytes]:
    name = name_of_test(flow_id(flow))
    recording = (folder / name).with_suffix(".jsonl")
    Recordings(view.log).write(flow, recording)
    for step in steps_of_flow(view.log, flow):
        view.saw_stream(step.stream)
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
            view.saw_stream(stream)
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
