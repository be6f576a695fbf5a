"""Tool calls that wait for a person: held before they act, released by every door, over restarts (ASK)."""

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from intersession import MemoryChannel, SessionSystem, ToolRefused, Turn
from intersession_events.facts import (
    DeliveryDecided,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    ToolCallHeld,
    ToolCallReleased,
)
from support.fakes import ManualClock
from support.running import (
    WAIT,
    Booth,
    Gate,
    merged,
    pass_time,
    pass_time_until,
    recorded,
    wait_for,
    wait_for_number,
)

MAIN = "agent:main:main"
ASK: dict[str, Any] = {"tools": {"ask": ["sessions_list"]}}


def lists(turn: Turn) -> str:
    answer = turn.tools.call("sessions_list", {"limit": 3})
    return f"{answer.get('count')} {answer.get('error')} {answer.get('approval')}"


async def alists(turn: Turn) -> str:
    answer = await turn.tools.acall("sessions_list", {"limit": 3})
    return f"{answer.get('count')} {answer.get('error')} {answer.get('approval')}"


def ask(system: SessionSystem, text: str = "hello", **more: Any) -> str:
    answer = system.inbound(channel="chat", chat_id="7", sender="ann", text=text, **more)
    return str(answer["runId"])


def held(system: SessionSystem, number: int = 1) -> ToolCallHeld:
    """Wait until so many calls have been held; return the last one."""
    for item in system.follow(0, timeout=WAIT):
        number -= isinstance(item.event, ToolCallHeld)
        if number == 0 and isinstance(item.event, ToolCallHeld):
            return item.event
    raise AssertionError("no call was held")


def reply(system: SessionSystem, run_id: str) -> Any:
    return system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": int(WAIT * 1000)}).get("reply")


@pytest.mark.clause("ASK-1", "ASK-2")
@pytest.mark.parametrize("agent", [lists, alists])
def test_call_waits_until_it_is_released_edited_or_refused(log_url: str, agent: Any) -> None:
    with Booth(log_url) as booth:
        system = booth.start({"main": agent}, {"chat": MemoryChannel()}, ASK)

        first = ask(system)
        call = held(system)
        waits = system.gateway.call("calls.held")
        released = system.release_call(call.hold_id[:8])
        again = system.release_call(call.hold_id)
        said = reply(system, first)

        second = ask(system)
        edited = held(system, 2)
        system.release_call(edited.hold_id, arguments={"limit": 1})
        said_of_edit = reply(system, second)

        third = ask(system)
        refused = held(system, 3)
        system.release_call(refused.hold_id, action="refuse", text="not today")
        said_of_refusal = reply(system, third)
        events = recorded(system, ToolCallReleased)
        with pytest.raises(
            ToolRefused, match=r"holdId: the call was released before, by operator \(refuse\)"
        ):
            system.release_call(refused.hold_id)
        nothing_waits = system.gateway.call("calls.held")["count"]

    assert call.tool == "sessions_list"
    assert call.arguments == '{"limit":3}'
    assert [one["holdId"] for one in waits["held"]] == [call.hold_id]
    assert waits["held"][0]["arguments"] == {"limit": 3}
    assert (released["status"], released["again"], again["again"]) == ("released", False, True)
    assert said == "1 None None"
    assert said_of_edit == "1 None {'editedBy': 'operator', 'arguments': {'limit': 1}}"
    assert "operator refused the call of sessions_list: not today" in said_of_refusal
    assert [one.action for one in events] == ["go_on", "edit", "refuse"]
    assert nothing_waits == 0


@pytest.mark.clause("ASK-1")
def test_only_calls_that_a_setting_names_are_held(log_url: str) -> None:
    own = {"agents": {"list": [{"id": "main", "tools": {"ask": ["Sessions_S*"]}}]}}
    with Booth(log_url) as booth:
        system = booth.start({"main": lists}, {"chat": MemoryChannel()}, own)
        said = reply(system, ask(system))
        events = recorded(system, ToolCallHeld)

    assert said == "1 None None"
    assert not events


@pytest.mark.clause("ASK-1")
def test_own_tool_asks_by_its_turn(log_url: str) -> None:
    acted: list[Any] = []

    async def pays(turn: Turn) -> str:
        given = {"euros": 500}
        call_id = await asyncio.to_thread(turn.record_call, "pay", given)
        approval = await turn.aapprove(call_id, "pay", given)
        if approval.refused is None:
            acted.append(approval.arguments)
        result = approval.refused or approval.told("paid")
        await asyncio.to_thread(turn.record_result, call_id, "pay", result)
        return result

    with Booth(log_url) as booth:
        system = booth.start({"main": pays}, {"chat": MemoryChannel()}, {"tools": {"ask": ["pay"]}})
        first = ask(system)
        system.release_call(held(system).hold_id, arguments={"euros": 5})
        said = reply(system, first)
        second = ask(system)
        system.release_call(held(system, 2).hold_id, action="refuse")
        refused = reply(system, second)

    assert acted == [{"euros": 5}]
    assert said == '(operator changed the arguments to {"euros":5}.)\npaid'
    assert refused == "tool: operator refused the call of pay"


