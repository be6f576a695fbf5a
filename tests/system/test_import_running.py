"""An import into a running system: its sessions go on, also those that are awake and get something from it."""

import threading
from pathlib import Path
from typing import Any

import pytest

from intersession import ImportFailed, SessionSystem, ToolRefused, echo
from intersession_actors.outside.agents.turn import Turn
from intersession_actors.owners.session.folding import SHAPE
from intersession_events.transcripts.openclaw import appending
from support.openclaw.samples import HOUSEHOLD, header, message, said, write_state
from support.running import QUIET, WAIT, Booth
from support.transacting import transact

NOTES = "agent:main:notes"
BESIDE = "agent:main:imported-s-1"


@pytest.fixture
def seen() -> list[Turn]:
    return []


@pytest.fixture
def system(booth: Booth, seen: list[Turn]) -> SessionSystem:
    def main(turn: Turn) -> str:
        seen.append(turn)
        return f"re: {turn.message}"

    return booth.start({"main": main}, None, QUIET)


def notes(root: Path, *texts: str, **entry: Any) -> Path:
    lines = [message(f"s-1-{number}", said(text), number) for number, text in enumerate(texts)]
    entries = {NOTES: {"sessionId": "s-1", "updatedAt": 1772442000000 + len(texts), **entry}}
    return write_state(root, [header("s-1"), *lines], entries=entries)


def call(system: SessionSystem, method: str, **params: Any) -> Any:
    answer = system.gateway.call(method, params)
    assert "code" not in answer, answer
    return answer


def talk(system: SessionSystem, text: str) -> str:
    """Say something to the session and wait for its answer."""
    asked = call(system, "chat.send", sessionKey=NOTES, message=text, idempotencyKey=text)
    ended = call(system, "agent.wait", runId=asked["runId"], timeoutMs=round(WAIT * 1000))
    return str(ended["status"])


def texts(system: SessionSystem, key: str) -> list[str]:
    messages = call(system, "chat.history", sessionKey=key)["messages"]
    return [
        each["content"] if isinstance(each["content"], str) else each["content"][0]["text"]
        for each in messages
    ]


@pytest.mark.clause("IMP-1")
def test_a_session_that_is_awake_knows_what_an_import_brought_it(
    system: SessionSystem, seen: list[Turn], tmp_path: Path
) -> None:
    system.import_openclaw(notes(tmp_path, "one", displayName="Theirs"))
    call(system, "sessions.patch", key=NOTES, displayName="Ours")

    report = system.import_openclaw(notes(tmp_path, "one", "two", displayName="Theirs"))
    # To whoever had not heard of the import this would change nothing.
    call(system, "sessions.patch", key=NOTES, displayName="Ours")
    status = talk(system, "three")

    row = system.service.sessions.get(NOTES)
    assert report.appended > 0
    assert row is not None
    assert (status, row.display_name) == ("ok", "Ours")
    assert texts(system, NOTES) == ["one", "two", "three", "re: three"]
    assert [each.content for each in seen[0].transcript] == ["one", "two"]
    assert system.status()["degraded"] == {}


@pytest.mark.clause("IMP-1")
def test_a_session_that_was_used_since_its_import_goes_on_and_the_state_is_kept_beside(
    system: SessionSystem, tmp_path: Path
) -> None:
    system.import_openclaw(notes(tmp_path, "one"))
    talk(system, "here")

    report = system.import_openclaw(notes(tmp_path, "one", "there"))
    again = system.import_openclaw(notes(tmp_path, "one", "there"))
    status = talk(system, "here again")

    assert [item.key for item in report.renamed] == [BESIDE]
    assert again.already_imported
    assert status == "ok"
    assert texts(system, NOTES) == ["one", "here", "re: here", "here again", "re: here again"]
    assert texts(system, BESIDE) == ["one", "there"]
    assert system.status()["degraded"] == {}


@pytest.mark.clause("IMP-1")
def test_a_session_that_is_used_while_it_is_imported_loses_and_doubles_nothing(
    system: SessionSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appending, "BATCH", 3)
    state = notes(tmp_path, "one", "two", "three", "four")
    answered: list[str] = []

    def progress(_done: int, _of: int) -> None:
        if not answered:
            answered.append(talk(system, "here"))

    system.import_openclaw(state, progress=progress)

    assert answered == ["ok"]
    assert texts(system, NOTES) == ["one", "here", "re: here"]
    assert texts(system, BESIDE) == ["one", "two", "three", "four"]
    assert system.import_openclaw(state).already_imported
    assert talk(system, "and on") == "ok"
    assert system.status()["degraded"] == {}
    assert system.status()["setAside"] == []


def test_one_import_at_a_time(system: SessionSystem, tmp_path: Path) -> None:
    refused: list[str] = []

    def progress(_done: int, _of: int) -> None:
        with pytest.raises(ToolRefused) as second:
            system.import_openclaw(HOUSEHOLD)
        refused.append(second.value.code)

    system.import_openclaw(notes(tmp_path, "one"), progress=progress)

    assert set(refused) == {"busy"}
    assert system.import_openclaw(HOUSEHOLD).sessions > 1


def test_what_can_not_be_imported_is_an_error_and_the_next_import_works(
    system: SessionSystem, tmp_path: Path
) -> None:
    with pytest.raises(ImportFailed, match="has no sessions in it"):
        system.import_openclaw(tmp_path)

    assert system.import_openclaw(str(HOUSEHOLD)).sessions > 1


def test_imported_flows_are_left_alone_by_those_who_lead_flows(booth: Booth) -> None:
    reached = threading.Event()

    def never(_turn: Turn) -> str:
        reached.set()
        return "what?"

    agents = dict.fromkeys(("home", "desk", "main"), never)
    with booth.start(agents) as system:
        system.import_openclaw(HOUSEHOLD)
    with booth.start(agents | {"echo": echo()}) as system:
        flows = system.service.flows

        assert not flows.open_exchanges()
        assert not flows.open_spawns()
        assert not system.service.runs.open_runs()
    assert not reached.is_set()


def test_a_long_session_that_was_imported_wakes_from_a_snapshot(
    system: SessionSystem, seen: list[Turn], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("intersession_actors.owners.session.snapshots.EVERY", 20)
    monkeypatch.setattr("intersession_events.stores.portable.snapshots.states.EVERY", 20)

    system.import_openclaw(notes(tmp_path, *map(str, range(30))))
    transact(system.log, lambda _: None)
    versions = system.log.states.versions(f"session:{NOTES}", SHAPE)
    talk(system, "and?")

    assert versions
    assert [each.content for each in seen[0].transcript] == [str(number) for number in range(30)]
