"""Forks in the web debugger, and runs as files: asked like the log itself, compared with it, handed out."""

import io
import json
import lzma
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from intersession import SessionSystem, replay_file
from intersession.web.questions.of_forks import Compare, compare
from intersession.web.questions.of_runs import RunsQuery, runs
from intersession_actors.hindsight.debugger.opened import open_log
from intersession_events.basics.plain_json import JsonObject
from intersession_events.basics.times import length
from intersession_events.facts import AccessRecorded, ForkEdit, NotePinned
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.opened import open_log as open_store
from support.doors.gateway_live import READER, TOKEN, LiveGateway, newest
from support.doors.web_log import played
from support.paths import ROOT


class Forked(NamedTuple):
    system: SessionSystem
    gateway: LiveGateway
    run: str
    fork: str

    def ask(self, question: str, *, token: str = TOKEN, **given: Any) -> Any:
        with self.gateway.http(token) as client:
            answer = client.get(f"/debug/api/{question}", params=given)
        return answer.json() if answer.status_code == 200 else answer


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    with played(store=tmp_path_factory.mktemp("web") / "demo.db") as (system, gateway):
        run = newest(gateway)
        edits = [ForkEdit(kind="reply", value="Only up to 2.8 tonnes this week.")]
        fork = system.fork(run, at="turn:2", edits=edits, agents={"*": "recorded"})
        try:
            fork.carried_on(timeout=20)
        finally:
            fork.close(grace=0)
        yield Forked(system, gateway, run, fork.log.log_id)


def test_a_fork_is_asked_like_the_log_that_it_was_made_of(forked: Forked) -> None:
    (told,) = forked.ask("forks", run=forked.run)["forks"]
    whole = forked.ask("run", run=forked.run, fork=told["id"][:8])
    steps = forked.ask("steps", run=forked.run, fork=forked.fork)["steps"]
    proven = forked.ask("integrity", fork=forked.fork, verify="true")

    assert told["id"] == forked.fork
    assert whole["steps"] == len(steps)
    assert any("2.8 tonnes" in step.get("text", "") for step in steps)
    assert not any("2.8" in step.get("text", "") for step in forked.ask("steps", run=forked.run)["steps"])
    assert proven["ok"] is True


def test_a_run_and_its_fork_are_compared_from_the_cut_on(forked: Forked) -> None:
    found = forked.ask("compare", a=forked.run, b=forked.run, other=forked.fork)

    assert found["firstDivergence"]["turn"] == "turn:2"
    assert found["cut"]["edits"][0]["value"] == "Only up to 2.8 tonnes this week."
    assert found["cut"]["position"] < found["firstDivergence"]["place"]["position"]
    assert forked.ask("compare", a=forked.run, b=forked.run)["same"] is True


@pytest.mark.clause("DIFF-1", "FORK-9")
def test_a_fork_of_a_fork_is_compared_with_each_cut_on_the_way(tmp_path: Path) -> None:
    with played(store=tmp_path / "demo.db") as (system, _):
        run = system.debug.runs(kind=["exchange"])["runs"][0]["id"]
        first = forked_at(system, run, "turn:2", "Only up to 2.8 tonnes.")
        second = forked_at(first, run, "turn:4", "Then we stay at home.")
        beside = forked_at(system, run, "turn:3", "And by ferry?")

        far = compare(system.debug.view, Compare(a=run, b=run, other=second.log.log_id))
        near = compare(first.debug.view, Compare(a=run, b=run, other=second.log.log_id))
        both = compare(second.debug.view, Compare(a=run, b=run, other=beside.log.log_id))
        for fork in (second, first, beside):
            fork.close(grace=0)

    def told(found: JsonObject) -> list[tuple[str, str]]:
        return [(cut["side"], cut["edits"][0]["value"]) for cut in found["cuts"]]

    assert told(far) == [("b", "Only up to 2.8 tonnes."), ("b", "Then we stay at home.")]
    assert far["cuts"][0]["position"] < far["cuts"][1]["position"] == far["cut"]["position"]
    assert told(near) == [("b", "Then we stay at home.")]
    assert set(told(both)) == {
        *((side, said) for (_, said), side in zip(told(far), "aa", strict=True)),
        ("b", "And by ferry?"),
    }