@pytest.mark.clause("ASK-4")
def test_held_call_is_still_held_after_a_restart_and_its_release_is_not_lost(log_url: str) -> None:
    with Booth(log_url) as booth:
        call = None
        for number in range(1, 5):  # more restarts than an attempt may be cut off
            system = booth.start({"main": lists}, {"chat": MemoryChannel()}, ASK)
            if number == 1:
                ask(system)
            wait_for_number(system, RunStarted, number)
            call = held(system)
            assert [one["holdId"] for one in system.status()["heldCalls"]] == [call.hold_id]
            if number == 4:  # each stop before may have come ahead of the question
                wait_for(system, DeliveryDecided, lambda one: one.purpose == "approval")
            system.close(grace=0)
        # Nobody is here whose agent waits; the release is recorded all the same.
        system = booth.start({}, {"chat": MemoryChannel()}, ASK)
        assert call is not None
        system.release_call(call.hold_id, action="refuse", text="no")
        system.close(grace=0)
        system = booth.start({"main": lists}, {"chat": MemoryChannel()}, ASK)
        said = wait_for(system, RunCompleted)
        interrupted = recorded(system, RunInterrupted)
        holds = recorded(system, ToolCallHeld)
        asked = [one for one in recorded(system, DeliveryDecided) if one.purpose == "approval"]

    assert "operator refused the call of sessions_list: no" in str(said.reply)
    assert len(interrupted) == 4
    assert len(holds) == 1
    assert len(asked) == 1


@pytest.mark.clause("ASK-2")
def test_call_that_nobody_releases_is_refused_in_time_and_that_time_is_not_the_runs(log_url: str) -> None:
    clock, gate = ManualClock(), Gate()

    def agent(turn: Turn) -> str:
        said = lists(turn)
        gate.stop(turn)
        return said

    times = {"tools": {"askTimeoutSeconds": 3600}, "agents": {"defaults": {"timeoutSeconds": 60}}}
    with Booth(log_url) as booth:
        system = booth.start({"main": agent}, {"chat": MemoryChannel()}, merged(ASK, times), clock=clock)
        run_id = ask(system)
        held(system)
        pass_time(system, clock, 3_000_000)  # far more than the run has
        assert not recorded(system, RunFailed)
        released = pass_time_until(system, clock, 600_000, ToolCallReleased)
        gate.reached()
        failed = pass_time_until(system, clock, 61_000, RunFailed)
        outcome = system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 0})
        gate.open()

    assert (released.action, released.by) == ("expired", None)
    assert (failed.code, outcome["status"]) == ("timeout", "timeout")


@pytest.mark.clause("ASK-2")
def test_hold_ends_with_its_run(log_url: str) -> None:
    with Booth(log_url) as booth:
        system = booth.start({"main": lists}, {"chat": MemoryChannel()}, ASK)
        run_id = ask(system)
        call = held(system)
        system.abort(run_id)
        released = wait_for(system, ToolCallReleased)
        count = system.gateway.call("calls.held")["count"]
        with pytest.raises(ToolRefused, match="released before"):
            system.release_call(call.hold_id)

    assert released.action == "ended"
    assert count == 0


@pytest.mark.clause("ASK-3")
def test_owner_releases_in_a_chat_and_nobody_else(log_url: str) -> None:
    chat = MemoryChannel()
    with Booth(log_url) as booth:
        system = booth.start({"main": lists}, {"chat": chat}, ASK)
        run_id = ask(system)
        name = held(system).hold_id[:8]
        wait_for(system, DeliveryDecided, lambda one: one.purpose == "approval")
        stranger = system.inbound(channel="chat", chat_id="9", sender="bob", text=f"/approve {name}")
        waits = system.gateway.call("calls.held")["count"]
        unknown = ask_owner(system, "/approve 00000000")
        owner = ask_owner(system, f"/deny {name} too early")
        said = reply(system, run_id)
        told = [one.text for one in recorded(system, DeliveryDecided) if one.purpose == "command_reply"]
        question = next(one for one in recorded(system, DeliveryDecided) if one.purpose == "approval")
        released = wait_for(system, ToolCallReleased)

    assert "runId" in stranger
    assert waits == 1
    assert "runId" not in unknown
    assert "runId" not in owner
    assert f"/approve {name} or /deny {name}" in question.text
    assert question.route.to == "7"
    assert released.by == "chat:ann"
    assert "chat:ann refused the call of sessions_list: too early" in said
    assert told[0].startswith("Nothing was released: holdId: no call is held as '00000000'")
    assert told[1] == "sessions_list is refused."


