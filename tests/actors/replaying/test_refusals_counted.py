"""A refusal begins nothing that could be decided again: each answer of a sealed replay says how many there were, of which kind."""

from pathlib import Path

import pytest

from intersession import SessionSystem, Turn, open_log, replay_file
from intersession_events.facts import AccessRecorded
from support.doors.command_line import ran
from support.running import SEES_ALL, merged, wait_for

MAIN = "agent:main:main"
CLOSED = {
    "agents": {"list": [{"id": "main", "default": True}, {"id": "desk"}]},
    "tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": False}},
}


def asks(turn: Turn) -> str:
    for _ in range(2):
        answer = turn.tools.call("sessions_send", {"sessionKey": "agent:desk:main", "message": "hello?"})
        assert answer["status"] == "forbidden", answer
    gone = turn.tools.call("sessions_send", {"sessionKey": "agent:main:nobody", "message": "hello?"})
    return f"nobody answers: {gone.get('code')}"


@pytest.mark.clause("SEAL-2")
def test_what_was_refused_is_counted_in_the_answer_of_each_replay(tmp_path: Path) -> None:
    store = tmp_path / "log.db"
    with SessionSystem(store, agents={"main": asks, "desk": lambda _: "yes"}, config=CLOSED) as system:
        system.inbound(channel="x", chat_id="2", text="hi", sender="ben", agent_id="desk", wait=20)
        asked = system.inbound(channel="x", chat_id="1", text="go", sender="ann", wait=20)
        assert asked["reply"] == "nobody answers: not_visible"
        told = system.gateway.perform("debug.replay", {"run": asked["runId"]})["notJudged"]

    said = "refusals, which are taken as they were (forbidden 2, not_visible 1): 3"
    assert told == [said]
    with open_log(store) as log:
        assert log.debug.replay()["notJudged"] == [said]
    assert f"not judged: {said}" in ran("replay", asked["runId"], "--sealed", "--store", store).out
    ran("export-test", asked["runId"], "-o", tmp_path / "test_it.py", "--store", store)
    assert replay_file(tmp_path / "test_it.jsonl")["notJudged"] == [said]


@pytest.mark.clause("SEAL-2")
def test_what_a_guard_refused_is_counted_once_though_a_receipt_says_it_too(tmp_path: Path) -> None:
    store = tmp_path / "log.db"
    limits = {"session": {"agentToAgent": {"limits": {"runs": 1}}}}

    def sends(turn: Turn) -> str:
        answer = turn.tools.call("sessions_send", {"agentId": "desk", "message": "hello?"})
        return str(answer.get("code"))

    config = merged(SEES_ALL, {"agents": CLOSED["agents"]}, limits)
    with SessionSystem(store, agents={"main": sends, "desk": lambda _: "yes"}, config=config) as system:
        assert system.inbound(channel="x", chat_id="1", text="go", sender="ann", wait=20)["reply"] == "limit"
    with open_log(store) as log:
        assert log.debug.replay()["notJudged"] == ["refusals, which are taken as they were (limit 1): 1"]


@pytest.mark.clause("SEAL-2")
def test_what_a_door_refused_whom_no_run_asked_for_is_counted_by_its_receipt(tmp_path: Path) -> None:
    store = tmp_path / "log.db"
    with SessionSystem(store, agents={"main": asks, "desk": lambda _: "yes"}, config=CLOSED) as system:
        asked = system.inbound(channel="x", chat_id="1", text="go", sender="ann", wait=20)
        nobody = {"sessionKey": "agent:nobody:main", "message": "hi", "idempotencyKey": "1"}
        assert system.gateway.call("chat.send", nobody)["code"] == "not_visible"
        shown = system.tools(MAIN).call("sessions_history", {"sessionKey": "agent:desk:main"})
        assert shown["status"] == "forbidden"
        wait_for(system, AccessRecorded, lambda receipt: receipt.tool == "sessions_history")

    with open_log(store) as log:
        (of_run,) = log.debug.replay(run=str(asked["runId"]))["notJudged"]
        (of_all,) = log.debug.replay()["notJudged"]
    assert of_run == "refusals, which are taken as they were (forbidden 2, not_visible 1): 3"
    assert of_all == "refusals, which are taken as they were (forbidden 3, not_visible 2): 5"
