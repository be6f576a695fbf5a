"""Tools of MCP servers: a real program on its pipes, and a real server over HTTP."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem, mcp_tools, openai_agent
from intersession.mcp.http import McpCaller, mcp_app
from intersession_actors.calls.service.callers import Caller
from intersession_actors.outside.agents.configured import configured_agents
from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.errors import ConfigError
from intersession_events.facts import ToolCallBlock, text_of
from support import mcp_server
from support.doors.mcp_clients import served
from support.endpoint import Endpoint, Said, an_endpoint, calling
from support.running import WAIT, all_said

PROGRAM = str(mcp_server.__file__)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with an_endpoint() as served_endpoint:
        yield served_endpoint


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """Where the server writes what it is asked."""
    return tmp_path / "asked.jsonl"


def little(asked: Path, **options: Any) -> Any:
    return mcp_tools(command=[sys.executable, "-S", "-I", PROGRAM, str(asked)], **options)


def agent_on(endpoint: Endpoint, *tools: Any) -> Any:
    return openai_agent(model="asked", base_url=endpoint.url, api_key="none", tools=tools)


def said(system: SessionSystem, text: str = "What is 2 and 3?") -> str:
    answer = system.inbound(channel="x", chat_id="1", sender="ann", text=text, wait=WAIT)
    assert answer["status"] == "ok", answer
    return str(answer["reply"])


def will_call(endpoint: Endpoint, call: Callable[[], Said]) -> None:
    """Let the model make a call in each turn, and answer with its result."""

    def say(request: Said) -> Said:
        last = request["messages"][-1]
        return {"content": last["content"]} if last["role"] == "tool" else call()

    endpoint.say = say


def pids(asked: Path) -> list[int]:
    found = [json.loads(line) for line in asked.read_text().splitlines()]
    return [one["pid"] for one in found if "pid" in one]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not Path(f"/proc/{pid}/stat").read_text().split(")")[1].strip().startswith("Z")


@pytest.mark.clause("TOOL-7")
def test_the_tools_of_a_program_are_called_on_record_and_it_ends_with_the_system(
    endpoint: Endpoint, asked: Path
) -> None:
    will_call(endpoint, lambda: calling("add", {"a": 2, "b": 3}))

    with SessionSystem(":memory:", agents={"main": agent_on(endpoint, little(asked))}) as system:
        assert said(system) == "5"
        assert said(system, "And again?") == "5"
        messages = [one.message for one in all_said(system, "session:agent:main:main")]

    [pid] = pids(asked)
    assert not is_alive(pid)
    names = [tool["function"]["name"] for tool in endpoint.taken[0]["tools"]]
    assert {"add", "fail"} <= set(names)
    assert "bad name" not in names
    blocks = [block for one in messages if not isinstance(one.content, str) for block in one.content]
    calls = [block for block in blocks if isinstance(block, ToolCallBlock)]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [("add", {"a": 2, "b": 3})] * 2
    assert [text_of(one) for one in messages if one.role == "toolResult"] == ["5", "5"]
    told = [json.loads(line) for line in asked.read_text().splitlines()]
    keys = [one["params"]["_meta"]["idempotencyKey"] for one in told if one.get("method") == "tools/call"]
    assert keys == [call.id for call in calls]


@pytest.mark.clause("TOOL-7")
def test_a_program_that_dies_is_an_error_to_the_model_and_is_started_again(
    endpoint: Endpoint, asked: Path
) -> None:
    calls = iter([calling("die", {}), calling("add", {"a": 2, "b": 3})])
    will_call(endpoint, lambda: next(calls))

    with SessionSystem(":memory:", agents={"main": agent_on(endpoint, little(asked))}) as system:
        assert "it may have acted" in said(system)
        assert said(system) == "5"

    assert len(pids(asked)) == 2


@pytest.mark.clause("TOOL-7")
@pytest.mark.parametrize(
    ("tool", "told"),
    [
        ("fail", "it went wrong"),
        ("hang", "did not answer within 0.2 seconds; it may have acted"),
        ("picture", "[image: left out, it is no text]"),
    ],
)
def test_what_a_server_does_not_do_is_told_to_the_model(
    endpoint: Endpoint, asked: Path, tool: str, told: str
) -> None:
    will_call(endpoint, lambda: calling(tool, {}))
    tools = little(asked, call_seconds=0.2 if tool == "hang" else WAIT)

    with SessionSystem(":memory:", agents={"main": agent_on(endpoint, tools)}) as system:
        assert told in said(system)


@pytest.mark.clause("TOOL-7")
def test_names_are_prefixed_where_they_are_given_or_would_be_anothers(
    endpoint: Endpoint, asked: Path
) -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    tools = [add, little(asked), little(asked, name="other")]

    with SessionSystem(":memory:", agents={"main": agent_on(endpoint, *tools)}) as system:
        said(system)

    names = [tool["function"]["name"] for tool in endpoint.taken[0]["tools"]]
    program = Path(sys.executable).name.replace(".", "-")
    assert {"add", f"{program}__add", "fail", "other__add", "other__fail"} <= set(names)
    assert len(set(names)) == len(names)


@pytest.mark.clause("TOOL-7")
def test_a_server_that_is_not_there_is_told_to_the_model_and_the_run_goes_on(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    tools = mcp_tools(command=["no-such-program-here"], name="files")

    with SessionSystem(":memory:", agents={"main": agent_on(endpoint, tools)}) as system:
        assert said(system) == "Yes."
        assert said(system) == "Yes."

    assert "The tools of 'files' can't be had now" in endpoint.taken[0]["messages"][0]["content"]
    assert "the tools of files can't be had" in caplog.text


@pytest.mark.clause("TOOL-7")
async def test_the_tools_of_a_server_over_http_are_called_with_its_headers(endpoint: Endpoint) -> None:
    tokens: list[str] = []

    async def check(token: str) -> McpCaller | None:
        tokens.append(token)
        return McpCaller(caller=Caller(name="there"), scopes=frozenset({"operator.read"}))

    will_call(endpoint, lambda: calling("there__sessions_list", {}))
    there = SessionSystem(":memory:")
    app = mcp_app(there, check=check)
    with there:
        async with served(app) as url:
            tools = mcp_tools(url=f"{url}/mcp", name="there", headers={"Authorization": "Bearer t1"})
            with SessionSystem(":memory:", agents={"main": agent_on(endpoint, tools)}) as system:
                reply = await asyncio.to_thread(said, system)

    assert json.loads(reply)["count"] == 0
    assert set(tokens) == {"t1"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "either command"),
        ({"command": ["x"], "url": "http://x"}, "either command"),
        ({"command": "x"}, "command: is 'x'"),
        ({"url": "ftp://x"}, "url: is 'ftp://x'"),
        ({"url": "http://x", "call_seconds": 0}, "call_seconds: is 0"),
    ],
    ids=["nothing", "both", "text", "scheme", "time"],
)
def test_what_is_no_server_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=told):
        mcp_tools(**given)


@pytest.mark.clause("TOOL-7")
async def test_on_the_hosts_loop_the_connection_ends_with_the_system(endpoint: Endpoint, asked: Path) -> None:
    will_call(endpoint, lambda: calling("add", {"a": 2, "b": 3}))

    async with SessionSystem(":memory:", agents={"main": agent_on(endpoint, little(asked))}) as system:
        answer = await system.ainbound(channel="x", chat_id="1", sender="ann", text="add", wait=WAIT)
        assert answer["reply"] == "5"
    [pid] = pids(asked)
    assert not is_alive(pid)


@pytest.mark.clause("TOOL-7")
def test_configured_agents_have_the_tools_of_the_configured_servers(endpoint: Endpoint, asked: Path) -> None:
    server = {
        "command": sys.executable,
        "args": ["-S", "-I", PROGRAM, str(asked)],
        "toolFilter": {"exclude": ["d*"]},
    }
    config = {
        "agents": {"defaults": {"model": "here/one"}},
        "models": {"providers": {"here": {"baseUrl": endpoint.url, "models": [{"id": "one"}]}}},
        "mcp": {"servers": {"little": server, "off": {"enabled": False, "command": "nothing"}}},
        "tools": {"deny": ["little__hang"]},
    }
    loaded = load_config(config).config
    will_call(endpoint, lambda: calling("little__add", {"a": 2, "b": 3}))

    with SessionSystem(":memory:", config=loaded, agents=configured_agents(loaded).agents) as system:
        assert said(system) == "5"

    names = {tool["function"]["name"] for tool in endpoint.taken[0]["tools"]}
    assert {name for name in names if "__" in name} == {"little__add", "little__fail", "little__picture"}
    [pid] = pids(asked)
    assert not is_alive(pid)
    assert PROGRAM not in loaded.redacted()


@pytest.mark.parametrize(
    ("server", "told"),
    [
        ({}, r"mcp\.servers\.one.*either command"),
        ({"url": "ws://x"}, r"mcp\.servers\.one.*url: is 'ws://x'"),
        ({"command": "x", "transport": "sse"}, r"mcp\.servers\.one\.transport"),
        (
            {"command": "x", "transport": "streamable-http"},
            r"mcp\.servers\.one\.transport: 'streamable-http' needs a url",
        ),
    ],
    ids=["nothing", "scheme", "sse", "other"],
)
def test_a_configured_server_that_is_none_is_refused_at_the_start(server: Said, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        configured_agents(load_config({"mcp": {"servers": {"one": server}}}).config)
