"""Looking at a log through its host: the verbs of the debugger as methods (`debug.state` and so on), `notes.pin`, `bundles.make`, `exports.make`."""

from __future__ import annotations

import base64
import io
import tempfile
import zipfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import msgspec

from intersession_actors.assembly.methods.params import BundleParams, ExportParams, NoteParams
from intersession_actors.assembly.methods.terms import METHOD_TERMS, with_advice
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.callers import Call
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.service import Service
from intersession_actors.hindsight.bundling import on_call as bundling
from intersession_actors.hindsight.exporting import on_call as exporting
from intersession_actors.hindsight.forking import on_call
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import FILE
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.errors import BundleFailed, CorruptEvent, ExportFailed, MissingExtra
from intersession_events.basics.ids import notes_stream
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.basics.progress import Progress, not_told
from intersession_events.facts import NotePinned
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.proofs.signatures import PrivateKey
from intersession_projections.questions.places.runs_named import flow_id, flow_sessions


def view_of(service: Service, call: Call) -> on_call.View:
    """Return the log as a caller sees it."""
    reader, caller = service.reader, call.caller

    def reached(key: str) -> bool:
        return caller.reaches(reader.parse(key))

    if caller.is_operator:
        return on_call.View(reader, call.requester)
    return on_call.View(reader, call.requester, within=reached).hiding()


class GatewayDebug:
    """Calls verbs with the caller's rights: the operator's, or those of some sessions, to which the others don't exist."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def verb(self, name: str) -> Callable[[Call, JsonMapping], Result]:
        """Return the method of a verb."""

        def method(call: Call, params: JsonMapping) -> Result:
            answer = dict(self.ask(call, lambda view: on_call.Debugger(view).call(name, params)))
            return with_advice(answer, METHOD_TERMS)

        return method

    def ask(
        self, call: Call, question: Callable[[on_call.View], Mapping[str, object]]
    ) -> Mapping[str, object]:
        """Answer any question about the log as the caller sees it, and record the sessions that the answer may show."""
        view = view_of(self._service, call)
        answer = question(view)
        for key in sorted(view.touched):
            call.saw(key)
        return answer


class GatewayNotes:
    """Notes for the gateway's callers: on the runs that they see."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def pin(self, call: Call, params: JsonMapping) -> Result:
        """Pin a note to a place of a run."""
        given = read_arguments(NoteParams, params)
        if not given.text.strip():
            raise invalid("text", "it is blank, write what is to be known")
        view = view_of(self._service, call)
        name, at = view.parted(given.run, given.at, field="run")
        flow, place = view.flow(name), view.place(at)
        run = flow_id(flow)
        note = NotePinned(flow=run, position=place.position, text=given.text, by=call.caller.name)
        draft = Draft(event=note, id=self._service.new_id(), time=self._service.clock.now_ms())
        append = StreamAppend(stream=notes_stream(run), expected=ANY_VERSION, drafts=(draft,))
        committed = self._service.log.append_now((append,))
        for key in flow_sessions(flow):
            view.is_seen(key)
        for key in sorted(view.touched):
            call.saw(key)
        return {
            "status": "ok",
            "run": run,
            "place": view.say(place),
            "position": committed.recorded[0].position,
        }


class Made(Protocol):
    """A bundle, or an export."""

    @property
    def path(self) -> Path:
        """Its file; of tables, their directory."""
        ...

    @property
    def value(self) -> JsonObject:
        """What doors say of it."""
        ...


