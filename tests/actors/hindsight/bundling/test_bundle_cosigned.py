"""A bundle has its checkpoints as signed notes, with cosignatures and timestamps, and its one verifier checks them."""

import base64
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from intersession import SessionSystem, echo
from intersession_actors.hindsight.bundling.bundle import make_bundle
from intersession_actors.hindsight.bundling.wanted import BundleWanted
from intersession_events.copies.bundles import verify
from intersession_events.copies.bundles.verifying import check_bundle
from intersession_events.facts import CheckpointPublished
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.proofs.notes import cosigned_note, read_note
from intersession_events.proofs.published import published_in
from intersession_events.proofs.signatures import NamedKey, Trusted, write_private
from support.checkpointed import key_of
from support.running import WAIT, Booth

HOST, ONE, TWO = key_of(1), key_of(2), key_of(3)
WITNESSES = [
    NamedKey(f"w{number}.example", key.public, is_witness=True) for number, key in ((1, ONE), (2, TWO))
]
TRUSTED = Trusted(witnesses=WITNESSES)


def answered(system: SessionSystem, to: str, position: int, receipt: str) -> None:
    event = CheckpointPublished(position=position, to=to, target=receipt[-8:], receipt=receipt)  # type: ignore[arg-type]
    draft = Draft(event=event, id=f"{to}{receipt[-9:]}", time=1)
    system.log.append_now([StreamAppend(stream="log", expected=ANY_VERSION, drafts=(draft,))])


@pytest.fixture
def bundle(booth: Booth, tmp_path: Path) -> tuple[Path, str]:
    """A bundle of a log whose last checkpoint two witnesses have cosigned, and that checkpoint's note."""
    write_private(HOST, tmp_path / "host.pem")
    settings = {"checkpoints": {"everySeconds": 0, "atStop": False, "keyFile": str(tmp_path / "host.pem")}}
    with booth.start({"main": echo()}, {}, settings) as system:
        for text in ("one", "two"):
            system.inbound(channel="web", chat_id="1", sender="ann", text=text, wait=WAIT)
            last = system.checkpoint()
        note = read_note(last["note"].encode())
        for key, of in ((ONE, WITNESSES[0]), (TWO, WITNESSES[1])):
            answered(
                system,
                "witness",
                last["position"],
                cosigned_note(note.text, key, of.name, time=1_700_000_000).line,
            )
        stamp = base64.b64encode(b"a response" + bytes.fromhex(last["hash"])).decode()
        answered(system, "timestamp", last["position"], stamp)
        wanted = BundleWanted(everything=True, at=str(last["position"]))
        made = make_bundle(system.debug.view, wanted, tmp_path / "cosigned.zip", key=HOST)
        return made.path, system.checkpoint()["note"]


def checked(path: Path, trusted: Trusted, *published: bytes) -> verify.Check:
    return check_bundle(
        path, trusted=trusted, published=[one for text in published for one in published_in(text)]
    )


def otherwise(path: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """Unpack a bundle, change its entries, and write its manifest anew, as somebody who has the host's key would."""
    folder = path.with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    change(entries)
    manifest = json.loads(entries["manifest.json"])
    manifest["files"] = [
        {"name": name, "bytes": len(content), "sha256": sha256(content).hexdigest()}
        for name, content in entries.items()
        if name not in {"manifest.json", "manifest.sig"}
    ]
    entries["manifest.json"] = json.dumps(manifest).encode()
    entries["manifest.sig"] = (
        HOST.sign(b"intersession bundle 1\n" + entries["manifest.json"]).encode() + b"\n"
    )
    for name, content in entries.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.ci
@pytest.mark.clause("TLOG-8")
def test_witnesses_prove_a_bundle_with_their_keys_alone(
    bundle: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    path, note = bundle
    found = checked(path, TRUSTED)
    assert (found.wrong, found.said["cosignedUpTo"], found.said["signedUpTo"]) == ([], found.position, 0)
    assert any("openssl ts -verify -digest" in sentence for sentence in found.unproven)
    assert checked(path, Trusted([HOST.public], witnesses=WITNESSES, quorum=1)).ok
    assert checked(path, Trusted(), note.encode()).said["publishedUpTo"] == found.position
    stranger = Trusted(witnesses=[NamedKey("w1.example", HOST.public, is_witness=True)])
    assert [code for code, _ in checked(path, stranger).wrong] == ["unsigned"]
    with zipfile.ZipFile(path) as archive:
        notes = verify.notes_in(archive.read("checkpoints.txt").decode())
    assert [len(one.lines) for one in notes] == [1, 3]

    file = path.with_name("keys")
    file.write_text(f"# both\n{WITNESSES[0]}\n{WITNESSES[1]}\n{HOST.public}\n")
    assert verify.main([str(path), "--trust", str(file), "--quorum", "2"]) == 0
    assert "cosigned by 2 of 2 trusted witnesses" in capsys.readouterr().out
    assert verify.main([str(path), "--trust", str(WITNESSES[0]), "--quorum", "2"]) == 2
    assert verify.main([str(path), "--trust", str(WITNESSES[0]).replace("w1", "w9")]) == 2


def _flipped(found: re.Match[bytes]) -> bytes:
    return found[1] + found[2] + (b"B" if found[3] == b"A" else b"A")


TAMPERED: dict[str, Callable[[dict[str, bytes]], None]] = {
    "a cosignature": lambda e: e.update(
        {"checkpoints.txt": e["checkpoints.txt"].replace(b"w1.example ", b"w1.example A", 1)}
    ),
    "a cosignature's time": lambda e: e.update(
        {"checkpoints.txt": re.sub(rb"(w2\.example )(.{14})(.)", _flipped, e["checkpoints.txt"], count=1)}
    ),
    "the root of a note": lambda e: e.update(
        {
            "checkpoints.txt": re.sub(
                rb"\n[A-Za-z0-9+/]{43}=\n", b"\n" + b"A" * 43 + b"=\n", e["checkpoints.txt"], count=1
            )
        }
    ),
    "a note of another log": lambda e: e.update(
        {"checkpoints.txt": e["checkpoints.txt"].replace(b"intersession ", b"intersession x", 1)}
    ),
    "the note in a checkpoint": lambda e: e.update(
        {
            "checkpoints.jsonl": re.sub(
                rb'("note":"[^"]* )(.{20})(.)', _flipped, e["checkpoints.jsonl"], count=1
            )
        }
    ),
    "a timestamp of another hash": lambda e: e.update({next(n for n in e if n[:5] == "times"): b"another"}),
    "a timestamp of no checkpoint": lambda e: e.update({"timestamps/1.tsr": b"another"}),
}


@pytest.mark.ci
@pytest.mark.clause("TLOG-8")
@pytest.mark.parametrize("what", TAMPERED)
def test_who_has_the_key_changes_no_note_of_a_bundle_unseen(bundle: tuple[Path, str], what: str) -> None:
    folder = otherwise(bundle[0], TAMPERED[what])
    trusted = Trusted([HOST.public], witnesses=WITNESSES)

    assert otherwise(bundle[0], lambda _: None) == folder
    assert checked(folder, trusted).wrong == []
    folder = otherwise(bundle[0], TAMPERED[what])
    assert not checked(folder, trusted).ok


def test_a_file_of_notes_that_holds_something_else_is_refused() -> None:
    for text in ("", "x\n", "a\n1\nroot\n\n— a AAAA\n"):
        with pytest.raises(ValueError, match="something else than signed notes"):
            verify.notes_in(text)
