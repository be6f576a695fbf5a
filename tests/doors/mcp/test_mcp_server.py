"""The MCP door: the same tools, the same answers, whatever a client sends."""

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import INVALID_PARAMS

from intersession import Reply, SessionSystem, Turn, echo
from intersession.mcp.server import Seat, mcp_server, tool_result
from intersession_actors.calls.tools.registry import schemas
from intersession_events.facts import SESSION_TOOLS, SpawnAccepted
from support.doors.mcp_clients import Mode, connected, text_of
from support.hostile import given, row_id, rows
from support.running import QUIET, Booth, Gate, wait_for

MAIN, OPS = "agent:main:main", "agent:ops:main"


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> Mode:
    """Both ways in which a client of today may begin."""
    mode: Mode = request.param
    return mode


async def test_the_tools_are_listed_as_they_are_described_everywhere(booth: Booth, mode: Mode) -> None:
    system = booth.start({"main": echo()})

    async with connected(system, MAIN, mode) as client:
        listed = (await client.list_tools()).tools

    assert [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
        for tool in listed
    ] == json.loads(json.dumps(schemas(SESSION_TOOLS, "mcp")))


async def test_a_model_is_told_nothing_that_is_for_readers_of_the_code(booth: Booth) -> None:
    system = booth.start({"main": echo()})

    async with connected(system, MAIN) as client:
        listed = (await client.list_tools()).tools

    told = "".join(tool.model_dump_json() for tool in listed)
    assert re.findall(r"\b[A-Z]{3,9}-\d+|What a caller gives", told) == []


async def test_a_client_is_told_which_tools_change_nothing(booth: Booth) -> None:
    system = booth.start({"main": echo()})

    async with connected(system, MAIN) as client:
        listed = (await client.list_tools()).tools

    hints = {tool.name: tool.annotations for tool in listed}
    assert {name for name, hint in hints.items() if hint and hint.read_only_hint} == {
        "sessions_list",
        "sessions_history",
        "sessions_search",
        "agents_list",
    }
    assert not [name for name, hint in hints.items() if hint and hint.destructive_hint]


async def test_an_answer_is_the_same_json_as_structured_content_and_as_text(booth: Booth, mode: Mode) -> None:
    system = booth.start({"main": echo(), "ops": echo("heard ")}, None, QUIET)

    async with connected(system, MAIN, mode) as client:
        sent = await client.call_tool("sessions_send", {"agentId": "ops", "message": "status?"})
        listed = await client.call_tool("sessions_list", {})

    assert sent.structured_content["reply"] == "heard status?"
    (row,) = [each for each in listed.structured_content["sessions"] if each["key"] == OPS]
    assert row["model"] is None, "a value that is not known yet is null, and said so"
    for result in (sent, listed):
        assert json.loads(text_of(result)) == result.structured_content
        assert not result.is_error


@pytest.mark.clause("LIST-1")
@pytest.mark.parametrize(
    ("name", "arguments", "path"),
    [
        ("sessions_list", {"limit": "ten"}, "limit"),
        ("sessions_list", {"kinds": ["main", "pets"]}, "kinds"),
        ("sessions_list", {"limits": 3}, "limits"),
        ("sessions_history", {}, "sessionKey"),
        ("sessions_search", {"query": "x", "limit": "ten"}, "limit"),
        ("sessions_send", {"sessionKey": OPS}, "message"),
        ("sessions_send", {"sessionKey": OPS, "message": "x", "timeoutSeconds": 10**400}, "timeoutSeconds"),
        ("sessions_spawn", {"task": "x", "attachAs": {"path": "y"}}, "attachAs.path"),
        ("agents_list", {"all": True}, "all"),
    ],
)
async def test_invalid_arguments_are_a_tool_error_that_names_the_path(
    booth: Booth, name: str, arguments: dict[str, Any], path: str
) -> None:
    system = booth.start({"main": echo(), "ops": echo()})

    async with connected(system, MAIN) as client:
        result = await client.call_tool(name, arguments)

    assert result.is_error
    assert result.structured_content["code"] == "invalid_request"
    assert result.structured_content["error"].startswith(path)


async def test_what_settings_close_is_a_tool_error_too(booth: Booth) -> None:
    system = booth.start({"main": echo()}, None, {"tools": {"sessions": {"visibility": "self"}}})

    async with connected(system, MAIN) as client:
        result = await client.call_tool("sessions_history", {"sessionKey": OPS})

    assert result.is_error
    assert result.structured_content["status"] == "forbidden"


