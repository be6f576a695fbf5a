"""A run as a file: a test that replays it, a log of its own that can be mailed, or a bundle for an auditor."""

import io
import tempfile
import zipfile
from pathlib import Path
from typing import Literal, NamedTuple

from litestar import Response

from intersession_actors.assembly.checkpoints.targets import signing_key
from intersession_actors.hindsight.bundling.bundle import make_bundle
from intersession_actors.hindsight.bundling.wanted import BundleWanted, Redact
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.hindsight.forking.making import Wanted, make_fork
from intersession_actors.hindsight.replaying.exported.as_test import name_of_test, text_of_test
from intersession_actors.hindsight.replaying.recordings import Recordings
from intersession_actors.rules.errors import ConfigError, ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.errors import BundleFailed, ForkFailed
from intersession_events.basics.ids import notes_stream, session_stream
from intersession_events.basics.machine import random_id
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import NotePinned
from intersession_events.log.other_words import as_it_is
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.stores.database import MEMORY
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.questions.places.located import steps_of_flow
from intersession_projections.questions.places.runs_named import Flow, flow_id
from intersession_projections.views.inline_views import inline_views

What = Literal["test", "log", "bundle"]


class FileWanted(NamedTuple):
    """The query for a file: the run, the format, the last place (its head, if none is given), and what a bundle withholds."""

    run: str
    what: What
    at: str | None = None
    redact: Redact | None = None


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
                return _bundle(view, wanted, Path(folder))


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


def _bundle(view: View, wanted: FileWanted, folder: Path) -> JsonObject:
    config = view.reader.config
    asked = BundleWanted(run=wanted.run, at=wanted.at, redact=wanted.redact)
    try:
        made = make_bundle(view, asked, folder, key=signing_key(config))
    except (BundleFailed, ConfigError) as error:
        raise ToolRefused("unavailable", str(error)) from None
    return {"name": made.name, "body": made.path.read_bytes()}


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