def forked_at(system: SessionSystem, run: str, at: str, reply: str) -> SessionSystem:
    edits = [ForkEdit(kind="reply", value=reply)]
    fork = system.fork(run, at=at, edits=edits, agents={"*": "recorded"}, loose=True)
    fork.carried_on(timeout=20)
    return fork


def test_both_are_called_by_their_first_words_in_lists_and_in_the_comparison(forked: Forked) -> None:
    (told,) = forked.ask("forks", run=forked.run)["forks"]
    title = "Is the lake crossing open on Saturday?"

    assert told["title"] == title
    assert forked.ask("compare", a=forked.run, b=forked.run, other=forked.fork)["titles"] == {
        "a": title,
        "b": title,
    }


@pytest.mark.clause("FORK-2", "DIFF-1")
def test_a_fork_of_an_old_run_took_what_it_took_itself_and_not_the_years_between(tmp_path: Path) -> None:
    """It said that it took days, where the run was recorded days ago."""
    with lzma.open(ROOT / "tests" / "golden" / "0.1.0" / "demo.db.xz") as packed:
        (tmp_path / "demo.db").write_bytes(packed.read())
    with SessionSystem(f"sqlite:///{tmp_path / 'demo.db'}") as system:
        run = system.debug.runs(kind=["exchange"])["runs"][0]["id"]
        fork = system.fork(
            run,
            at="turn:2",
            edits=[ForkEdit(kind="reply", value="No.")],
            agents={"*": "recorded"},
            loose=True,
        )
        try:
            fork.carried_on(timeout=20)
            took = fork.debug.diff(run, run)["totals"]["a"]["durationMs"]
            listed = runs(fork.debug.view, RunsQuery())["runs"]
            drawn, gaps = fork.debug.diagram(run), fork.debug.show(run)["rows"]
        finally:
            fork.close(grace=0)

    (exchange,) = [one for one in listed if one["kind"] == "exchange"]
    assert 0 <= took < 60_000
    assert 0 <= exchange["tookMs"] < 60_000
    (cut,) = [row for row in gaps if row["row"] == "gap" and row.get("forked")]
    days = length(cut["ms"])
    assert f"the cut: forked {days} later, which is no time of the run" in drawn.text(160)
    assert f"the cut: forked {days} later" in drawn.svg()
    assert f"the cut: forked {days} later" in drawn.mermaid()
    assert not [row for row in gaps if row["row"] == "gap" and row["ms"] > 86_400_000 and row is not cut]


def file_of(forked: Forked, what: str, **given: Any) -> httpx.Response:
    with forked.gateway.http() as client:
        return client.get("/debug/api/file", params={"run": forked.run, "what": what, **given})


def test_a_run_is_handed_out_as_a_test_that_passes(forked: Forked, tmp_path: Path) -> None:
    answer = file_of(forked, "test")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        archive.extractall(tmp_path)

    assert answer.headers["content-disposition"].startswith('attachment; filename="test_run_')
    (recording,) = tmp_path.glob("*.jsonl")
    assert replay_file(recording)["same"]
    assert f"test_run_{forked.run.replace('-', '_')}_is" in recording.with_suffix(".py").read_text("utf-8")


@pytest.mark.clause("BUNDLE-8")
def test_a_run_is_handed_out_as_a_bundle_that_proves_itself(forked: Forked, tmp_path: Path) -> None:
    answer = file_of(forked, "bundle", at=f"{forked.run}@turn:2")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        archive.extractall(tmp_path)
        assert archive.comment.startswith(b"sha256:")

    proof = json.loads((tmp_path / "proof.json").read_text("utf-8"))
    assert proof["checkpoint"] is not None
    for line in (tmp_path / "events.jsonl").read_text("utf-8").splitlines():
        assert json.loads(line)["index"] is not None
    with open_log(tmp_path / "log.db") as part:
        assert part.debug.state(forked.run)["exchanges"][0]["turns"] == 2
    with open_store(str(tmp_path / "log.db"), read_only=True) as stored:
        assert verify_log(stored).ok


