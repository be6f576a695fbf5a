"""An agent on an endpoint of each API: the same rounds, tools, usage, refusals and failures, whole or in pieces."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from intersession import SessionSystem, openai_agent
from intersession_actors.outside.agents.configured import configured_agents
from intersession_actors.rules.config.config import load_config
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import RunCompleted
from support.endpoint import Endpoint, Said, an_endpoint, calling
from support.running import WAIT, recorded

APIS = ("chat", "responses", "anthropic")
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
EACH = pytest.mark.parametrize("api", APIS)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with an_endpoint() as served:
        yield served


def look_up(order: int) -> str:
    """Look an order up."""
    return f"Order {order} is paid."


def agent_on(endpoint: Endpoint, **options: Any) -> Any:
    given = {"tools": [look_up], "client_options": {"max_retries": 0}, "system": "Be brief.", **options}
    return openai_agent(model="asked", base_url=endpoint.url, api_key="secret", **given)


def asked(agent: Any) -> tuple[JsonObject, RunCompleted | None]:
    with SessionSystem(":memory:", agents={"main": agent}) as system:
        answer = system.inbound(channel="x", chat_id="1", sender="ann", text="Is it paid?", wait=WAIT)
        return {**answer}, next(iter(recorded(system, RunCompleted)), None)


def one_by_one(endpoint: Endpoint, *answers: Said) -> None:
    left = iter(answers)
    endpoint.say = lambda _: next(left)


def told(request: Said) -> list[tuple[str, str]]:
    """Return what a request tells of the results of calls, with their ids."""
    found: list[tuple[str, str]] = []
    for item in request.get("messages") or request["input"]:
        if item.get("role") == "tool":
            found.append((item["tool_call_id"], item["content"]))
        elif item.get("type") == "function_call_output":
            found.append((item["call_id"], item["output"]))
        elif isinstance(item.get("content"), list):
            blocks = [block for block in item["content"] if block["type"] == "tool_result"]
            found += [(block["tool_use_id"], block["content"]) for block in blocks]
    return found


@EACH
@BOTH
@pytest.mark.clause("TOOL-6")
def test_tools_are_called_and_the_answer_is_the_reply(endpoint: Endpoint, api: str, stream: bool) -> None:
    both = calling("look_up", {"order": 7}, "c1")
    both["tool_calls"] += calling("sessions_list", {"limit": 1}, "c2")["tool_calls"]
    one_by_one(endpoint, {**both, "content": "I look."}, {"content": "It is paid."})

    answer, ended = asked(agent_on(endpoint, api=api, stream=stream))

    assert (answer["status"], answer["reply"]) == ("ok", "It is paid.")
    first, second = endpoint.taken
    [(_, paid), (listed, sessions)] = told(second)
    assert (paid, listed) == ("Order 7 is paid.", "c2")
    assert json.loads(sessions)["count"] == 1
    names = {"chat": lambda tool: tool["function"]["name"]}.get(api, lambda tool: tool["name"])
    assert {"look_up", "sessions_list"} <= set(map(names, first["tools"]))
    assert "Be brief." in str(first.get("instructions") or first.get("system") or first["messages"][0])
    assert ended is not None
    assert ended.usage is not None
    assert ended.usage.output == 2
    assert ended.usage.total_tokens == ended.usage.input + ended.usage.output
    assert ended.model == "served"


def test_each_api_is_asked_where_it_is_and_with_its_own_key(endpoint: Endpoint) -> None:
    asked(agent_on(endpoint, api="anthropic", max_tokens=100))
    asked(agent_on(endpoint, api="responses", reasoning={"effort": "low"}))

    first, second = endpoint.headers
    assert (first["x-api-key"], first["anthropic-version"]) == ("secret", "2023-06-01")
    assert "authorization" not in first
    assert second["authorization"] == "Bearer secret"
    assert endpoint.taken[0]["max_tokens"] == 100
    assert endpoint.taken[1]["reasoning"] == {"effort": "low"}


@EACH
@BOTH
@pytest.mark.clause("TOOL-6")
def test_a_refusal_is_an_answer(endpoint: Endpoint, api: str, stream: bool) -> None:
    one_by_one(endpoint, {"content": None, "refusal": "I can't help with that."})

    answer, _ = asked(agent_on(endpoint, api=api, stream=stream))

    assert answer["reply"] == "I can't help with that."


@EACH
@BOTH
@pytest.mark.parametrize("finish", ["content_filter", "length"])
@pytest.mark.clause("TOOL-6")
def test_an_answer_without_a_text_that_was_cut_off_fails_with_the_reason(
    endpoint: Endpoint, api: str, stream: bool, finish: str
) -> None:
    endpoint.finish = finish
    one_by_one(endpoint, {"content": ""})

    answer, _ = asked(agent_on(endpoint, api=api, stream=stream))

    assert answer["status"] == "error"
    assert "gave no text: it ended with" in answer["error"]


@EACH
@pytest.mark.clause("TOOL-6")
def test_what_there_is_of_a_text_that_was_cut_off_is_said_with_the_reason(
    endpoint: Endpoint, api: str
) -> None:
    endpoint.finish = "length"
    one_by_one(endpoint, {"content": "So far"})

    answer, ended = asked(agent_on(endpoint, api=api))

    assert answer["reply"] == "So far"
    assert ended is not None
    assert ended.stop_reason in {"length", "max_output_tokens", "max_tokens"}


@EACH
@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "come back later"}},
        {"choices": [], "message": "come back later"},
        {"output": None, "status": "failed", "error": {"message": "come back later"}},
    ],
    ids=["error", "empty", "failed"],
)
@pytest.mark.clause("TOOL-6")
def test_what_is_no_answer_fails_with_what_the_endpoint_said(
    endpoint: Endpoint, api: str, body: Said
) -> None:
    endpoint.instead = body

    answer, _ = asked(agent_on(endpoint, api=api))

    assert answer["status"] == "error"
    assert "come back later" in answer["error"]


@pytest.mark.parametrize("api", ["responses", "anthropic"])
def test_a_stream_that_breaks_off_fails(endpoint: Endpoint, api: str) -> None:
    endpoint.breaks_off = True

    answer, _ = asked(agent_on(endpoint, api=api, stream=True))

    assert answer["status"] == "error"
    assert "the endpoint's stream ended before the answer did" in answer["error"]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"api": "gemini"}, "api: is 'gemini', give one of chat, responses, anthropic"),
        ({"api": "responses", "max_tokens": 5}, "max_tokens: is no option"),
        ({"api": "responses", "previous_response_id": "r"}, "previous_response_id: what the model is shown"),
        ({"api": "anthropic", "seed": 1}, "seed: is no option"),
    ],
    ids=["api", "responses", "conversation", "anthropic"],
)
def test_an_option_of_another_api_is_refused(endpoint: Endpoint, options: Said, what: str) -> None:
    with pytest.raises((TypeError, ValueError), match=what):
        agent_on(endpoint, **options)


@pytest.mark.parametrize(
    ("api", "path"),
    [
        (None, "/v1/chat/completions"),
        ("openai-completions", "/v1/chat/completions"),
        ("openai-responses", "/v1/responses"),
        ("anthropic-messages", "/v1/messages"),
    ],
)
@pytest.mark.clause("TOOL-6")
def test_a_configured_provider_says_which_api_it_speaks(
    endpoint: Endpoint, api: str | None, path: str
) -> None:
    provider: Said = {
        "baseUrl": endpoint.url,
        "apiKey": "secret",
        "models": [{"id": "one", "reasoning": True}],
        **({} if api is None else {"api": api}),
    }
    config = load_config(
        {
            "agents": {"defaults": {"model": "here/one", "thinkingDefault": "high"}},
            "models": {"providers": {"here": provider}},
        }
    ).config

    answer, _ = asked(configured_agents(config).agents["main"])

    assert answer["reply"] == "Yes."
    assert endpoint.paths == [path]
    thought = {"openai-responses": {"reasoning": {"effort": "high"}}, "anthropic-messages": {}}
    assert thought.get(api or "", {"reasoning_effort": "high"}).items() <= endpoint.taken[0].items()
