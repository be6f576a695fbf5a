"""Holds and held tool calls over the network: a scope of their own, and the credential's name in what is recorded (LIVE-1, ASK)."""

from collections.abc import Iterator
from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem, ToolRefused, Turn
from intersession_events.facts import (
    ExchangeClosed,
    ExchangeHeld,
    ExchangeReleased,
    RunCompleted,
    ToolCallHeld,
    ToolCallReleased,
    TurnRequested,
)
from intersession_events.log.recorded import parts_in
from intersession_projections.views.run_outcomes.replies import told_in
from support.doors.gateway_live import LiveGateway, credential
from support.running import SEES_ALL, Booth, exchange_of, merged, recorded, wait_for, wait_for_number

MAIN, OPS = "agent:main:main", "agent:ops:main"
ANN, BOB, READER = "a-token-of-ann", "a-token-of-bob", "a-token-that-reads-all"


AUTH: dict[str, Any] = {
    "token": "the-operators-own-token",
    "credentials": [
        credential("ann", ANN, "agent:ops:*", "operator.approvals"),
        credential("bob", BOB, "agent:main:*", "operator.approvals"),
        credential("reader", READER, "agent:*:*", "operator.read", "operator.write"),
    ],
}
HOLDS: dict[str, Any] = {
    "session": {"agentToAgent": {"hold": "reply", "maxPingPongTurns": 0}},
    "gateway": {"auth": AUTH},
}
CALLS: dict[str, Any] = {"tools": {"ask": ["sessions_list"]}, "gateway": {"auth": AUTH}}


def says(turn: Turn) -> str:
    return f"{turn.agent_id} says {turn.step}"


@pytest.fixture
def system(log_url: str) -> Iterator[SessionSystem]:
    with Booth(log_url) as booth:
        yield booth.start({"main": says, "ops": says}, {}, merged(HOLDS))


@pytest.mark.clause("LIVE-1")
def test_who_may_approve_sees_what_waits_and_releases_it_in_their_own_name(system: SessionSystem) -> None:
    given = {"sessionKey": OPS, "message": "status?", "timeoutSeconds": 0}
    run_id = str(dict(system.tools(MAIN).call("sessions_send", given))["runId"])
    wait_for(system, ExchangeHeld)

    with LiveGateway(system) as live:
        with live.client(READER) as reader:
            refused = reader.request("exchanges.release", {"runId": run_id})
            assert refused["error"]["message"] == "missing scope: operator.approvals"
        with live.client(BOB) as bob:
            assert bob.request("exchanges.held", {})["payload"] == {"count": 0, "held": []}
            beyond = bob.request("exchanges.release", {"runId": run_id})
            assert beyond["error"]["details"]["code"] == "unknown_run"
        with live.client(ANN) as ann:
            history = ann.request("chat.history", {"sessionKey": OPS})
            assert history["error"]["message"] == "missing scope: operator.read"
            (held,) = ann.request("exchanges.held", {})["payload"]["held"]
            asked = {"runId": held["runId"], "holdId": held["holdId"], "text": "all is fine"}
            answers = [ann.request("exchanges.release", asked)["payload"] for _ in range(2)]

    assert (held["text"], held["speaker"], held["to"]) == ("ops says message", OPS, MAIN)
    assert [answer["again"] for answer in answers] == [False, True]
    wait_for(system, ExchangeClosed)
    assert [released.by for released in recorded(system, ExchangeReleased)] == ["credential:ann"]


@pytest.mark.clause("LIVE-1")
def test_who_reaches_the_asker_alone_releases_nothing_that_another_session_said(
    system: SessionSystem,
) -> None:
    turns = {"session": {"agentToAgent": {"hold": "every-turn", "maxPingPongTurns": 1}}}
    system.reload(merged(SEES_ALL, HOLDS, turns))
    given = {"sessionKey": OPS, "message": "status?", "timeoutSeconds": 0}
    run_id = str(dict(system.tools(MAIN).call("sessions_send", given))["runId"])
    held = wait_for(system, ExchangeHeld)
    exchange_id = exchange_of(system, run_id).removeprefix("exchange:")

    with LiveGateway(system) as live, live.client(BOB) as bob:
        by_session = [
            bob.request("exchanges.release", {"sessionKey": MAIN, "action": action})["payload"]
            for action in ("go_on", "end")
        ]
        edited = bob.request("exchanges.release", {"sessionKey": MAIN, "text": "anything"})
        by_id = bob.request("exchanges.release", {"runId": exchange_id})
        listed = bob.request("exchanges.hold", {"sessionKey": MAIN})["payload"]
        assert bob.request("exchanges.release", {"sessionKey": MAIN})["payload"]["released"] == []
        system.release(run_id, hold_id=held.hold_id)
        asked = wait_for(system, TurnRequested)
        wait_for_number(system, ExchangeHeld, 2)
        by_own_run = bob.request("exchanges.release", {"runId": asked.run_id, "action": "end"})

    assert [answer["released"] for answer in by_session] == [[], []]
    assert "0 exchanges of it are held" in edited["error"]["message"]
    assert listed["exchanges"] == []
    assert exchange_id in by_id["error"]["message"]
    assert run_id not in by_id["error"]["message"]
    codes = [answer["error"]["details"]["code"] for answer in (by_id, by_own_run)]
    assert codes == ["unknown_run", "unknown_run"]
    assert [released.by for released in recorded(system, ExchangeReleased)] == ["operator"]


@pytest.mark.ci
@pytest.mark.clause("LIVE-1")
def test_words_that_are_held_keep_their_session_from_being_erased(system: SessionSystem) -> None:
    given = {"sessionKey": OPS, "message": "status?", "timeoutSeconds": 0}
    run_id = str(dict(system.tools(MAIN).call("sessions_send", given))["runId"])
    wait_for(system, ExchangeHeld)
    with pytest.raises(ToolRefused, match="exchange:"):
        system.erase(OPS, unsent="giveUp")
    system.release(run_id, text="a secret", action="edit")
    wait_for(system, ExchangeClosed)
    system.erase(OPS)
    told = [one.event for one in parts_in(told_in(system.log, system.log.all()))]
    assert {held.text for held in told if isinstance(held, ExchangeHeld)} == {"[erased]"}
    assert {released.text for released in recorded(system, ExchangeReleased)} == {"[erased]"}


def lists(turn: Turn) -> str:
    answer: Any = turn.tools.call("sessions_list", {"limit": 3})
    return str(answer.get("error") or answer["count"])


def asked(booth: Booth) -> tuple[SessionSystem, ToolCallHeld]:
    system = booth.start({"ops": lists, "main": lists}, {"chat": MemoryChannel()}, merged(SEES_ALL, CALLS))
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
