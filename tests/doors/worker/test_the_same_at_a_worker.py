"""An agent at a worker does what it does in the writer's process: the same scenarios leave the same events (WORK-12)."""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest
from pydantic_ai import Agent as FrameworkAgent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from intersession import File, Message, Reply, SessionSystem, Turn, Usage, own_tool
from intersession.worker.worker import Worker
from intersession_actors.outside.agents.agents import Agent
from intersession_events import facts
from support.beside import WITH_WORKERS, WORKER
from support.doors.gateway_live import LiveGateway
from support.running import SEES_ALL, merged, wait_for

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20_000  # more than one answer has


def lists(turn: Turn) -> str:
    found = turn.tools.call("sessions_list", {"limit": 3})
    refused = turn.tools.call("sessions_list", {"limit": "many"})
    unknown = turn.tools.call("no_such_tool", {})
    return f"{found['count']} {refused['status']} {unknown['status']} {len(turn.tools.schemas())}"


async def alists(turn: Turn) -> str:
    both = [await turn.tools.acall("sessions_list", {"limit": 3}) for _ in range(2)]
    return f"{[one['count'] for one in both]} {turn.tools.schemas('anthropic')[0]['name']}"


def pieces(turn: Turn) -> Iterator[str]:
    yield "Good "
    yield f"{turn.message}."


async def apieces(turn: Turn) -> AsyncIterator[str | Reply]:
    yield "Good "
    yield Reply(f"{turn.message}!", usage=Usage(input=3, output=2), model="some/model")


def fails(turn: Turn) -> str:
    raise ValueError(f"no {turn.message}")


def bad(_: Turn) -> Any:
    return 7


def numbered(turn: Turn) -> Reply:
    said = Message(id="mine", role="assistant", content=turn.message, timestamp=5)
    return Reply("spoken", messages=(said,), usage=Usage(input=1, cost_micros=-4))


def own(turn: Turn) -> str:
    call = turn.record_call("look", {"at": 1})
    turn.recorder.said([facts.TextBlock(text="looking")])
    turn.record_result(call, "look", {"found": 2})
    return f"{turn.tools.allowed(['look', 'leap'])}"


@own_tool
def weigh(turn: Turn, parcel: int) -> str:
    """Weigh a parcel."""
    return f"{parcel} kg in {turn.session_key}"


async def weighs(_: Turn) -> str:
    return "; ".join([await weigh(1), await weigh(2), await weigh(1)])


def framework() -> Any:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returned = [
            part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)
        ]
        if not returned:
            names = sorted(tool.name for tool in info.function_tools)
            return ModelResponse(
                parts=[TextPart(f"I have {len(names)} tools."), ToolCallPart("ring", {"bell": 2}, "c1")]
            )
        if len(returned) == 1:
            return ModelResponse(parts=[ToolCallPart("sessions_list", {"limit": 2}, "c1")])
        return ModelResponse(parts=[TextPart("; ".join(sorted(str(part.tool_name) for part in returned)))])

    agent = FrameworkAgent(FunctionModel(answer))

    @agent.tool_plain
    def ring(bell: int) -> str:
        return f"ding {bell}"

    return agent


def reads(turn: Turn) -> Reply:
    (file,) = turn.files
    assert turn.messages(images=True)
    return Reply("back", files=(File(data=file.read()[::-1] + b"\0", name="back.bin"),))


def halves(turn: Turn) -> Iterator[str | Reply]:
    half = "\ud83d"
    call = turn.record_call("look" + half, {"at": half})
    turn.recorder.said([facts.TextBlock(text=f"looking {half}")])
    turn.record_result(call, "look" + half, f"found {half}")
    yield f"piece {half}"
    yield Reply(f"whole {half}")


def odd(turn: Turn) -> str:
    """Call a tool with what is no JSON: the refusals are alike; at a worker such a call is not recorded."""
    given: list[Any] = [[1], {"limit": float("nan")}, {1: 2}, "text", {"search": "\ud83d"}]
    return "; ".join(str(turn.tools.call("sessions_list", one)["error"]) for one in given)


def sends(turn: Turn) -> str:
    if turn.agent_id == "ops" or turn.step != "message":
        return f"{turn.step} of {turn.agent_id}"
    given = {"sessionKey": "agent:ops:main", "message": "how is it?", "timeoutSeconds": 20}
    return f"they say {turn.tools.call('sessions_send', given).get('reply')}"


def says(system: SessionSystem) -> None:
    for text in ("morning", "evening"):
        system.inbound(channel="chat", chat_id="1", sender="mia", text=text, wait=20)


def says_and_waits(system: SessionSystem) -> None:
    system.inbound(channel="chat", chat_id="1", sender="mia", text="morning", wait=20)
    wait_for(system, facts.ExchangeClosed)


