"""Sub-agents that are waited for, listed, steered and cancelled, and whose results come back to the session (CHILD)."""

from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_events.facts import (
    AnnounceRequested,
    DeliveryDecided,
    RunCompleted,
    RunInterrupted,
    RunQueued,
    RunStarted,
    SpawnClaimed,
    SpawnClosed,
    text_of,
)
from support.running import WAIT, Booth, Gate, recorded, wait_for, wait_for_number

MAIN = "agent:main:main"
LED: dict[str, Any] = {"tools": {"alsoAllow": ["subagents", "sessions_yield"]}}
SCHEMA = {"type": "object", "properties": {"disks": {"type": "integer"}}, "required": ["disks"]}


def is_child(turn: Turn) -> bool:
    return ":subagent:" in turn.session_key


def spawn(system: SessionSystem, **more: Any) -> dict[str, Any]:
    return dict(system.tools(MAIN).call("sessions_spawn", {"task": "count the disks", **more}))


def lead(system: SessionSystem, **given: Any) -> dict[str, Any]:
    answer: Any = system.tools(MAIN).call("subagents", given)
    return dict(answer)


@pytest.mark.clause("CHILD-1")
def test_spawn_that_waits_has_the_result_as_its_answer_and_nothing_is_announced(log_url: str) -> None:
    with Booth(log_url) as booth:
        system = booth.start({"main": lambda _: "three"}, {"chat": MemoryChannel()})
        answer = spawn(system, wait=WAIT)
        closed = wait_for(system, SpawnClosed)
        announces = recorded(system, AnnounceRequested)
        replayed = system.debug.replay()

    assert (answer["status"], answer["reply"]) == ("ok", "three")
    assert closed.reason == "returned"
    assert not announces
    assert replayed["same"], replayed["firstDifference"]


@pytest.mark.clause("CHILD-1")
def test_wait_that_runs_out_says_so_and_the_result_is_announced(log_url: str) -> None:
    gate = Gate()
    with Booth(log_url) as booth:
        system = booth.start({"main": gate.saying("three")})
        answer = spawn(system, wait=0.001)
        gate.open()
        closed = wait_for(system, SpawnClosed)

    assert answer["status"] == "timeout"
    assert "is announced" in answer["error"]
    assert closed.reason == "handed_over"


@pytest.mark.clause("CHILD-1")
@pytest.mark.parametrize(
    ("answers", "status"),
    [(['{"disks": 3}'], "ok"), (["three", '```json\n{"disks": 3}\n```'], "ok"), (["three", "four"], "error")],
)
def test_result_fits_the_schema_or_is_asked_for_once_more(
    log_url: str, answers: list[str], status: str
) -> None:
    said, left = list[str](), iter(answers)

    def child(turn: Turn) -> str:
        said.append(turn.message)
        return next(left)

    with Booth(log_url) as booth:
        system = booth.start({"main": child})
        answer = spawn(system, wait=WAIT, outputSchema=SCHEMA)

    assert answer["status"] == status
    assert answer.get("output") == ({"disks": 3} if status == "ok" else None)
    assert ("does not fit outputSchema, also when it was told so" in answer.get("error", "")) == (
        status == "error"
    )
    assert '"required":["disks"]' in said[0]
    assert len(said) == len(answers)
    assert len(said) == 1 or said[1].startswith("Your answer does not fit: it is no JSON")


@pytest.mark.clause("CHILD-1")
@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"outputSchema": SCHEMA}, "outputSchema: it needs a wait"),
        ({"outputSchema": {"type": 7}, "wait": 1}, "outputSchema: it is no JSON schema"),
        ({"outputSchema": {"pattern": "(a+)+$"}, "wait": 1}, "outputSchema: pattern is not taken"),
        ({"outputSchema": {"enum": ["x" * 20_000]}, "wait": 1}, "outputSchema: more than 16384 bytes"),
        ({"wait": -1}, "wait: "),
    ],
)
def test_bad_waits_and_schemas_are_refused_and_leave_nothing(
    log_url: str, given: dict[str, Any], error: str
) -> None:
    with Booth(log_url) as booth:
        system = booth.start({"main": lambda _: "three"})
        answer = spawn(system, **given)
        queued = recorded(system, RunQueued)

    assert answer["status"] == "error"
    assert answer["error"].startswith(error)
    assert not queued


