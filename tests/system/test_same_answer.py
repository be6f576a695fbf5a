"""A call that is made again under its key has the answer that it had, whatever has happened since (SEND-11, finding A12)."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_events.facts import RunQueued
from support.running import QUIET, Booth, Gate, recorded

MAIN, NOTES = "agent:main:main", "agent:ops:notes"
NARROW: dict[str, Any] = {"tools": {"sessions": {"visibility": "self"}}}


def echoed(turn: Turn) -> str:
    return f"heard {turn.message}"


AGENTS = {"main": echoed, "ops": echoed}


def opened(booth: Booth) -> SessionSystem:
    system = booth.start(AGENTS, None, QUIET)
    system.gateway.call("sessions.patch", {"key": NOTES, "label": "notes"})
    return system


def send(system: SessionSystem, sender: str | None = MAIN, **named: object) -> Any:
    call = {"message": "pay", "idempotencyKey": "k1", **named}
    answer: Any = system.tools(sender).call("sessions_send", call)
    return answer


def session_id(system: SessionSystem) -> str:
    row = system.service.sessions.get(NOTES)
    assert row is not None
    return row.session_id


@pytest.mark.clause("SEND-11", "O4")
@pytest.mark.parametrize("by", ["sessionKey", "sessionId", "label"])
@pytest.mark.parametrize("change", ["reset", "deleted", "renamed", "route"])
def test_a_send_has_its_answer_whatever_became_of_the_target(booth: Booth, by: str, change: str) -> None:
    system = opened(booth)
    named = {
        "sessionKey": {"sessionKey": NOTES},
        "sessionId": {"sessionKey": session_id(system)},
        "label": {"label": "notes"},
    }[by]
    before = send(system, **named)

    match change:
        case "reset":
            system.gateway.call("sessions.reset", {"key": NOTES})
        case "deleted":
            system.gateway.call("sessions.delete", {"key": NOTES})
        case "renamed":
            system.gateway.call("sessions.patch", {"key": NOTES, "label": None})
            system.gateway.call("sessions.patch", {"key": "agent:ops:other", "label": "notes"})
        case _:
            system.inbound(channel="x", chat_id="1", text="hi", sender="p", agent_id="ops", deliver=False)

    assert before["reply"] == "heard pay"
    assert send(system, **named) == before
    assert len(recorded(system, RunQueued)) == 1


@pytest.mark.clause("SEND-11")
def test_a_send_has_its_answer_where_the_target_can_not_be_seen_any_more(booth: Booth) -> None:
    first = opened(booth)
    before = send(first, sessionKey=NOTES)
    first.close()
    second = booth.start(AGENTS, None, QUIET, NARROW)

    assert send(second, sessionKey=NOTES) == before


@pytest.mark.clause("SEND-11", "HIST-6")
def test_nobody_else_hears_of_the_answer(booth: Booth) -> None:
    first = opened(booth)
    send(first, sessionKey=NOTES)
    first.close()
    second = booth.start(AGENTS, None, QUIET, NARROW)

    other = send(second, "agent:main:stranger", sessionKey=NOTES)
    other_words = second.tools(MAIN).call(
        "sessions_send", {"message": "pay twice", "idempotencyKey": "k1", "sessionKey": NOTES}
    )

    assert "runId" not in other
    assert other_words["status"] != "ok"


@pytest.mark.clause("SEND-11", "SEND-10")
def test_a_send_that_is_still_at_work_is_not_refused_while_its_target_waits_for_the_caller(
    booth: Booth,
) -> None:
    gate = Gate()
    main = gate.saying("done")

    def ops(turn: Turn) -> str:
        turn.tools.call("sessions_send", {"sessionKey": MAIN, "message": "and you?", "timeoutSeconds": 20})
        return "paid"

    system = booth.start({"main": main, "ops": ops}, None, QUIET)
    first = send(system, sessionKey="agent:ops:main", timeoutSeconds=0)
    gate.reached()
    again = send(system, sessionKey="agent:ops:main", timeoutSeconds=20)
    fresh = send(system, sessionKey="agent:ops:main", timeoutSeconds=20, idempotencyKey="k2")
    gate.open()

    assert (again.get("status"), again["runId"]) == ("accepted", first["runId"])
    assert fresh["code"] == "cycle"


@pytest.mark.clause("SEND-11", "SEND-10")
def test_a_send_has_its_answer_while_the_target_waits_for_the_caller(booth: Booth) -> None:
    gate = Gate()

    def main(turn: Turn) -> str:
        if turn.message == "wait":
            gate.stop(turn)
        return "done"

    system = booth.start({"main": main, "ops": echoed}, None, QUIET)
    system.gateway.call("sessions.patch", {"key": NOTES, "label": "notes"})
    before = send(system, sessionKey=NOTES)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(
            system.tools(NOTES).call, "sessions_send", {"sessionKey": MAIN, "message": "wait"}
        )
        gate.reached()
        again = send(system, sessionKey=NOTES)
        fresh = system.tools(MAIN).call("sessions_send", {"sessionKey": NOTES, "message": "new"})
        gate.open()
        waiting.result(20)

    assert again == before
    assert fresh["code"] == "cycle"


@pytest.mark.clause("SEND-11", "GATE-1")
@pytest.mark.parametrize("method", ["agent", "chat.send"])
@pytest.mark.parametrize("change", ["sessions.reset", "sessions.delete"])
def test_a_call_of_the_gateway_has_its_answer_whatever_became_of_the_session(
    booth: Booth, method: str, change: str
) -> None:
    system = opened(booth)
    call = {"sessionKey": session_id(system), "message": "pay", "idempotencyKey": "k1"}
    first = system.gateway.call(method, call)
    system.gateway.call("agent.wait", {"runId": first["runId"]})
    before = system.gateway.call(method, call)
    system.gateway.call(change, {"key": NOTES})

    assert system.gateway.call(method, call) == before
    assert before["runId"] == first["runId"]
    assert system.gateway.call(method, call | {"message": "more"})["status"] == "error"


@pytest.mark.clause("SEND-11", "GATE-1")
@pytest.mark.parametrize(
    ("method", "other"),
    [
        ("agent", {"message": "pay twice"}),
        ("agent", {"extraSystemPrompt": "Be brief."}),
        ("agent", {"thinking": "high"}),
        ("agent", {"deliver": True, "channel": "x", "to": "1"}),
        ("agent", {"label": "other"}),
        ("agent", {"sessionKey": MAIN}),
        ("chat.send", {"message": "pay twice"}),
        ("chat.send", {"thinking": "high"}),
        ("chat.send", {"deliver": True}),
        ("send", {"message": "pay twice"}),
        ("send", {"to": "2"}),
        ("send", {"threadId": "3"}),
    ],
)
def test_a_key_that_comes_with_something_else_is_refused(
    booth: Booth, method: str, other: dict[str, Any]
) -> None:
    system = booth.start(AGENTS, {"x": MemoryChannel()}, QUIET)
    call: dict[str, Any] = {"message": "pay", "idempotencyKey": "k1", "sessionKey": "agent:ops:main"}
    if method == "send":
        call |= {"channel": "x", "to": "1"}
    first = system.gateway.call(method, call)
    again = system.gateway.call(method, call)
    refused = system.gateway.call(method, call | other)

    name = "messageId" if method == "send" else "runId"
    assert again[name] == first[name]
    assert (refused["status"], refused["code"]) == ("error", "idempotency_conflict")


@pytest.mark.clause("SEND-11", "GATE-1")
def test_how_long_and_for_whom_a_call_waits_is_not_what_it_says(booth: Booth) -> None:
    system = booth.start(AGENTS, None, QUIET)
    call: dict[str, Any] = {"message": "pay", "idempotencyKey": "k1", "sessionKey": "agent:ops:main"}
    first = system.gateway.call("agent", call)
    again = system.gateway.call("agent", call | {"timeout": 30, "busy": "interrupt"})

    assert again["runId"] == first["runId"]
    assert len(recorded(system, RunQueued)) == 1