class GatewayFiles:
    """Parts of the log as files for the gateway's callers: bundles and exports. They hold whole sessions: the operator's alone.

    `cover` takes a checkpoint, so that all of a bundle is proven, and returns its position; `key` signs bundles.
    """

    def __init__(self, debug: GatewayDebug, *, cover: Callable[[], int], key: PrivateKey | None) -> None:
        self._debug = debug
        self._cover = cover
        self._key = key

    def bundle(self, call: Call, params: JsonMapping) -> Result:
        """Return a bundle, its content in base64, up to a limit."""
        given = read_arguments(BundleParams, params)
        head = self._cover()
        return self._handed_out(
            call, lambda view, folder: bundle_in(folder, view, given, key=self._key, head=head)
        )

    def export(self, call: Call, params: JsonMapping) -> Result:
        """Return an export, its content in base64, up to a limit; tables as a zip of their files."""
        given = read_arguments(ExportParams, params)
        return self._handed_out(
            call, lambda view, folder: export_in(folder, view, given, progress=_within(folder))
        )

    def _handed_out(self, call: Call, make: Callable[[on_call.View, Path], Made]) -> Result:
        def answer(view: on_call.View) -> Result:
            with tempfile.TemporaryDirectory(prefix="intersession-file-") as folder:
                made = make(view, Path(folder))
                name, content = content_of(made)
            if len(content) > FILE.most:
                raise _too_large(len(content))
            hashed = sha256(content).hexdigest()
            return {
                **made.value,
                "name": name,
                "sha256": hashed,
                "bytes": len(content),
                "content": base64.b64encode(content).decode(),
            }

        return dict(self._debug.ask(call, answer))


def content_of(made: Made) -> tuple[str, bytes]:
    """Return the name and the content of a file that was made; of a directory, of a zip with its files."""
    path = made.path
    if not path.is_dir():
        return path.name, path.read_bytes()
    return f"{path.name}.zip", zipped({file.name: file.read_bytes() for file in sorted(path.iterdir())})


def zipped(parts: Mapping[str, bytes]) -> bytes:
    """Return some files as a zip, the same bytes for the same files."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in parts.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), body, zipfile.ZIP_DEFLATED)
    return whole.getvalue()


def _within(folder: Path) -> Progress:
    """Return a function that stops an export which is too large already: it is as large as what is handed out of it."""

    def check(_reached: int, _last: int) -> None:
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        if size > FILE.most:
            raise _too_large(size)

    return check


def _too_large(size: int) -> ToolRefused:
    return ToolRefused(
        "too_large",
        f"the file has {size} bytes, at most {FILE.most} are handed out here: ask for less (`since` and `until` are two "
        "places), or make it beside the log with `intersession bundle` or `intersession export`",
    )


def bundle_in(
    folder: Path,
    view: on_call.View,
    given: BundleParams,
    *,
    key: PrivateKey | None,
    head: int | None = None,
) -> bundling.BundleMade:
    """Make a bundle in a folder, by the parameters of a method. `head` is the place where none is given.

    Raises:
        ToolRefused: as `make_bundle`; what is damaged is `unreadable`.
    """
    at = head if given.at is None and given.until is None else given.at
    with _refusing():
        return bundling.make_bundle(view, _wanted(view, given, at), folder, key=key)


def export_in(
    folder: Path,
    view: on_call.View,
    given: ExportParams,
    *,
    progress: Progress = not_told,
) -> exporting.ExportMade:
    """Write an export into a folder, by the parameters of a method.

    Raises:
        ToolRefused: as `export`; what is damaged is `unreadable`, tables without the extra `parquet` are `unavailable`.
    """
    wanted = exporting.ExportWanted(**msgspec.structs.asdict(given))
    with _refusing():
        return exporting.export(view, wanted, folder, inside=True, progress=progress)


@contextmanager
def _refusing() -> Generator[None]:
    try:
        yield
    except (BundleFailed, ExportFailed) as error:
        raise ToolRefused("invalid_request", str(error)) from None
    except MissingExtra as error:
        raise ToolRefused("unavailable", str(error)) from None
    except CorruptEvent as error:
        raise ToolRefused("unreadable", f"{error}; `intersession verify` shows all that is wrong") from None


def _wanted(view: on_call.View, given: BundleParams, at: on_call.At | None) -> bundling.BundleWanted:
    if given.verb is None:
        fields = msgspec.structs.asdict(given)
        fields |= {"everything": fields.pop("all"), "at": at}
        del fields["verb"], fields["arguments"]
        if given.arguments:
            raise invalid("arguments", "they belong to a verb, name one")
        return bundling.BundleWanted(**fields)
    if given.all or any((given.run, given.session, given.person, given.since, given.until)):
        raise invalid("verb", "an answer is bundled by itself, leave what else is named out")
    return bundling.wanted_for_answer(view, given.verb, given.arguments, at=at, redact=given.redact)