@pytest.mark.clause("CHILD-2")
def test_children_are_listed_and_cancelled_and_nobody_is_told_of_those(log_url: str) -> None:
    gate = Gate()
    with Booth(log_url) as booth:
        system = booth.start({"main": gate.saying("three")}, None, LED)
        first = spawn(system, label="first")
        spawn(system, label="second")
        gate.reached()
        gate.reached()
        listed = lead(system)
        unknown = lead(system, action="cancel", target="third")
        cancelled = lead(system, action="kill", target="FIRST")
        closed = wait_for(system, SpawnClosed)
        again = lead(system, action="cancel", target="first")
        rest = lead(system, action="cancel", target="all")
        wait_for_number(system, SpawnClosed, 2)
        after = lead(system)
        stranger: Any = system.tools("agent:main:dm").call("subagents", {})
        announces = recorded(system, AnnounceRequested)
        gate.open()
        replayed = system.debug.replay()

    assert [(one["label"], one["status"]) for one in listed["active"]] == [
        ("second", "running"),
        ("first", "running"),
    ]
    assert unknown["error"] == "target: you have no sub-agent 'third', list them"
    assert [one["sessionKey"] for one in cancelled["cancelled"]] == [first["childSessionKey"]]
    assert closed.reason == "cancelled"
    assert again["status"] == "done"
    assert len(rest["cancelled"]) == 1
    assert [one["status"] for one in after["recent"]] == ["aborted", "aborted"]
    assert stranger.get("total", 0) == 0
    assert not announces
    assert replayed["same"], replayed["firstDifference"]


@pytest.mark.clause("CHILD-3")
def test_steered_child_begins_again_with_the_message(log_url: str) -> None:
    gate, shown = Gate(), list[str]()

    def child(turn: Turn) -> str:
        if turn.attempt == 1:
            gate.stop(turn)
        shown.append(turn.prompt())
        return f"attempt {turn.attempt}"

    with Booth(log_url) as booth:
        system = booth.start({"main": child}, None, LED)
        spawned = spawn(system)
        gate.reached()
        steered = lead(system, action="steer", target="last", message="count the broken ones alone")
        done = wait_for(system, RunCompleted, lambda one: one.run_id == spawned["runId"])
        cut = recorded(system, RunInterrupted)
        lens = system.debug.lens(spawned["runId"])
        late = lead(system, action="steer", target=spawned["childSessionKey"], message="and more")
        gate.open()
        replayed = system.debug.replay()

    assert (steered["status"], steered["runId"]) == ("accepted", spawned["runId"])
    assert done.reply == "attempt 2"
    assert "count the broken ones alone" in shown[0]
    assert "count the disks" in shown[0]
    assert [one.steered_by for one in cut] == [MAIN]
    assert lens["asRecorded"]
    assert late["error"].startswith("target: its run is over")
    assert replayed["same"], replayed["firstDifference"]


@pytest.mark.clause("CHILD-4")
def test_results_of_a_turn_that_yields_come_to_the_session_and_its_answer_to_the_chat(log_url: str) -> None:
    gate = Gate()
    yields: list[Any] = []

    def agent(turn: Turn) -> str:
        if is_child(turn):
            gate.stop(turn)
            return "three" if turn.step == "message" else "three disks"
        if turn.message == "how many disks?":
            turn.tools.call("sessions_spawn", {"task": "count the disks"})
            yields.append(turn.tools.call("sessions_yield", {"acknowledgment": "counting"}))
            return "NO_REPLY"
        if turn.message == "and now?":
            yields.append(turn.tools.call("sessions_yield", {}))
            return "NO_REPLY"
        return f"the result: {'three disks' in turn.message}"

    chat = MemoryChannel()
    with Booth(log_url) as booth:
        system = booth.start({"main": agent}, {"chat": chat}, LED)
        for text in ("how many disks?", "and now?"):
            asked = system.inbound(channel="chat", chat_id="7", sender="ann", text=text)
            system.gateway.call("agent.wait", {"runId": asked["runId"], "timeoutMs": 20_000})
        gate.open()
        closed = wait_for(system, SpawnClosed)
        sent = wait_for(system, DeliveryDecided)
        claimed = recorded(system, SpawnClaimed)
        handed = [one for one in recorded(system, RunQueued) if one.spawn_id and one.route is not None]
        replayed = system.debug.replay()

    assert (yields[0]["status"], yields[0]["acknowledgment"]) == ("yielded", "counting")
    assert yields[1]["status"] == "already_pending"
    assert closed.reason == "handed_over"
    assert len(claimed) == 1
    assert len(handed) == 1
    assert handed[0].message is not None
    assert "three disks" in text_of(handed[0].message)
    assert (sent.text, sent.route.to) == ("the result: True", "7")
    assert replayed["same"], replayed["firstDifference"]


