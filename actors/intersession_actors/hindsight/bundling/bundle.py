"""Makes a bundle: what a log says of a question, as an archive that proves itself away from the log (BUNDLE)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from intersession_actors.hindsight.bundling.editions import Edition
from intersession_actors.hindsight.bundling.parts import NOTED, Contents, write_parts
from intersession_actors.hindsight.bundling.readme import ENTRIES, readme_of
from intersession_actors.hindsight.bundling.report import ReportHead, write_report
from intersession_actors.hindsight.bundling.selecting import selection_of
from intersession_actors.hindsight.bundling.wanted import ENCODE, BundleWanted, name_of
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.errors import BundleFailed
from intersession_events.basics.plain_json import JsonObject
from intersession_events.basics.progress import Progress, not_told
from intersession_events.copies.bundles.archive import (
    Entry,
    check_target,
    digest_of,
    no_room,
    workplace,
    write_archive,
)
from intersession_events.copies.bundles.part import PartWanted, take_part
from intersession_events.copies.bundles.verifying import verifier
from intersession_events.log.other_words import as_it_is
from intersession_events.proofs.signatures import PrivateKey
from intersession_events.stores.opened import check_clear
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.questions.places.runs_named import flow_id

FORMAT: Final = "intersession bundle 1"
_ORDER: Final = tuple(ENTRIES)


class BundleMade(NamedTuple):
    """A bundle that was made: its file, the file's SHA-256, and what is in it. `checkpoint` is the hash of the one that proves it."""

    path: Path
    name: str
    sha256: str
    size: int
    events: int
    streams: int
    position: int
    checkpoint: str | None
    unproven: int
    """How many of its events lie behind that checkpoint."""
    signed_by: str | None = None
    """The id of the key that signed it."""

    @property
    def value(self) -> JsonObject:
        """What doors say of it."""
        return {
            "ok": True,
            "name": self.name,
            "sha256": self.sha256,
            "bytes": self.size,
            "events": self.events,
            "streams": self.streams,
            "position": self.position,
            "checkpoint": self.checkpoint,
            "unproven": self.unproven,
            "signedBy": self.signed_by,
        }


def make_bundle(
    view: View,
    wanted: BundleWanted,
    out: Path,
    *,
    key: PrivateKey | None = None,
    progress: Progress = not_told,
) -> BundleMade:
    """Write a bundle to a file that is not there yet, or under a name of its own into a folder.

    It is the same bit for bit for the same question at the same place. It is made beside its file under another name, synced,
    and has its name only when it is whole. `key` signs its manifest.

    Raises:
        ToolRefused: the query is invalid, or names nothing that is there (`invalid_request`, `not_visible`).
        BundleFailed: the file is there already or can't be written.
        CorruptEvent: the log is damaged before the place; it names the position.
        StoreUnavailable: the log can't be read.
        BadKey: it is kept encrypted, and its keys are not at hand.
    """
    wanted.check()
    log = _log_of(view)
    check_clear(log)
    at = view.place(wanted.until if wanted.at is None else wanted.at, is_end=wanted.at is None).position
    selection = selection_of(view, wanted, at)
    edition = None if wanted.redact is None else Edition(wanted.redact)
    question = selection.question
    if edition is not None:
        # Ids are made of it: a name that is withheld could be guessed by them, and no pseudonym is known yet.
        question = {"redact": "people"} if edition.renames else edition.value(question)
    kind = str(question.get("verb") or next(iter(question)))
    whole = out.absolute() / f"{name_of(kind, question, at)}.zip" if out.is_dir() else out.absolute()
    check_target(whole)
    try:
        with workplace(whole) as place:
            folder = place / "content"
            folder.mkdir()
            part = PartWanted(
                streams=selection.streams,
                at=at,
                question=ENCODE(question),
                flow="" if selection.flow is None else flow_id(selection.flow),
                of_log=selection.of_log,
                noted=NOTED,
            )
            with log.stored() as seen:
                taken = take_part(log.lineage, seen, part, folder, edition=edition, progress=progress)
            (folder / "verify.py").write_bytes(verifier())
            contents = Contents(view, wanted, selection, at, taken, folder, edition)
            write_parts(contents, log.files, () if key is None else (key.public,))
            _write_report(contents)
            _write_manifest(contents, key)
            archived = write_archive(_entries(folder), place / whole.name, whole)
    except OSError as error:
        raise no_room(whole, error) from error
    for name in taken.names:
        view.saw_stream(name)
    return BundleMade(
        path=whole,
        name=whole.name,
        sha256=archived.sha256,
        size=archived.size,
        events=taken.events,
        streams=taken.streams,
        position=at,
        checkpoint=None if taken.checkpoint is None else taken.checkpoint.hash,
        unproven=taken.unproven,
        signed_by=None if key is None else key.public.id,
    )


def _log_of(view: View) -> PortableLog:
    """Return the log as it is stored. A bundle holds whole sessions, so it is the operator's to make, as forks are."""
    if not view.is_operator:
        raise ToolRefused("forbidden", "bundles hold whole sessions, they are the operator's to make")
    log = as_it_is(view.log)
    if not isinstance(log, PortableLog):
        raise BundleFailed("a bundle is made of a log in a store: open one")
    return log


def _write_report(contents: Contents) -> None:
    taken = contents.taken
    checkpoint = taken.checkpoint
    asked = ReportHead(
        question=contents.question,
        log_id=contents.view.log.log_id,
        position=contents.at,
        events=taken.events,
        streams=taken.streams,
        redacted=contents.wanted.redact,
        covered=0 if checkpoint is None else checkpoint.position,
        key=None if checkpoint is None else checkpoint.key_id,
    )
    write_report(contents.folder, asked)


def _write_manifest(contents: Contents, key: PrivateKey | None) -> None:
    """Write what is about the other entries: the page to read first, the manifest, and its signature."""
    folder, taken = contents.folder, contents.taken
    names = {entry.name for entry in _entries(folder)}
    (folder / "README.txt").write_text(readme_of(contents, names | ({"manifest.sig"} if key else set())))
    checkpoint = None if taken.checkpoint is None else taken.checkpoint.hash
    manifest: JsonObject = {
        "format": FORMAT,
        "logId": contents.view.log.log_id,
        "position": contents.at,
        "question": contents.question,
        "redacted": contents.wanted.redact,
        "events": taken.events,
        "streams": taken.streams,
        "checkpoint": checkpoint,
        "key": None if key is None else str(key.public),
        "files": [_named(entry) for entry in _entries(folder)],
    }
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    (folder / "manifest.json").write_bytes(text)
    if key is not None:
        (folder / "manifest.sig").write_text(key.sign(f"{FORMAT}\n".encode() + text) + "\n")


def _named(entry: Entry) -> JsonObject:
    size, hashed = digest_of(entry.path)
    return {"name": entry.name, "bytes": size, "sha256": hashed}


def _entries(folder: Path) -> Sequence[Entry]:
    """Return the files of a folder, in the order in which they stand in the archive."""
    found = [Entry(path.relative_to(folder).as_posix(), path) for path in folder.rglob("*") if path.is_file()]
    return sorted(found, key=_place_of)


def _place_of(entry: Entry) -> tuple[int, str]:
    name = entry.name
    if name in _ORDER:
        return _ORDER.index(name), ""
    return len(_ORDER) + name.startswith("files/"), name
