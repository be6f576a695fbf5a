"""`intersession mcp` where the log has a host already: the tools of that host, through its gateway."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters

from intersession import SessionSystem, echo
from intersession.cli.shell.run import main
from intersession.gateway.admission.credentials import Credentials
from intersession.gateway.http.application import asgi_application
from intersession.gateway.protocol.tools_there import ToolsOfSession
from intersession.mcp.http import McpCaller, mcp_app
from intersession.mcp.server import Seat, mcp_server
from intersession_events.stores.sqlite.log import SqliteLog
from support.doors.gateway_live import GATEWAY, TOKEN, WRITER, there
from support.doors.mcp_clients import over_http, served
from support.loopback import free_port
from support.running import QUIET, SEES_ALL, merged

MAIN, OPS = "agent:main:main", "agent:ops:main"


@asynccontextmanager
async def hosting(path: Path, *, port: int = 0) -> AsyncGenerator[str]:
    """Host a log with a gateway; yields the gateway's address."""
    url = f"sqlite:///{path / 'log.db'}"
    config = merged(SEES_ALL, QUIET, GATEWAY)
    with SessionSystem(url, agents={"main": echo(), "ops": echo("ops heard ")}, config=config) as system:
        credentials = Credentials(lambda: system.config.gateway.auth)

        async def check(token: str) -> McpCaller | None:
            found = credentials.match(token.encode())
            return None if found is None else McpCaller(caller=found.caller, scopes=found.scopes)

        mounts: dict[str, Any] = {"/mcp": mcp_app(system, check=check, allowed_hosts=None)}
        gateway: Any = asgi_application(system, mounts=mounts, credentials=credentials)
        async with served(gateway, lifespan="off", port=port) as address:
            assert isinstance(system.log, SqliteLog)
            system.log.announce_gateway(address)
            yield address


@asynccontextmanager
async def passing_on(address: str) -> AsyncGenerator[Client]:
    """Open a client of a server that has the tools of a gateway."""
    lent = there(address)
    beside = await asyncio.to_thread(lent.__enter__)  # the gateway may be on this loop
    try:
        tools = ToolsOfSession(beside._line, MAIN)
        async with Client(mcp_server(lambda _: Seat(tools, tools.names))) as client:
            yield client
    finally:
        await asyncio.to_thread(lent.__exit__, None, None, None)


async def test_the_gateway_serves_mcp_to_its_own_credentials(tmp_path: Path) -> None:
    async with hosting(tmp_path) as address:
        async with over_http(f"{address}/mcp", authorization=f"Bearer {TOKEN}") as operator:
            sent = await operator.call_tool("sessions_send", {"agentId": "ops", "message": "x"})
        async with over_http(
            f"{address}/mcp", authorization=f"Bearer {WRITER}", intersession_session=MAIN
        ) as ops:
            refused = await ops.call_tool("sessions_list", {})

    assert sent.structured_content["reply"] == "ops heard x"
    assert refused.structured_content["code"] == "not_visible"


async def test_a_relayed_client_gets_the_answers_of_the_host(tmp_path: Path) -> None:
    async with (
        hosting(tmp_path) as address,
        over_http(f"{address}/mcp", authorization=f"Bearer {TOKEN}", intersession_session=MAIN) as far,
        passing_on(address) as client,
    ):
        direct, listed = await far.list_tools(), await client.list_tools()
        sent = await client.call_tool("sessions_send", {"agentId": "ops", "message": "x"})
        wrong = await client.call_tool("sessions_list", {"limit": "x"})
        with pytest.raises(MCPError, match="sessions_burn"):
            await client.call_tool("sessions_burn", {})

    assert listed.tools == direct.tools
    assert sent.structured_content["reply"] == "ops heard x"
    assert wrong.is_error
    assert wrong.structured_content["error"].startswith("limit")


async def test_a_host_that_has_gone_is_an_error_and_one_that_is_back_answers(tmp_path: Path) -> None:
    port = free_port()
    async with passing_on(f"http://127.0.0.1:{port}") as client:
        gone = await client.call_tool("agents_list", {})
        with pytest.raises(MCPError, match="does not answer"):
            await client.list_tools()
        async with hosting(tmp_path, port=port):
            back = await client.call_tool("agents_list", {})
            while (
                back.structured_content.get("code") == "unavailable"
            ):  # it is looked for, some times a second
                back = await client.call_tool("agents_list", {})

    assert gone.structured_content["code"] == "unavailable"
    assert back.structured_content["agents"]


def command(path: Path, *, session: str = MAIN, token: str | None = TOKEN) -> Client:
    """Return a client of the command, on the log of a host."""
    url = f"sqlite:///{path / 'log.db'}"
    known = {} if token is None else {"INTERSESSION_GATEWAY_TOKEN": token}
    return Client(
        StdioServerParameters(
            command=sys.executable,
            args=["-m", "intersession", "mcp", "--as-session", session, "--store", url],
            env={**os.environ, **known},
        )
    )


@pytest.mark.ci
async def test_the_command_serves_the_tools_of_the_host_that_has_the_log(tmp_path: Path) -> None:
    async with hosting(tmp_path), command(tmp_path) as client:
        sent = await client.call_tool("sessions_send", {"agentId": "ops", "message": "x"})
        to_itself = await client.call_tool("sessions_send", {"sessionKey": MAIN, "message": "x"})

    assert sent.structured_content["reply"] == "ops heard x"
    assert to_itself.structured_content["code"] == "self_send"


@pytest.mark.parametrize(
    ("session", "token", "exit_code", "said"),
    [
        (MAIN, None, 3, "INTERSESSION_GATEWAY_TOKEN"),
        (MAIN, "wrong", 3, "can't be used with this token"),
        (MAIN, WRITER, 1, f"session not visible: {MAIN}"),
        ("agent:ghost:main", TOKEN, 1, "session not visible: agent:ghost:main"),
    ],
)
async def test_what_the_gateway_refuses_ends_the_command(  # noqa: PLR0917 - fixtures and cases
    tmp_path: Path,
    session: str,
    token: str | None,
    exit_code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if token is not None:
        monkeypatch.setenv("INTERSESSION_GATEWAY_TOKEN", token)

    async with hosting(tmp_path):
        url = f"sqlite:///{tmp_path / 'log.db'}"
        ended = await asyncio.to_thread(main, ["mcp", "--as-session", session, "--store", url])

    out, err = capfd.readouterr()
    assert (ended, out) == (exit_code, "")
    assert said in err
    assert "Traceback" not in err