@pytest.mark.clause("CHILD-2")
def test_tools_that_lead_children_are_given_where_settings_name_them(log_url: str) -> None:
    with Booth(log_url) as booth:
        system = booth.start({"main": lambda _: "ok"})
        usual = system.tools(MAIN).names
        refused: Any = system.tools(MAIN).call("subagents", {})
        system.close(grace=0)
        system = booth.start({"main": lambda _: "ok"}, None, {"tools": {"profile": "coding"}})
        coding = system.tools(MAIN).names
        nothing: Any = system.tools(MAIN).call("sessions_yield", {})

    assert "subagents" not in usual
    assert refused["status"] == "error"
    assert {"subagents", "sessions_yield"} <= {*coding}
    assert nothing["error"] == "tool: only an agent in its turn can yield, call it from there"


@pytest.mark.clause("CHILD-1")
def test_waiting_spawn_goes_on_after_a_restart(log_url: str) -> None:
    gate, answers = Gate(), list[Any]()

    def agent(turn: Turn) -> str:
        if is_child(turn):
            if turn.attempt == 1:
                gate.stop(turn)
            return "three"
        answers.append(turn.tools.call("sessions_spawn", {"task": "count", "wait": WAIT}))
        return "done"

    with Booth(log_url) as booth:
        system = booth.start({"main": agent}, {"chat": MemoryChannel()})
        system.inbound(channel="chat", chat_id="7", sender="ann", text="go")
        gate.reached()
        system.close(grace=0)
        gate.open()
        system = booth.start({"main": agent}, {"chat": MemoryChannel()})
        done = wait_for(system, RunCompleted, lambda one: one.reply == "done")
        children = [one for one in recorded(system, RunStarted) if one.attempt == 1]

    assert done.attempt == 2
    assert answers[-1]["reply"] == "three"
    assert len(children) == 2


@pytest.mark.clause("CHILD-5")
def test_status_of_a_child_tells_what_has_happened_since(log_url: str) -> None:
    gate = Gate()
    config = {"tools": {"alsoAllow": ["session_status"], "sessions": {"visibility": "tree"}}}
    with Booth(log_url) as booth:
        system = booth.start({"main": gate.saying("three")}, None, config)
        child = spawn(system)["childSessionKey"]
        gate.reached()
        tools: Any = system.tools(MAIN)
        at_work = tools.call("session_status", {"sessionKey": child})
        own = tools.call("session_status", {})
        gate.open()
        wait_for(system, SpawnClosed)
        asked = {"sessionKey": child, "changesSince": at_work["stateVersion"]}
        over = tools.call("session_status", asked)
        nothing = tools.call("session_status", asked | {"changesSince": over["stateVersion"]})
        future = tools.call("session_status", asked | {"changesSince": 10_000})
        stranger: Any = system.tools("agent:ops:main").call("session_status", {"sessionKey": child})

    assert (at_work["state"], at_work["running"]["runId"]) == ("running", over["changes"][0]["runId"])
    assert (own["status"], own["children"]) == ("ok", 1)
    assert over["state"] == "idle"
    assert over["changes"][0]["type"] == "run_completed"
    assert nothing["changes"] == []
    assert future["error"].startswith("changesSince: 10000 has not come yet")
    assert stranger["code"] in {"not_visible", "forbidden"}
