r"""Half of a surrogate pair, wherever a model or a host's agent gives one, is spelled out (`\udce9`) and never costs the run."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from intersession import MemoryChannel, Message, Reply, SessionSystem, Turn, openai_agent
from intersession_events.facts import TextBlock, ThinkingBlock, ToolCallBlock
from support.endpoint import Endpoint, Said, an_endpoint, calling
from support.running import WAIT

HALF: Final = "\udce9"
SPELLED: Final = "\\udce9"


def answered(agent: Any) -> tuple[Any, str]:
    """Return what a person was answered, and all that the session has then."""
    with SessionSystem(":memory:", agents={"main": agent}, channels={"chat": MemoryChannel()}) as system:
        answer = system.inbound(channel="chat", chat_id="42", sender="ann", text="Go", wait=WAIT)
        history = system.tools().call("sessions_history", {"sessionKey": "main", "includeTools": True})
    return answer, json.dumps(history)


def first(said: Said) -> Callable[[Said], Said]:
    return lambda request: {"content": "done"} if request["messages"][-1]["role"] == "tool" else said


SAYS: Final[dict[str, Said]] = {
    "the name of a tool": calling(f"lo{HALF}ok", {}),
    "the id of a call": calling("sessions_list", {}, f"c{HALF}"),
    "arguments": calling("sessions_list", {"search": f"a{HALF}"}),
    "the name of an argument": calling("sessions_list", {f"a{HALF}": 1}),
    "words beside a call": {**calling("sessions_list", {}), "content": f"I look {HALF}"},
}


def on_endpoint(endpoint: Endpoint) -> Any:
    return openai_agent(model="m", base_url=endpoint.url, api_key="none")


def on_pydantic_ai(endpoint: Endpoint) -> Any:
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=endpoint.url, api_key="none"))
    agent = Agent(model)

    @agent.tool_plain
    def look(what: str) -> str:
        return f"{what} was found {HALF}"

    return agent


ADAPTERS: Final = {"openai": on_endpoint, "pydantic-ai": on_pydantic_ai}


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=ADAPTERS)
@pytest.mark.parametrize("said", SAYS.values(), ids=SAYS)
def test_what_a_model_says_on_its_way_is_spelled_out_and_it_goes_on(
    adapter: Callable[[Endpoint], Any], said: Said
) -> None:
    with an_endpoint() as endpoint:
        endpoint.say = first(said)
        answer, history = answered(adapter(endpoint))

    assert (answer["status"], answer["reply"]) == ("ok", "done")
    assert len(endpoint.taken) >= 2
    assert HALF not in history


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=ADAPTERS)
def test_what_a_model_answers_is_spelled_out(adapter: Callable[[Endpoint], Any]) -> None:
    with an_endpoint() as endpoint:
        endpoint.say = lambda _: {"content": f"caf{HALF}"}
        answer, _ = answered(adapter(endpoint))

    assert answer["reply"] == f"caf{SPELLED}"


def test_what_a_tool_of_a_pydantic_ai_agent_gives_is_spelled_out() -> None:
    with an_endpoint() as endpoint:
        endpoint.say = first(calling("look", {"what": f"a{HALF}"}))
        answer, history = answered(on_pydantic_ai(endpoint))

    assert answer["reply"] == "done"
    assert f"a{SPELLED} was found {SPELLED}".replace("\\", "\\\\") in history
    assert f"a{SPELLED} was found {SPELLED}" in str(endpoint.taken[-1]["messages"][-1]["content"])


def test_what_an_agent_of_the_hosts_own_answers_is_spelled_out() -> None:
    def agent(turn: Turn) -> Reply:
        call = turn.record_call(f"pay{HALF}", {f"k{HALF}": f"v{HALF}"}, call_id=f"c{HALF}")
        turn.record_result(call, f"pay{HALF}", f"paid {HALF}")
        blocks = (
            TextBlock(text=f"said {HALF}"),
            ToolCallBlock(id=f"i{HALF}", name=f"n{HALF}", arguments=f'{{"a":"{HALF}"}}'),
            ThinkingBlock(thinking=f"thought {HALF}"),
        )
        messages = (
            Message(id=f"m{HALF}", role="assistant", content=blocks, timestamp=0),
            Message(id="", role="toolResult", content=f"r{HALF}", timestamp=0, tool_call_id=f"i{HALF}"),
        )
        return Reply(f"text {HALF}", model=f"m{HALF}", stop_reason=f"s{HALF}", messages=messages)

    answer, history = answered(agent)

    assert (answer["status"], answer["reply"]) == ("ok", f"text {SPELLED}")
    assert HALF not in history
    content = next(m["content"] for m in json.loads(history)["messages"] if "said" in str(m["content"]))
    assert content[1]["arguments"] == {"a": SPELLED}


def test_a_whole_pair_is_left_as_a_model_wrote_it() -> None:
    with an_endpoint() as endpoint:
        endpoint.say = first(calling("sessions_list", {"search": "😀"}))
        _, history = answered(on_endpoint(endpoint))

    assert json.loads(history)["messages"][1]["content"][0]["arguments"] == {"search": "😀"}
