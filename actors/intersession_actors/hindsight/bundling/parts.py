"""Writes what goes with the events of a bundle: erasures, refusals, questions, settings, notes, files, and of one run more (BUNDLE-6)."""

import base64
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.bundling.editions import Edition
from intersession_actors.hindsight.bundling.selecting import Selection
from intersession_actors.hindsight.bundling.wanted import BundleWanted
from intersession_actors.hindsight.debugger.show import Show, drawing
from intersession_actors.hindsight.debugger.view import View, settings_of
from intersession_actors.hindsight.replaying.exported.as_test import name_of_test, text_of_test
from intersession_actors.hindsight.replaying.recordings import Recordings
from intersession_events.basics.ids import SESSIONS
from intersession_events.basics.plain_json import JsonObject, is_object, present
from intersession_events.copies.bundles.part import PartTaken
from intersession_events.facts import (
    AccessRecorded,
    DeliveryDenied,
    Erased,
    NotePinned,
    SendRefused,
    ToolCallReleased,
    decode,
)
from intersession_events.log.files import Files
from intersession_events.log.held_checkpoints import cosignatures_in, receipts_of
from intersession_events.log.recorded import Recorded
from intersession_events.log.row_state import opened, payload_in
from intersession_events.proofs.notes import noted
from intersession_events.proofs.signatures import PublicKey
from intersession_events.stores.opened import open_log
from intersession_projections.basics.spans import Span
from intersession_projections.questions.places.runs_named import Flow, flow_id
from intersession_projections.views.access_receipts import Receipt, Wanted, receipts
from intersession_projections.views.inline_views import inline_views

_REFUSED: Final = (AccessRecorded, SendRefused, DeliveryDenied, ToolCallReleased)
_ASKED: Final = (AccessRecorded, SendRefused)
NOTED: Final = frozenset(kind.topic for kind in (*_REFUSED, NotePinned))
"""The events that are looked at once more, by their stored names."""
_ENCODE: Final = msgspec.json.Encoder().encode
_ACCESS: Final = "access:"


class Contents(NamedTuple):
    """All that is known of a bundle when its events are written."""

    view: View
    wanted: BundleWanted
    selection: Selection
    at: int
    taken: PartTaken
    folder: Path
    edition: Edition | None = None

    @property
    def question(self) -> JsonObject:
        """The question, as the bundle says it."""
        return self.shown(self.selection.question)

    def shown(self, value: JsonObject) -> JsonObject:
        """Return what stands beside the events, without what a redacted edition withholds."""
        return value if self.edition is None else self.edition.value(value)


def write_parts(contents: Contents, files: Files, keys: Iterable[PublicKey]) -> None:
    """Write the files beside the events into the folder.

    Raises:
        CorruptEvent: a file of a message is not what was written.
        OSError: one can't be written.
    """
    folder = contents.folder
    erasures: JsonObject = {"erasures": [*_erasures(contents)]}
    if contents.edition is None:
        erasures["filesMissing"] = _write_files(contents, files)
    else:
        erasures["filesWithheld"] = len(contents.taken.files)
    _write(folder / "erasures.json", contents.shown(erasures))
    _write(folder / "refusals.json", contents.shown({"refusals": [*_refusals(contents)]}))
    _write(folder / "settings.json", contents.shown(_settings(contents)))
    with (folder / "questions.jsonl").open("wb") as asked:
        for one in _questions(contents):
            asked.write(_ENCODE(contents.shown(one)) + b"\n")
    if contents.wanted.answer is not None:
        _write(folder / "answer.json", contents.shown(contents.wanted.answer))
    _write(folder / "notes.json", contents.shown({"notes": [*_notes(contents)]}))
    _write_notes(contents)
    if known := "".join(f"{key}\n" for key in keys):
        (folder / "keys.txt").write_text(known)
    if contents.selection.flow is not None and (folder / "log.db").exists():
        _write_run(contents, contents.selection.flow)


def _write_notes(contents: Contents) -> None:
    """Write the checkpoints as signed notes, with the cosignatures and the timestamps that there are by now (TLOG)."""
    query, folder = contents.view.log.query, contents.folder
    receipts = receipts_of(query) if contents.taken.checkpoints else ()
    cosigned = cosignatures_in(receipts)
    notes = list[str]()
    for one in contents.taken.checkpoints:
        if (note := noted(one)) is not None:
            signatures = (*note.signatures, *cosigned.get(one.position, ()))
            notes.append(str(msgspec.structs.replace(note, signatures=signatures)))
    if notes:
        (folder / "checkpoints.txt").write_text("\n".join(notes))
    places = {one.position for one in contents.taken.checkpoints}
    for receipt in receipts:
        if receipt.to == "timestamp" and receipt.position in places:
            (folder / "timestamps").mkdir(exist_ok=True)
            content = base64.b64decode(receipt.receipt or "")
            (folder / "timestamps" / f"{receipt.position}.tsr").write_bytes(content)


def _write(path: Path, value: object) -> None:
    path.write_bytes(msgspec.json.format(_ENCODE(value), indent=2) + b"\n")


def _noted(contents: Contents, *kinds: type[msgspec.Struct]) -> Iterator[Recorded]:
    topics = [str(getattr(kind, "topic", "")) for kind in kinds]
    return contents.view.log.at(at for topic in topics for at in contents.taken.noted.get(topic, ()))