@pytest.mark.clause("OUT-1")
def test_a_run_and_a_session_are_handed_out_for_other_tools(forked: Forked) -> None:
    events = file_of(forked, "cloudevents")
    with forked.gateway.http() as client:

        def taken(**params: str) -> httpx.Response:
            return client.get("/debug/api/file", params=params)

        body = taken(session="agent:main:main", what="openai")
        bundle = taken(session="agent:main:main", what="bundle")
        refused = [
            taken(what="otlp"),
            taken(session="agent:main:main", what="log"),
            taken(session="agent:main:main", what="csv"),
        ]

    assert events.headers["content-disposition"].endswith('.jsonl"')
    assert f"exchange:{forked.run}" in {json.loads(line)["subject"] for line in events.text.splitlines()}
    assert body.json()["messages"]
    with zipfile.ZipFile(io.BytesIO(bundle.content)) as archive:
        assert json.loads(archive.read("manifest.json"))["question"] == {"session": "agent:main:main"}
    assert [answer.status_code for answer in refused] == [400, 400, 400]
    assert "give run or session" in refused[0].text
    assert "a log is of a run" in refused[1].text


def test_a_note_is_listed_beside_its_run_and_goes_along_in_the_bundle(forked: Forked) -> None:
    with forked.gateway.http() as client:
        done = client.post(
            "/debug/api/do",
            json={
                "method": "notes.pin",
                "params": {"run": forked.run, "at": f"{forked.run}@turn:2", "text": "<b>Why 3.5?</b>"},
            },
        )
    (note,) = (one for one in forked.ask("notes", run=forked.run)["notes"] if "Why" in one["text"])
    with zipfile.ZipFile(io.BytesIO(file_of(forked, "bundle").content)) as archive:
        kept = archive.read("notes.json").decode()

    assert done.status_code == 200
    assert (note["by"], note["text"]) == ("operator", "<b>Why 3.5?</b>")
    assert note["place"]["text"] == "after turn 2: research has answered, main has not yet"
    assert "<b>Why 3.5?</b>" in kept


def test_a_note_that_was_written_behind_the_place_is_in_the_log_that_is_handed_out(
    forked: Forked, tmp_path: Path
) -> None:
    at = f"{forked.run}@turn:1"
    params = {"run": forked.run, "at": at, "text": "Asked too little."}
    with forked.gateway.http() as client:
        client.post("/debug/api/do", json={"method": "notes.pin", "params": params}).raise_for_status()
    part = tmp_path / "part.db"
    part.write_bytes(file_of(forked, "log", at=at).content)

    with open_store(str(part), read_only=True) as stored:
        notes = [one.event for one in stored.stream(f"notes:{forked.run}")]
        proven = verify_log(stored)
    assert [note.text for note in notes if isinstance(note, NotePinned)] == ["Asked too little."]
    assert proven.ok


@pytest.mark.clause("VIS-4")
def test_a_file_leaves_a_receipt_and_a_limited_credential_gets_none(forked: Forked) -> None:
    assert file_of(forked, "log").content.startswith(b"SQLite format 3")
    forked.system.checkpoint()
    assert "debug.file" in [
        one.event.tool for one in forked.system.log.all() if isinstance(one.event, AccessRecorded)
    ]
    assert forked.ask("file", token=READER, run=forked.run, what="log").status_code == 403
    assert file_of(forked, "nonsense").status_code == 400


def test_a_fork_that_is_none_or_not_within_reach_is_refused(forked: Forked) -> None:
    unknown = forked.ask("run", run=forked.run, fork="00000000")
    limited = forked.ask("run", token=READER, run=forked.run, fork=forked.fork)

    assert (unknown.status_code, limited.status_code) == (400, 403)
    assert "no fork of this log" in unknown.json()["error"]["message"]
