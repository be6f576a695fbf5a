"""A bundle answers a question: which streams are in it, and what goes with them."""

import fcntl
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem, ToolRefused, echo
from intersession_actors.hindsight.bundling.bundle import BundleMade, make_bundle
from intersession_actors.hindsight.bundling.wanted import BundleWanted
from intersession_events.basics.errors import BundleFailed
from intersession_events.facts import DeliveryDone
from intersession_events.log.verifying.verification import verify_log
from intersession_events.proofs.merkle import leaf_hash, root_of
from intersession_events.stores.sqlite.log import SqliteLog
from support.running import wait_for_number

A = "session:agent:main:telegram:group:1"
B = "session:agent:main:telegram:group:2"


@pytest.fixture
def asked(log_url: str) -> Iterator[SessionSystem]:
    """A host to which Ann and Bob spoke, each in a chat of their own."""
    channels = {"telegram": MemoryChannel()}
    with SessionSystem(log_url, agents={"main": echo()}, channels=channels) as system:
        for chat, sender in (("1", "ann"), ("2", "bob")):
            system.inbound(
                channel="telegram",
                chat_type="group",
                chat_id=chat,
                sender=sender,
                text=f"I am {sender}",
                wait=10,
            )
        wait_for_number(system, DeliveryDone, 2)
        system.checkpoint()
        yield system


def made(system: SessionSystem, out: Path, **wanted: Any) -> BundleMade:
    """Make a bundle of a host's log."""
    return make_bundle(system.debug.view, BundleWanted(**wanted), out)