def _erasures(contents: Contents) -> Iterator[JsonObject]:
    """Yield what was erased in the bundle's streams: who wanted it, why, and which checkpoint covers the event that says so."""
    for position, _, _, topic, state in contents.taken.erased:
        event = decode(topic, payload_in(state) or b"")
        if isinstance(event, Erased):
            covering = (one.position for one in contents.taken.checkpoints if one.position >= position)
            yield {
                "position": position,
                "timeMs": opened(state, where=f"position {position}").time,
                "stream": event.stream,
                "versions": [version for version, _ in event.rows],
                "rule": event.rule,
                "notReached": [*event.not_reached],
                "by": event.by,
                "reason": event.reason,
                "files": event.files,
                "checkpoint": next(covering, None),
                "isBehindThePlace": position > contents.at,
            }


def _refusals(contents: Contents) -> Iterator[JsonObject]:
    """Yield what was refused in the bundle's streams: to see or reach a session, to go on, to go out, to be called."""
    for recorded in _noted(contents, *_REFUSED):
        event, words = recorded.event, recorded.in_words()
        if isinstance(event, AccessRecorded) and not event.denied_count:
            continue
        if isinstance(event, ToolCallReleased) and event.action != "refuse":
            continue
        yield present(
            {
                "position": recorded.position,
                "timeMs": recorded.time,
                "stream": recorded.stream,
                "event": recorded.topic.rpartition(".")[0],
                "who": words.who,
                "to": words.to,
                "text": words.brief,
                "targets": [list(one) for one in event.denied] if isinstance(event, AccessRecorded) else None,
            }
        )


def _questions(contents: Contents) -> Iterator[JsonObject]:
    """Yield the bundle's own question, and the receipts of what its sessions asked, and what was asked of them, oldest first."""
    yield {
        "question": contents.selection.question,
        "logId": contents.view.log.log_id,
        "position": contents.at,
    }
    for recorded in _noted(contents, *_ASKED):
        yield _receipt(recorded.position, recorded.time, recorded.stream, recorded.event, inside=True)
    if contents.selection.streams is None:
        return
    names = {name.removeprefix(SESSIONS) for name in contents.taken.names if name.startswith(SESSIONS)}
    if contents.selection.flow is not None:
        names.add(flow_id(contents.selection.flow))
    others = [
        one
        for one in receipts(contents.view.log, Wanted(span=Span(to=contents.at)))
        if f"{_ACCESS}{one.who}" not in contents.taken.names and _is_of(one, names)
    ]
    for one in reversed(others):
        yield _receipt(one.position, one.time_ms, f"{_ACCESS}{one.who}", one.event, inside=False)


def _is_of(receipt: Receipt, names: set[str]) -> bool:
    """Whether a call named a session or the run of the bundle, as far as its arguments say."""
    if any(target in names for target, _ in receipt.targets):
        return True
    if not isinstance(receipt.event, AccessRecorded):
        return receipt.event.target in names
    try:
        given: object = msgspec.json.decode(receipt.event.filters)
    except msgspec.DecodeError:
        return False
    return is_object(given) and any(isinstance(value, str) and value in names for value in given.values())


def _receipt(position: int, time_ms: int, stream: str, event: object, *, inside: bool) -> JsonObject:
    """Return a receipt; those that are not `inside` are no events of the bundle, and only said by its issuer."""
    return {
        "position": position,
        "timeMs": time_ms,
        "who": stream.removeprefix(_ACCESS),
        "isProven": inside,
        "receipt": msgspec.to_builtins(event),
    }


def _settings(contents: Contents) -> JsonObject:
    """Return the settings in force at the place, as they were recorded: without secrets."""
    recorded = contents.view.recorded_config(contents.at)
    if recorded is None:
        return {"digest": None, "settings": None}
    return {"digest": recorded.digest, "settings": settings_of(recorded)}


def _notes(contents: Contents) -> Iterator[JsonObject]:
    """Yield what people wrote beside the runs, up to the place."""
    for recorded in _noted(contents, NotePinned):
        event = recorded.event
        if isinstance(event, NotePinned):
            yield {
                "position": recorded.position,
                "timeMs": recorded.time,
                "flow": event.flow,
                "at": event.position,
                "by": event.by,
                "text": event.text,
            }


def _write_files(contents: Contents, files: Files) -> list[JsonObject]:
    """Write the contents of files that the events name; return those that are not there any more."""
    missing: list[JsonObject] = []
    folder = contents.folder / "files"
    for file in contents.taken.files:
        content = files.read(file.sha256)
        if content is None:
            missing.append({"sha256": file.sha256, "name": file.name, "size": file.size})
            continue
        folder.mkdir(exist_ok=True)
        (folder / file.sha256).write_bytes(content)
    return missing


def _write_run(contents: Contents, flow: Flow) -> None:
    """Draw a run, and write the test that replays it: by the bundle's own log, so that nothing is in them that is not there."""
    reader, folder, edition = contents.view.reader, contents.folder, contents.edition
    name = flow_id(flow) if edition is None else edition.id(flow_id(flow))
    with open_log(str(folder / "log.db"), read_only=True, inline=inline_views()) as log:
        inside = View(Reader(log, config=lambda: reader.config, clock=reader.clock))
        (folder / "run.svg").write_text(drawing(inside, Show(run=name)).svg())
        if edition is not None:
            return  # nothing can be replayed of what is not there
        test = folder / name_of_test(name)
        Recordings(log).write(inside.flow(name), test.with_suffix(".jsonl"))
        test.write_text(text_of_test(name))
