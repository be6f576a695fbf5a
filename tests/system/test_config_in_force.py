"""A configuration that changes while an exchange is under way: what holds for it, and what is judged as it is now."""

from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem
from intersession_actors.outside.agents.turn import Reply, Turn
from intersession_events.facts import (
    AccessRecorded,
    DeliveryDenied,
    DeliveryDone,
    DeliveryStarted,
    ExchangeAccepted,
    ExchangeClosed,
    LoopEnded,
    RunQueued,
    TurnRequested,
)
from support.running import SEES_ALL, Booth, Gate, merged, recorded, wait_for, wait_for_number

MAIN = "agent:main:main"
OPS = "agent:ops:main"

BEFORE: dict[str, Any] = {
    "session": {"agentToAgent": {"maxPingPongTurns": 2, "turnTimeoutSeconds": 50, "limits": {"runs": 40}}},
}
AFTER: dict[str, Any] = {
    "session": {
        "agentToAgent": {
            "maxPingPongTurns": 0,
            "turnTimeoutSeconds": 1,
            "announce": "routed",
            "limits": {"runs": 1, "hops": 1},
        }
    },
}


def begun(
    booth: Booth, gate: Gate, *configs: dict[str, Any], told: MemoryChannel | None = None
) -> SessionSystem:
    """Start a send whose target waits at the gate, with the target's chat as its route."""

    def held(turn: Turn) -> str | Reply:
        if turn.step == "message" and turn.asked.provenance and turn.asked.provenance.kind == "inter_session":
            gate.stop(turn)
        return f"{turn.step} of ops"

    system = booth.start(
        {"main": lambda turn: f"{turn.step} of main", "ops": held},
        {"telegram": told or MemoryChannel()},
        BEFORE,
        *configs,
    )
    system.gateway.call("sessions.patch", {"key": MAIN, "label": "asks"})
    system.inbound(channel="telegram", chat_id="7", sender="ann", text="hi", agent_id="ops", wait=10)
    system.tools(MAIN).call("sessions_send", {"sessionKey": OPS, "message": "go", "timeoutSeconds": 0})
    gate.reached()
    return system


@pytest.mark.clause("CFG-3", "LOOP-2")
def test_what_was_in_force_when_an_exchange_was_accepted_holds_to_its_end(booth: Booth) -> None:
    gate = Gate()
    system = begun(booth, gate)
    system.reload(merged(SEES_ALL, AFTER))
    gate.open()
    wait_for(system, ExchangeClosed)

    (accepted,) = recorded(system, ExchangeAccepted)
    assert (accepted.settings.max_turns, accepted.settings.turn_timeout_ms) == (2, 50_000)
    assert accepted.settings.limits.runs == 40
    assert [turn.turn for turn in recorded(system, TurnRequested)] == [1, 2]
    assert {run.timeout_ms for run in recorded(system, RunQueued) if run.step != "message"} == {50_000}
    assert recorded(system, LoopEnded)[0].reason == "turn_limit"

    # The next one is accepted under what is in force now.
    system.tools(MAIN).call("sessions_send", {"sessionKey": OPS, "message": "again", "timeoutSeconds": 0})
    wait_for_number(system, ExchangeClosed, 2)
    assert [turn.turn for turn in recorded(system, TurnRequested)] == [1, 2]


@pytest.mark.clause("CFG-3")
def test_what_was_in_force_holds_over_a_restart_with_another_configuration(booth: Booth) -> None:
    gate = Gate()
    begun(booth, gate).close(grace=0)
    gate.open()
    system = booth.start(
        {"main": lambda turn: f"{turn.step} of main", "ops": lambda turn: f"{turn.step} of ops"},
        {"telegram": MemoryChannel()},
        AFTER,
    )
    wait_for(system, ExchangeClosed)

    assert [turn.turn for turn in recorded(system, TurnRequested)] == [1, 2]


@pytest.mark.clause("CFG-3", "ANN-4", "POL-3")
def test_the_send_policy_is_judged_as_it_is_now_and_both_verdicts_are_on_record(booth: Booth) -> None:
    gate = Gate()
    told = MemoryChannel()
    system = begun(booth, gate, told=told)
    wait_for(system, DeliveryStarted)  # the answer to the person is judged before
    deny = {"session": {"sendPolicy": {"rules": [{"match": {"channel": "telegram"}, "action": "deny"}]}}}
    system.reload(merged(SEES_ALL, BEFORE, deny))
    gate.open()
    wait_for(system, ExchangeClosed)

    (accepted,) = recorded(system, ExchangeAccepted)
    assert accepted.send_rule == "no rule of session.sendPolicy matches: allow"
    assert recorded(system, LoopEnded)[0].reason == "policy_denied"
    (denied,) = recorded(system, DeliveryDenied)
    assert "session.sendPolicy.rules[0]" in denied.rule
    (reply,) = recorded(system, DeliveryStarted)  # the answer to the person, before
    assert reply.rule == "no rule of session.sendPolicy matches: allow"
    wait_for(system, DeliveryDone)  # a slow channel may still be at it
    assert len(told.delivered) == 1


@pytest.mark.clause("CFG-3", "VIS-1")
def test_visibility_is_judged_as_it_is_now_and_both_verdicts_are_on_record(booth: Booth) -> None:
    gate = Gate()
    system = begun(booth, gate)
    system.reload(merged(SEES_ALL, BEFORE, {"tools": {"sessions": {"visibility": "self"}}}))
    refused = system.tools(MAIN).call("sessions_history", {"sessionKey": OPS})
    gate.open()
    wait_for(system, ExchangeClosed)

    assert refused["status"] == "forbidden"
    (accepted,) = recorded(system, ExchangeAccepted)
    assert accepted.visibility == "all"
    receipts = [event for event in recorded(system, AccessRecorded) if event.requester == MAIN]
    assert [(event.tool, event.allowed, event.denied) for event in receipts] == [
        ("sessions_send", 1, ()),
        ("sessions_history", 0, ((OPS, "forbidden"),)),
    ]


@pytest.mark.clause("CFG-3")
def test_a_send_of_the_operator_has_no_visibility_to_record(booth: Booth) -> None:
    system = booth.start({"main": lambda _: "yes"})
    system.tools().call("sessions_send", {"sessionKey": MAIN, "message": "go", "timeoutSeconds": 10})

    assert recorded(system, ExchangeAccepted)[0].visibility is None