def ask_owner(system: SessionSystem, text: str) -> Any:
    return system.inbound(channel="chat", chat_id="7", sender="ann", text=text, owner=True)


@pytest.mark.clause("ASK-3")
def test_question_goes_to_the_configured_chat_without_secrets(log_url: str) -> None:
    def tells(turn: Turn) -> str:
        turn.tools.call("sessions_list", {"search": "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"})
        return "done"

    route = {"tools": {"askRoute": {"channel": "chat", "to": "owners", "thread": "5"}}}
    with Booth(log_url) as booth:
        system = booth.start({"main": tells}, {"chat": MemoryChannel()}, merged(ASK, route))
        ask(system)
        question = wait_for(system, DeliveryDecided, lambda one: one.purpose == "approval")
        system.release_call(held(system).hold_id)
        wait_for(system, RunCompleted)

    assert (question.route.to, question.route.thread) == ("owners", "5")
    assert "abcdefghijkl" not in question.text


@pytest.mark.clause("ASK-1")
def test_run_with_held_calls_replays_sealed(log_url: str) -> None:
    with Booth(log_url) as booth:
        system = booth.start({"main": lists}, {"chat": MemoryChannel()}, ASK)
        for action in ({}, {"arguments": {"limit": 1}}, {"action": "refuse", "text": "no"}):
            run_id = ask(system)
            system.release_call(held(system, len(recorded(system, ToolCallReleased)) + 1).hold_id, **action)
            reply(system, run_id)
        aborted = ask(system)
        held(system, 4)
        system.abort(aborted)
        wait_for(system, ToolCallReleased, lambda one: one.action == "ended")
        replayed = system.debug.replay()
        story = system.debug.why(run_id)

    assert replayed["same"], replayed.get("firstDifference")
    assert story


@pytest.mark.clause("ASK-5")
def test_fork_releases_as_it_was_recorded_and_holds_what_is_new(log_url: str) -> None:
    def sends(turn: Turn) -> str:
        answer = turn.tools.call("sessions_spawn", {"task": "look"})
        return str(answer.get("error"))

    with Booth(log_url) as booth:
        system = booth.start(
            {"main": sends}, {"chat": MemoryChannel()}, {"tools": {"ask": ["sessions_spawn"]}}
        )
        run_id = ask(system)
        call = held(system)
        at = next(one.position for one in system.log.all() if isinstance(one.event, ToolCallHeld))
        system.release_call(call.hold_id, action="refuse", text="no")
        said = reply(system, run_id)
        with system.fork(run_id, at=at, agents={"main": "recorded"}) as fork:
            outcome = fork.carried_on(timeout=WAIT)
            again = recorded(fork, RunCompleted)
            released = recorded(fork, ToolCallReleased)
        with system.fork(run_id, at=at, agents={"main": sends}) as fork:
            waits = fork.carried_on(timeout=WAIT)
            open_calls = fork.status()["heldCalls"]

    assert outcome.state == "ended", outcome
    assert [one.reply for one in again] == [said]
    assert [(one.action, one.text, one.by) for one in released] == [("refuse", "no", "operator")]
    assert (waits.state, [one.step for one in waits.held]) == ("held", ["call"])
    assert [one["holdId"] for one in open_calls] == [call.hold_id]


@pytest.mark.clause("ASK-4")
def test_model_that_calls_again_after_a_restart_waits_for_its_own_release(log_url: str) -> None:
    bought: list[int] = []
    model = FunctionModel(_buys_twice)

    def agent() -> Agent[None, str]:
        made: Agent[None, str] = Agent(model)

        @made.tool_plain
        def buy(euros: int) -> str:
            bought.append(euros)
            return "bought"

        return made

    config = {"tools": {"ask": ["buy"]}}
    with Booth(log_url) as booth:
        system = booth.start({"main": agent()}, {"chat": MemoryChannel()}, config)
        ask(system)
        system.release_call(held(system).hold_id)
        second = held(system, 2)
        system.close(grace=0)
        system = booth.start({"main": agent()}, {"chat": MemoryChannel()}, config)
        wait_for_number(system, RunStarted, 2)
        open_calls = system.gateway.call("calls.held")["held"]
        assert [one["holdId"] for one in open_calls] == [second.hold_id]
        assert bought == [5]
        system.release_call(second.hold_id, arguments={"euros": 4})
        done = wait_for(system, RunCompleted)

    assert bought == [5, 4]
    assert "changed the arguments" in str(done.reply)


def _buys_twice(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Buy the same thing twice, under a new id each time, and say what came of the second."""
    del info
    results = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    if len(results) == 2:
        return ModelResponse(parts=[TextPart(str(results[-1].content))])
    return ModelResponse(parts=[ToolCallPart("buy", {"euros": 5})])