def entries(bundle: BundleMade) -> dict[str, bytes]:
    """Return the files of a bundle."""
    with zipfile.ZipFile(bundle.path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def streams_of(bundle: BundleMade) -> set[str]:
    lines = entries(bundle)["events.jsonl"].splitlines()
    return {json.loads(line)["stream"] for line in lines}


@pytest.mark.clause("BUNDLE-1")
def test_a_question_selects_whole_streams_and_the_same_question_makes_the_same_file(
    asked: SessionSystem, tmp_path: Path
) -> None:
    run = asked.debug.runs(person="ann")["runs"][0]["id"]
    head = asked.log.head()
    questions: list[dict[str, Any]] = [
        {"run": run},
        {"session": "agent:main:telegram:group:1"},
        {"person": "telegram:ann"},
        {"positions": [asked.debug.events(session=A.removeprefix("session:"))["events"][0]["position"]]},
    ]

    for number, question in enumerate(questions):
        bundle = made(asked, tmp_path / f"{number}.zip", at=head, **question)
        again = made(asked, tmp_path / f"{number}-again.zip", at=head, **question)

        assert (A in streams_of(bundle), B in streams_of(bundle)) == (True, False)
        assert bundle.path.read_bytes() == again.path.read_bytes()
        assert bundle.sha256 == again.sha256
    both = made(asked, tmp_path / "both.zip", since=0)
    assert {A, B} <= streams_of(both)


@pytest.mark.clause("BUNDLE-1")
def test_a_person_has_what_was_sent_to_their_address_by_a_session_that_they_never_spoke_to(
    asked: SessionSystem, tmp_path: Path
) -> None:
    before = made(asked, tmp_path / "before.zip", person="ann")
    sent = {
        "channel": "telegram",
        "to": "ann",
        "message": "By the way",
        "sessionKey": B.removeprefix("session:"),
    }
    assert asked.gateway.call("send", {**sent, "idempotencyKey": "1"}).get("code") is None

    bundle = made(asked, tmp_path / "ann.zip", person="ann")

    assert (B in streams_of(before), B in streams_of(bundle)) == (False, True)


@pytest.mark.clause("BUNDLE-3")
@pytest.mark.clause("BUNDLE-6")
def test_the_whole_log_is_proven_by_its_leaves_and_named_in_the_manifest(
    asked: SessionSystem, tmp_path: Path
) -> None:
    bundle = made(asked, tmp_path / "all.zip", everything=True)

    files = entries(bundle)
    manifest, proof = json.loads(files["manifest.json"]), json.loads(files["proof.json"])
    lines = [json.loads(line) for line in files["events.jsonl"].splitlines()]
    leaves = [
        leaf_hash(f"{one['position']} {one['hash']}\n".encode()) for one in lines if one["index"] is not None
    ]
    assert root_of(leaves).hex() == proof["checkpoint"]["eventsRoot"]
    assert [one["name"] for one in manifest["files"]] == [name for name in files if name != "manifest.json"]
    assert (manifest["events"], manifest["position"]) == (len(lines), bundle.position)
    assert json.loads(files["settings.json"])["settings"]["agents"]["list"][0]["id"] == "main"
    (tmp_path / "bundled.db").write_bytes(files["log.db"])
    with SqliteLog(tmp_path / "bundled.db", read_only=True) as log:
        assert verify_log(log).ok
        assert [row[:4] for row in log.rows(after=0, limit=1000)] == [
            (one.position, one.stream, one.version, one.topic) for one in asked.log.all(to=bundle.position)
        ]


@pytest.mark.clause("BUNDLE-6")
def test_a_run_goes_with_its_diagram_and_a_test_that_replays_it_and_with_who_asked(
    asked: SessionSystem, tmp_path: Path
) -> None:
    run = asked.debug.runs(person="ann")["runs"][0]["id"]
    asked.gateway.call("notes.pin", {"run": run, "text": "As agreed."})
    asked.tools("agent:main:telegram:group:1").call("sessions_history", {"sessionKey": "agent:ghost:main"})
    asked.checkpoint()

    bundle = made(asked, tmp_path / "run.zip", run=run)

    files = entries(bundle)
    assert b"<svg" in files["run.svg"]
    assert {f"test_run_{run[:8]}.py", f"test_run_{run[:8]}.jsonl"} <= files.keys()
    assert json.loads(files["notes.json"])["notes"][0]["text"] == "As agreed."
    question, *receipts = map(json.loads, files["questions.jsonl"].splitlines())
    assert question["question"] == {"run": run}
    assert [one["receipt"]["tool"] for one in receipts if one["isProven"]] == ["sessions_history"]
    assert [one["event"] for one in json.loads(files["refusals.json"])["refusals"]] == ["access_recorded"]
    for name in files:
        assert name == "README.txt" or name in files["README.txt"].decode()


@pytest.mark.clause("BUNDLE-5")
def test_nothing_is_overwritten_and_a_question_without_an_answer_is_refused(
    asked: SessionSystem, tmp_path: Path
) -> None:
    there = tmp_path / "there.zip"
    there.write_bytes(b"mine")
    refused: list[tuple[dict[str, Any], str]] = [
        ({}, "run: nothing says what is bundled"),
        ({"everything": True, "session": "main"}, "these are 2: session, everything"),
        ({"run": "nope"}, "no exchange, spawn or run is called 'nope'"),
        ({"person": "carl"}, "nobody of that name"),
        ({"since": asked.log.head()}, "no event of a session or a flow stands between"),
        ({"since": 1, "until": 5, "at": 5}, "until is the last place already"),
        ({"session": "agent:ghost:main"}, "no session is called"),
        ({"positions": [10**6]}, "there are no events there"),
    ]

    for question, said in refused:
        with pytest.raises(ToolRefused, match=said):
            made(asked, tmp_path / "new.zip", **question)
    with pytest.raises(BundleFailed, match="is there already"):
        made(asked, there, everything=True)
    with pytest.raises(BundleFailed, match="is no directory"):
        made(asked, tmp_path / "nowhere" / "new.zip", everything=True)

    assert there.read_bytes() == b"mine"
    assert {file.name for file in tmp_path.iterdir() if file.suffix != ".db"} >= {"there.zip"}
    assert not [file for file in tmp_path.iterdir() if "new.zip" in file.name]


@pytest.mark.clause("BUNDLE-5")
def test_what_a_killed_process_left_is_taken_away_and_one_that_works_is_not_disturbed(
    asked: SessionSystem, tmp_path: Path
) -> None:
    place = tmp_path / ".new.zip.part"
    (place / "content").mkdir(parents=True)
    (place / "content" / "events.jsonl").write_text("half of it")
    with pytest.raises(BundleFailed, match="can be read by others"):
        made(asked, tmp_path / "new.zip", everything=True)
    place.chmod(0o700)
    works = os.open(place, os.O_RDONLY)
    fcntl.flock(works, fcntl.LOCK_EX)
    with pytest.raises(BundleFailed, match="is being made by another process"):
        made(asked, tmp_path / "new.zip", everything=True)
    os.close(works)

    bundle = made(asked, tmp_path / "new.zip", everything=True)

    assert len(entries(bundle)["events.jsonl"].splitlines()) == bundle.events
    assert not place.exists()
