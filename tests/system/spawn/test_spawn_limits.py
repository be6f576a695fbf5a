"""How many sub-agents there may be, and how deep: exact, also when many are asked for at once."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from intersession import MemoryChannel, Reply, SessionSystem, Turn
from intersession_events.facts import (
    ResultHanded,
    RunQueued,
    RunStarted,
    SessionOpened,
    SpawnAccepted,
)
from support.fakes import ManualClock
from support.running import Booth, Gate, all_said, closed_spawn, pass_time, recorded, wait_for

MAIN = "agent:main:main"
AT_ONCE = 20


def subagents(**settings: Any) -> dict[str, Any]:
    return {"agents": {"defaults": {"subagents": settings}}}


def started(booth: Booth, agent: Any, *configs: dict[str, Any], **given: Any) -> SessionSystem:
    system = booth.start({"main": agent}, {"telegram": MemoryChannel()}, *configs, **given)
    system.inbound(channel="telegram", chat_id="42", text="hi", sender="p", deliver=False)
    return system


def spawn(system: SessionSystem, sender: str = MAIN, **given: Any) -> Any:
    answer: Any = system.tools(sender).call("sessions_spawn", {"task": "count", **given})
    return answer


@pytest.mark.clause("SPAWN-3", "X5")
def test_no_more_than_the_limit_come_through_when_many_are_asked_for_at_once(booth: Booth) -> None:
    """B10."""
    gate = Gate()

    def slow(turn: Turn) -> str | Reply:
        if turn.step == "message" and ":subagent:" in turn.session_key:
            gate.stop(turn)
        return "done"

    system = started(booth, slow, subagents(maxChildrenPerAgent=3))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda number: spawn(system, task=f"{number}"), range(AT_ONCE)))

    assert sorted(answer["status"] for answer in answers) == ["accepted"] * 3 + ["forbidden"] * (AT_ONCE - 3)
    refused = [answer for answer in answers if answer["status"] == "forbidden"]
    assert {answer["code"] for answer in refused} == {"spawn_limit"}
    assert all("maxChildrenPerAgent" in answer["error"] for answer in refused)
    assert len(recorded(system, SpawnAccepted)) == 3
    gate.open()
    for answer in answers:
        if answer["status"] == "accepted":
            closed_spawn(system, answer["runId"])
    assert spawn(system)["status"] == "accepted"


@pytest.mark.clause("SPAWN-3", "SPAWN-6")
def test_the_same_spawn_asked_for_at_once_is_one(booth: Booth) -> None:
    gate = Gate()
    slow = gate.saying("done")
    system = started(booth, slow, subagents(maxChildrenPerAgent=1))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: spawn(system, idempotencyKey="k"), range(8)))

    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["status"] == "accepted"
    gate.open()


@pytest.mark.clause("SPAWN-3", "SPAWN-9")
def test_with_a_greater_depth_a_child_starts_children_and_gets_their_results(booth: Booth) -> None:
    refusals: list[str] = []

    def agent(turn: Turn) -> str | Reply:
        if turn.step == "announce":
            return "all of it is done"
        if turn.message == "count" and ":subagent:" in turn.session_key:
            return str(turn.tools.call("sessions_spawn", {"task": "a part"})["status"])
        if turn.message == "a part":
            refusals.append(turn.tools.call("sessions_spawn", {"task": "a part of it"})["code"])
        return "read"

    given = {"tools": {"subagents": {"tools": {"alsoAllow": ["sessions_spawn"]}}}}
    system = started(booth, agent, subagents(maxSpawnDepth=2), given)

    answer = spawn(system)
    closed_spawn(system, answer["runId"])
    handed = wait_for(system, ResultHanded)

    assert "maxSpawnDepth" in " ".join(system.notices)
    child, part = recorded(system, SpawnAccepted)
    assert (child.depth, part.depth, part.requester) == (1, 2, child.child)
    assert handed.requester == child.child
    told = next(
        event.message
        for event in all_said(system, f"session:{child.child}")
        if event.message.id == handed.message_id
    )
    assert told.provenance is not None
    assert told.provenance.kind == "inter_session"
    # The child of the child stands at the depth that is allowed; it is not even offered the tool.
    assert "all of it is done" in str(told.content)
    assert refusals == ["subagent_spawn"]
    opened = {event.key: event.spawn_depth for event in recorded(system, SessionOpened)}
    assert opened == {MAIN: 0, child.child: 1, part.child: 2}


@pytest.mark.clause("SPAWN-8")
def test_the_run_timeout_of_the_configuration_holds_where_none_is_given(booth: Booth) -> None:
    clock, gate = ManualClock(), Gate()
    system = started(booth, gate.saying("done", "message"), subagents(runTimeoutSeconds=30), clock=clock)
    own, default, none = spawn(system, runTimeoutSeconds=5), spawn(system), spawn(system, runTimeoutSeconds=0)

    for _ in range(3):
        gate.reached()
    limits = {event.run_id: event.timeout_ms for event in recorded(system, RunQueued)}
    assert [limits[answer["runId"]] for answer in (own, default, none)] == [5_000, 30_000, 0]
    assert len(recorded(system, RunStarted)) == 3
    pass_time(system, clock, 30_000)
    for answer in (own, default):
        assert (
            system.gateway.call("agent.wait", {"runId": answer["runId"], "timeoutMs": 20_000})["status"]
            == "timeout"
        )
    assert (
        system.gateway.call("agent.wait", {"runId": none["runId"], "timeoutMs": 0})["runState"] == "running"
    )
    gate.open()


@pytest.mark.clause("SPAWN-7", "SPAWN-3")
def test_the_operator_gets_no_tool_as_a_child_that_the_child_has_not(booth: Booth) -> None:
    gate = Gate()
    slow = gate.saying("done")
    system = started(booth, slow, {"tools": {"subagents": {"tools": {"alsoAllow": ["*"]}}}})
    child = spawn(system)["childSessionKey"]

    assert "sessions_spawn" not in system.tools(child).names
    assert "sessions_send" in system.tools(child).names
    assert spawn(system, child)["status"] in {"error", "forbidden"}
    gate.open()


@pytest.mark.clause("HIST-7", "SPAWN-11")
def test_the_history_of_an_archived_child_is_read_by_its_session_id(booth: Booth) -> None:
    system = started(booth, lambda turn: f"did {turn.message}")
    answer = spawn(system, cleanup="delete", label="counter")
    closed_spawn(system, answer["runId"])
    (accepted,) = recorded(system, SpawnAccepted)
    tools = system.tools(MAIN)
    while tools.call("sessions_list", {"label": "counter"})["count"]:
        system.log.wait_for(system.log.head() + 1, timeout=0.05)

    by_key = tools.call("sessions_history", {"sessionKey": answer["childSessionKey"]})
    by_id = tools.call("sessions_history", {"sessionKey": accepted.child_session_id})
    sent = tools.call("sessions_send", {"sessionKey": answer["childSessionKey"], "message": "you?"})

    assert by_key["code"] == sent["code"] == "not_visible"
    assert [message["role"] for message in by_id["messages"]][:2] == ["user", "assistant"]
    assert by_id["messages"][0]["content"] == "count"
