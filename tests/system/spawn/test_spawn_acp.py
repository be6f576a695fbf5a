"""A sub-agent that another runtime runs: only where a host registered one."""

from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_events.facts import SpawnAccepted, SpawnClosed
from support.running import Booth, closed_spawn, one, recorded

MAIN = "agent:main:main"


def spawn(system: SessionSystem, sender: str = MAIN, **given: Any) -> Any:
    arguments = {"task": "count", "runtime": "acp", **given}
    answer: Any = system.tools(sender).call("sessions_spawn", arguments)
    return answer


def started(booth: Booth, *configs: dict[str, Any]) -> tuple[SessionSystem, MemoryChannel]:
    telegram = MemoryChannel()
    system = booth.start({"main": lambda _: "main"}, {"telegram": telegram}, *configs)
    system.inbound(channel="telegram", chat_id="42", text="hi", sender="p", deliver=False)
    return system, telegram


@pytest.mark.clause("SPAWN-1")
def test_the_runtime_that_is_registered_runs_the_child(booth: Booth) -> None:
    turns: list[Turn] = []

    def runtime(turn: Turn) -> str:
        turns.append(turn)
        return "by the runtime"

    system, telegram = started(booth)
    system.register_runtime("acp", runtime)

    answer = spawn(system)

    assert one(closed_spawn(system, answer["runId"]), SpawnClosed).reason == "announced"
    assert answer["childSessionKey"].startswith("agent:main:acp:")
    assert {(turn.session_key, turn.agent_id) for turn in turns} == {(answer["childSessionKey"], "main")}
    (announced,) = telegram.wait_for(1, timeout=20)
    assert "Result: by the runtime" in announced.text
    assert system.status()["agents"] == ["main"]


@pytest.mark.clause("SPAWN-1")
def test_without_one_it_is_refused(booth: Booth) -> None:
    system, _ = started(booth)

    assert spawn(system)["code"] == "not_supported"
    assert recorded(system, SpawnAccepted) == []


@pytest.mark.clause("SPAWN-1")
def test_it_never_gets_files(booth: Booth) -> None:
    system, _ = started(booth, {"tools": {"sessions_spawn": {"attachments": {"enabled": True}}}})
    system.register_runtime("acp", lambda _: "done")

    answer = spawn(system, attachments=[{"name": "a", "content": "x"}])

    assert answer["code"] == "invalid_request"
    assert "attachments" in answer["error"]


@pytest.mark.clause("SPAWN-3", "SPAWN-7")
def test_its_tools_are_those_of_a_child(booth: Booth) -> None:
    system, _ = started(booth)
    system.register_runtime("acp", lambda _: "done")
    child = spawn(system)["childSessionKey"]

    assert system.tools(child).names == ()
    assert spawn(system, child)["status"] in {"error", "forbidden"}


@pytest.mark.clause("SPAWN-1", "KEY-9")
def test_its_runs_are_parked_until_the_runtime_is_there_again(booth: Booth) -> None:
    system, _ = started(booth)
    system.register_runtime("acp", lambda _: "done")
    system.reload({"tools": {"sessions": {"visibility": "all"}}})
    answer = spawn(system)
    closed_spawn(system, answer["runId"])
    queued = system.gateway.call(
        "agent", {"sessionKey": answer["childSessionKey"], "message": "more", "idempotencyKey": "k"}
    )
    assert (
        system.gateway.call("agent.wait", {"runId": queued["runId"], "timeoutMs": 20_000})["reply"] == "done"
    )
    system.close()

    again, _ = started(booth)
    parked = again.gateway.call(
        "agent", {"sessionKey": answer["childSessionKey"], "message": "and more", "idempotencyKey": "l"}
    )
    assert (
        again.gateway.call("agent.wait", {"runId": parked["runId"], "timeoutMs": 0})["runState"] == "queued"
    )
    again.register_runtime("acp", lambda _: "there again")
    waited = again.gateway.call("agent.wait", {"runId": parked["runId"], "timeoutMs": 20_000})

    assert waited["reply"] == "there again"
