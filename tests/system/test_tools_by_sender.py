"""Tools by the model that asks and by the person whose message led to the run (TOOLS)."""

from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_events.facts import RunCompleted, RunStarted
from support.running import Booth, Gate, recorded, wait_for

BY_SENDER: dict[str, Any] = {
    "tools": {"toolsBySender": {"chat:ann": {}, "*": {"deny": ["sessions_spawn", "pay"]}}}
}


def offered(turn: Turn) -> str:
    names = [schema["function"]["name"] for schema in turn.tools.schemas()]
    answer: Any = turn.tools.call("sessions_spawn", {"task": "look", "wait": 5})
    return f"{'sessions_spawn' in names} {answer['status']}"


def said(system: SessionSystem, sender: str, text: str = "hello") -> str:
    answer = system.inbound(channel="chat", chat_id="7", sender=sender, text=text, wait=20)
    return str(answer.get("reply"))


@pytest.mark.clause("TOOLS-2", "TOOLS-3")
def test_person_gets_the_tools_of_its_name_and_all_others_those_of_everybody(log_url: str) -> None:
    def agent(turn: Turn) -> str:
        return "child" if ":subagent:" in turn.session_key else offered(turn)

    with Booth(log_url) as booth:
        system = booth.start({"main": agent}, {"chat": MemoryChannel()}, BY_SENDER)
        ann, bob = said(system, "ann"), said(system, "bob")
        operator = "sessions_spawn" in system.tools("agent:main:main").names
        of_bob = wait_for(system, RunCompleted, lambda one: one.reply == bob).run_id
        # What Ann's child announces may begin behind Bob's message.
        (start,) = [one for one in recorded(system, RunStarted) if one.run_id == of_bob]
        replayed = system.debug.replay()

    assert (ann, bob) == ("True ok", "False error")
    assert operator
    assert start.tools is not None
    assert "sessions_spawn" not in start.tools
    assert replayed["same"], replayed["firstDifference"]


@pytest.mark.clause("TOOLS-2")
def test_what_a_person_began_is_narrowed_in_other_sessions_too(log_url: str) -> None:
    def main(turn: Turn) -> str:
        sent: Any = turn.tools.call(
            "sessions_send", {"agentId": "ops", "message": "go", "timeoutSeconds": 20}
        )
        return str(sent.get("reply"))

    config = {**BY_SENDER, "session": {"agentToAgent": {"maxPingPongTurns": 0, "announce": "routed"}}}
    with Booth(log_url) as booth:
        system = booth.start({"main": main, "ops": offered}, {"chat": MemoryChannel()}, config)
        bob = said(system, "bob")

    assert bob == "False error"


@pytest.mark.clause("TOOLS-3")
def test_call_of_an_own_tool_is_refused(log_url: str) -> None:
    def pays(turn: Turn) -> str:
        call_id = turn.record_call("pay", {"euros": 5})
        return str(turn.approve(call_id, "pay", {"euros": 5}).refused)

    with Booth(log_url) as booth:
        system = booth.start({"main": pays}, {"chat": MemoryChannel()}, BY_SENDER)
        ann, bob = said(system, "ann"), said(system, "bob")

    assert ann == "None"
    assert bob == "tool: 'pay' is not given in this run, go on without it"


@pytest.mark.clause("TOOLS-1")
@pytest.mark.parametrize(
    ("model", "has"), [("openai/gpt-5", False), ("openai/gpt-5-mini", True), ("local/x", True), (None, False)]
)
def test_provider_narrows_the_tools_of_its_models(log_url: str, model: str | None, has: bool) -> None:
    agent = {} if model is None else {"agents": {"defaults": {"model": model}}}
    by = {"tools": {"byProvider": {"openai/gpt-5": {"deny": ["sessions_spawn"]}}}}
    with Booth(log_url) as booth:
        system = booth.start(
            {"main": lambda turn: str("sessions_spawn" in turn.tools.names)},
            {"chat": MemoryChannel()},
            by,
            agent,
        )
        answer = said(system, "ann")
        wait_for(system, RunCompleted)

    assert answer == str(has)


@pytest.mark.clause("TOOLS-2", "QUEUE-2")
def test_messages_of_two_people_are_not_answered_by_one_run(log_url: str) -> None:
    gate = Gate()

    def agent(turn: Turn) -> str:
        if turn.message == "first":
            gate.stop(turn)
        return f"{turn.message} {'sessions_spawn' in str(turn.tools.schemas())}"

    config = {**BY_SENDER, "messages": {"queue": {"mode": "collect"}}}
    with Booth(log_url) as booth:
        system = booth.start({"main": agent}, {"chat": MemoryChannel()}, config)
        for sender, text in (("ann", "first"), ("bob", "one"), ("bob", "two"), ("ann", "three")):
            system.inbound(channel="chat", chat_id="7", sender=sender, text=text)
            if text == "first":
                gate.reached()
        gate.open()
        wait_for(system, RunCompleted, lambda one: one.reply == "three True")
        answers = [one.reply for one in recorded(system, RunCompleted)]
        replayed = system.debug.replay()

    assert answers == ["first True", "two False", "three True"]
    assert replayed["same"], replayed["firstDifference"]