async def test_a_tool_that_is_not_there_is_a_protocol_error(booth: Booth, mode: Mode) -> None:
    system = booth.start({"main": echo()})

    async with connected(system, MAIN, mode) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("sessions_burn", {})

    assert refused.value.code == INVALID_PARAMS
    assert "'sessions_burn'" in refused.value.message


@pytest.mark.clause("SPAWN-7")
async def test_a_sub_agent_has_no_session_tools_here_either(booth: Booth) -> None:
    system = booth.start({"main": lambda _: Reply.skip()}, None, {"runs": {"idleSeconds": 3600}})
    spawned = await system.tools(MAIN).acall("sessions_spawn", {"task": "look"})
    wait_for(system, SpawnAccepted)

    async with connected(system, spawned["childSessionKey"]) as client:
        listed = await client.list_tools()
        with pytest.raises(MCPError):
            await client.call_tool("sessions_list", {})

    assert listed.tools == []


async def test_other_calls_are_answered_while_one_waits_for_a_reply(booth: Booth, mode: Mode) -> None:
    gate = Gate()

    def slow(turn: Turn) -> str | Reply:
        gate.stop(turn)
        return "at last" if turn.step == "message" else Reply.skip()

    system = booth.start({"main": echo(), "ops": slow}, None, QUIET)

    async with connected(system, MAIN, mode) as client:
        sending = asyncio.create_task(client.call_tool("sessions_send", {"agentId": "ops", "message": "?"}))
        await asyncio.to_thread(gate.reached)
        listed = await client.call_tool("sessions_list", {})
        waited = not sending.done()
        gate.open()
        sent = await sending

    assert waited
    assert OPS in [row["key"] for row in listed.structured_content["sessions"]]
    assert sent.structured_content["reply"] == "at last"


@pytest.mark.clause("SEND-9")
async def test_a_call_that_its_client_gives_up_is_taken_up_again_by_its_key(booth: Booth) -> None:
    gate = Gate()
    slow = gate.saying("at last")
    system = booth.start({"main": echo(), "ops": slow}, None, QUIET)
    asked = {"agentId": "ops", "message": "?", "idempotencyKey": "once"}

    async with connected(system, MAIN) as client:
        sending = asyncio.create_task(client.call_tool("sessions_send", asked))
        await asyncio.to_thread(gate.reached)
        sending.cancel()
        gate.open()
        again = await client.call_tool("sessions_send", asked)

    assert again.structured_content["reply"] == "at last"


async def test_a_failure_inside_the_host_tells_the_client_nothing_of_it(
    booth: Booth, caplog: pytest.LogCaptureFixture
) -> None:
    system = booth.start({"main": echo()})
    tools = system.tools(MAIN)

    def broken(_: object) -> Seat:
        raise OSError("the disk of 10.0.0.7 is gone")

    async with Client(mcp_server(broken)) as client:
        result = await client.call_tool("sessions_list", {})

    assert result.is_error
    assert result.structured_content["code"] == "internal"
    assert "10.0.0.7" not in text_of(result)
    assert "10.0.0.7" in caplog.text
    assert tools.names


@pytest.mark.parametrize("row", rows("K"), ids=row_id)
async def test_hostile_keys_get_the_answer_that_the_tool_gives(
    hosting: SessionSystem, row: dict[str, Any]
) -> None:
    arguments = {"sessionKey": given(row)}
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        pytest.skip("the client can't send what is no Unicode")

    async with connected(hosting, MAIN) as client:
        result = await client.call_tool("sessions_history", arguments)

    assert result.structured_content == await hosting.tools(MAIN).acall("sessions_history", arguments)
    assert result.is_error == ("code" in result.structured_content)


@pytest.fixture(scope="module")
def hosting() -> Iterator[SessionSystem]:
    unrecorded = {"audit": {"access": "off"}}  # a receipt would move the position that the next answer names
    with SessionSystem(":memory:", agents={"main": echo()}, config=unrecorded) as system:
        system.inbound(channel="webchat", chat_id="1", text="hi", sender="ann", wait=20)
        yield system


def test_a_refusal_is_told_from_an_answer_by_its_status() -> None:
    assert [
        tool_result({"status": status}).is_error for status in ("error", "forbidden", "ok", "timeout")
    ] == [
        True,
        True,
        False,
        False,
    ]
    assert not tool_result({"count": 0}).is_error


async def test_a_page_that_nobody_gave_out_is_a_protocol_error(booth: Booth) -> None:
    system = booth.start({"main": echo()})

    async with connected(system, MAIN) as client:
        with pytest.raises(MCPError, match="cursor"):
            await client.list_tools(cursor="2")
