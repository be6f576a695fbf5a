"""Held tool calls over the network, on the command line and on the page: who sees and releases them (ASK)."""

from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_events.facts import RunCompleted, ToolCallHeld, ToolCallReleased
from support.doors.gateway_live import LiveGateway, credential
from support.running import SEES_ALL, Booth, merged, wait_for

ANN, BOB, READER = "a-token-of-ann", "a-token-of-bob", "a-token-that-reads-all"


CONFIG: dict[str, Any] = {
    "tools": {"ask": ["sessions_list"]},
    "gateway": {
        "auth": {
            "token": "the-operators-own-token",
            "credentials": [
                credential("ann", ANN, "agent:ops:*", "operator.approvals"),
                credential("bob", BOB, "agent:main:*", "operator.approvals"),
                credential("reader", READER, "agent:*:*", "operator.read", "operator.write"),
            ],
        }
    },
}


def lists(turn: Turn) -> str:
    answer: Any = turn.tools.call("sessions_list", {"limit": 3})
    return str(answer.get("error") or answer["count"])


def asked(booth: Booth) -> tuple[SessionSystem, ToolCallHeld]:
    system = booth.start({"ops": lists, "main": lists}, {"chat": MemoryChannel()}, merged(SEES_ALL, CONFIG))
    system.inbound(channel="chat", chat_id="7", sender="p", text="go", agent_id="ops")
    return system, wait_for(system, ToolCallHeld)


@pytest.mark.clause("ASK-2")
def test_credentials_release_the_calls_of_their_sessions_in_their_own_name(log_url: str) -> None:
    with Booth(log_url) as booth:
        system, call = asked(booth)
        with LiveGateway(system) as live:
            with live.client(READER) as reader:
                refused = reader.request("calls.release", {"holdId": call.hold_id})
            with live.client(BOB) as bob:
                unseen = bob.request("calls.held")["payload"]
                beyond = bob.request("calls.release", {"holdId": call.hold_id})
            with live.client(ANN) as ann:
                seen = ann.request("calls.held")["payload"]
                given = {"holdId": call.hold_id[:8], "action": "refuse", "text": "no"}
                answers = [ann.request("calls.release", given)["payload"] for _ in range(2)]
                wrong = ann.request("calls.release", {"holdId": call.hold_id, "text": "why"})
        released = wait_for(system, ToolCallReleased)
        done = wait_for(system, RunCompleted)

    assert refused["error"]["message"] == "missing scope: operator.approvals"
    assert (unseen["count"], seen["count"]) == (0, 1)
    assert beyond["error"]["message"].startswith("holdId: no call is held as")
    assert [one["again"] for one in answers] == [False, True]
    assert "give it with action refuse alone" in wrong["error"]["message"]
    assert released.by == "credential:ann"
    assert "credential:ann refused the call of sessions_list: no" in str(done.reply)


@pytest.mark.clause("ASK-2")
def test_held_call_is_on_the_page_of_its_run_and_in_the_list_of_what_is_held(log_url: str) -> None:
    with Booth(log_url) as booth:
        system, call = asked(booth)
        with LiveGateway(system) as live, live.http("the-operators-own-token") as client:
            page = client.get("/debug/api/run", params={"run": call.run_id}).json()
            why = system.debug.why(call.run_id)
            listed = system.debug.runs(held=True)
            found = system.debug.runs(open_=True)
            released = system.release_call(call.hold_id)
            wait_for(system, RunCompleted)
            after = client.get("/debug/api/run", params={"run": call.run_id}).json()

    assert [(one["tool"], one["arguments"]) for one in page["calls"]] == [("sessions_list", '{"limit":3}')]
    assert "calls" not in after
    assert "waits_for_approval" in str(why)
    assert [one["holdId"] for one in listed["calls"]] == [call.hold_id]
    assert found["runs"][0]["waits"]["code"] == "waits_for_approval"
    assert released["status"] == "released"