def says_with_a_file(system: SessionSystem) -> None:
    files = [File(data=PICTURE, name="dot.png")]
    system.inbound(channel="chat", chat_id="1", sender="mia", text="see", files=files, wait=20)


def waits_for_a_person(system: SessionSystem) -> None:
    run = system.inbound(channel="chat", chat_id="1", sender="mia", text="morning")["runId"]
    for number, item in enumerate(
        one for one in system.follow(0, timeout=20) if isinstance(one.event, facts.ToolCallHeld)
    ):
        assert isinstance(item.event, facts.ToolCallHeld)
        if number == 0:
            system.release_call(item.event.hold_id, arguments={"parcel": 9})
        else:
            system.release_call(item.event.hold_id)
        if number == 2:
            break
    system.gateway.call("agent.wait", {"runId": run, "timeoutMs": 20_000})


def compacts(system: SessionSystem) -> None:
    says(system)
    system.gateway.call("sessions.compact", {"key": "main"})
    wait_for(system, facts.RunCompleted, lambda end: end.covers is not None)
    system.inbound(channel="chat", chat_id="1", sender="mia", text="and now?", wait=20)


Scenario = tuple[Agent, Callable[[SessionSystem], None], Mapping[str, Any]]

SCENARIOS: dict[str, Scenario] = {
    "tools": (lists, says, {}),
    "tools, awaited": (alists, says, {}),
    "a generator": (pieces, says, {}),
    "an async generator": (apieces, says, {}),
    "an agent that raises": (fails, says, {}),
    "a bad reply": (bad, says, {}),
    "a reply of several parts": (numbered, says, {}),
    "tools of its own": (own, says, {"tools": {"deny": ["leap"]}}),
    "functions of its own": (weighs, says, {}),
    "functions of its own, held": (weighs, waits_for_a_person, {"tools": {"ask": ["weigh"]}}),
    "pydantic-ai": (framework(), says, {}),
    "halves of pairs": (halves, says, {}),
    "files": (reads, says_with_a_file, {}),
    "an exchange": (sends, says_and_waits, {}),
    "a summary": (lists, compacts, {"agents": {"defaults": {"contextTokens": 9_000}}}),
}


LONG = {"files", "pydantic-ai", "tools, awaited", "an async generator"}


def played(agent: Agent, play: Callable[[SessionSystem], None], config: Any, *, at_worker: bool) -> list[str]:
    """Play a scenario, and return its events without what differs from one log to the next."""
    agents = {"main": agent, "ops": agent}
    whole = merged(SEES_ALL, WITH_WORKERS, {"session": {"agentToAgent": {"maxPingPongTurns": 1}}}, config)
    with ExitStack() as opened:
        system = opened.enter_context(
            SessionSystem(":memory:", agents=None if at_worker else agents, config=whole)
        )
        if at_worker:
            live = opened.enter_context(LiveGateway(system))
            opened.enter_context(Worker(gateway=live.address, token=WORKER, agents=agents, config=config))
        play(system)
        return [*told(system)]


def told(system: SessionSystem) -> Iterator[str]:
    """Yield the events of sessions and exchanges, with ids by their order, and without times."""
    ids: dict[str, str] = {}
    for item in sorted(system.log.all(), key=lambda one: (one.stream.rpartition(":")[0], one.position)):
        kind = item.stream.partition(":")[0]
        if kind not in {"session", "exchange"}:
            continue
        text = facts.encode(item.event).decode()
        text = UUID.sub(lambda found: ids.setdefault(found[0], f"id{len(ids)}"), text)
        value = json.loads(text)
        yield f"{kind} {item.topic} {_without(value)}"


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        left_out = {"contextHash", "traceback", "used", "tokens", "requestDigests"}
        return {name: _without(one) for name, one in value.items() if name not in left_out}
    if isinstance(value, list):
        return [_without(one) for one in value]
    if isinstance(value, str):
        return re.sub(r'1[0-9]{12}|"(ageMs|position)":[0-9]+', "time", value)
    return "time" if isinstance(value, int) and value > 10**12 else value


@pytest.mark.clause("WORK-12")
def test_arguments_that_are_no_json_are_refused_in_the_same_words() -> None:
    here, there = (
        [
            one[one.index("'text': ") : one.index("'type'")]
            for one in played(odd, says, {}, at_worker=at_worker)
            if "run_completed" in one
        ]
        for at_worker in (False, True)
    )

    assert there == here
    assert len(here) == 2


@pytest.mark.clause("WORK-12")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.ci] * (name in LONG)) for name in SCENARIOS]
)
def test_an_agent_at_a_worker_leaves_the_same_events(name: str) -> None:
    agent, play, config = SCENARIOS[name]

    here = played(agent, play, config, at_worker=False)
    there = played(agent, play, config, at_worker=True)

    assert there == here
    assert any("run_completed" in one or "run_failed" in one for one in here)
