"""`intersession mcp`: MCP over standard input and output, and nothing but MCP."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import INVALID_REQUEST, PARSE_ERROR

from intersession import SessionSystem, echo, scripted
from intersession.cli.shell.run import main
from intersession.mcp.stdio import serve_stdio
from intersession_events.facts import SESSION_TOOLS
from support.doors.mcp_clients import piped
from support.running import QUIET, SEES_ALL, WAIT, merged

MAIN, OPS = "agent:main:main", "agent:ops:main"
COMMAND = [sys.executable, "-m", "intersession"]

HOST = """
from intersession import echo

print("an agent's module may print")


def chatty(turn):
    print("and so may an agent")
    return echo("heard ")(turn)


agents = {"main": chatty, "ops": chatty}
"""


class Files:
    """A folder with a log, a configuration and a module of agents, for a command that runs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"sqlite:///{folder / 'log.db'}"
        (folder / "mcp_host.py").write_text(HOST)
        (folder / "config.json5").write_text(json.dumps(merged(SEES_ALL, QUIET)))

    def arguments(self, *more: str) -> list[str]:
        return [
            *("mcp", "--as-session", "main", "--agents", "mcp_host:agents"),
            *("--config", "config.json5", "--store", self.url, *more),
        ]

    def run(self, text: str, *more: str) -> subprocess.CompletedProcess[str]:
        """Run the command with all its input at once."""
        return subprocess.run(
            COMMAND + self.arguments(*more),
            input=text,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def lines(*messages: dict[str, Any] | str) -> str:
    return "".join(
        f"{each if isinstance(each, str) else json.dumps({'jsonrpc': '2.0', **each})}\n" for each in messages
    )


INITIALIZE = {
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
INITIALIZED = {"method": "notifications/initialized"}


def call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


async def test_the_sdks_client_talks_to_the_command(files: Files) -> None:
    parameters = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], *files.arguments()], cwd=files.folder, env=dict(os.environ)
    )

    async with Client(parameters) as client:
        listed = await client.list_tools()
        sent = await client.call_tool("sessions_send", {"agentId": "ops", "message": "status?"})
        seen = await client.call_tool("sessions_list", {})

    assert [tool.name for tool in listed.tools] == list(SESSION_TOOLS)
    assert sent.structured_content["reply"] == "heard status?"
    assert OPS in [row["key"] for row in seen.structured_content["sessions"]]


def test_all_that_was_asked_is_answered_when_the_input_ends_and_nothing_else_is_on_the_output(
    files: Files,
) -> None:
    ran = files.run(
        lines(
            INITIALIZE,
            INITIALIZED,
            {"id": 1, "method": "tools/list"},
            call(2, "sessions_send", agentId="ops", message="status?"),
        )
    )

    answers = {message["id"]: message for message in map(json.loads, ran.stdout.splitlines())}
    assert ran.returncode == 0
    assert set(answers) == {0, 1, 2}
    assert answers[2]["result"]["structuredContent"]["reply"] == "heard status?"
    assert "an agent's module may print" in ran.stderr
    assert "and so may an agent" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.ci
def test_it_stops_in_order_when_it_is_told_to(files: Files) -> None:
    with subprocess.Popen(
        COMMAND + files.arguments(),
        cwd=files.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines(INITIALIZE))
        process.stdin.flush()
        process.stdout.readline()

        process.send_signal(signal.SIGTERM)

        assert process.wait(WAIT) == 0


@pytest.mark.clause("L12")
async def test_the_tools_of_a_host_without_a_gateway_are_served_as_its_session_has_them(files: Files) -> None:
    agents = {"main": echo(), "ops": scripted(["the host says so"])}
    parameters = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], *files.arguments()], cwd=files.folder, env=dict(os.environ)
    )
    with SessionSystem(files.url, agents=agents, config=merged(SEES_ALL, QUIET)) as system:
        await system.ainbound(channel="x", chat_id="1", sender="1", text="hi", wait=WAIT)
        async with Client(parameters) as client:
            listed = await client.list_tools()
            sent = await client.call_tool("sessions_send", {"agentId": "ops", "message": "status?"})
            wrong = await client.call_tool("sessions_send", {"agentId": "ops"})
        seen = await system.tools().acall("sessions_list", {})

    assert [tool.name for tool in listed.tools] == list(SESSION_TOOLS)
    assert sent.structured_content["reply"] == "the host says so"
    assert (wrong.is_error, wrong.structured_content["code"]) == (True, "invalid_request")
    assert OPS in [row["key"] for row in seen["sessions"]]


def test_a_log_that_has_a_host_already_that_can_not_be_asked_is_said_to_have_one(
    files: Files, capfd: pytest.CaptureFixture[str]
) -> None:
    with SessionSystem(files.url, config={"gateway": {"controlSocket": False}}):
        exit_code = main(["mcp", "--as-session", "main", "--store", files.url])

    out, err = capfd.readouterr()
    assert (exit_code, out) == (3, "")
    assert "store_locked" in err
    assert str(os.getpid()) in err
    assert "Traceback" not in err


@pytest.mark.clause("VIS-6")
def test_a_session_that_is_not_there_is_refused_before_anything_is_served(
    files: Files, capfd: pytest.CaptureFixture[str]
) -> None:
    exit_code = main(["mcp", "--as-session", "agent:ghost:main", "--store", files.url])

    out, err = capfd.readouterr()
    assert (exit_code, out) == (1, "")
    assert "session not visible: agent:ghost:main" in err


# --- the wire, in this process


class Pipes:
    """A client's two ends of a wire to a server in a thread."""

    def __init__(self, most_bytes: int) -> None:
        self._system = SessionSystem(":memory:", agents={"main": echo(), "ops": echo()}, config=SEES_ALL)
        wire, self._to, self._from = piped()

        def serve() -> None:
            with wire.source, wire.sink:
                serve_stdio(self._system, MAIN, wire, most_bytes=most_bytes)

        self._serving = asyncio.to_thread(serve)

    async def __aenter__(self) -> Self:
        self._server = asyncio.create_task(self._serving)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._to.close()
        await asyncio.wait_for(self._server, WAIT)
        self._from.close()
        self._system.close()

    async def ask(self, text: str | bytes) -> dict[str, Any]:
        """Write a line and wait for one."""
        await asyncio.to_thread(self._to.write, text if isinstance(text, bytes) else text.encode())
        return json.loads(await asyncio.wait_for(asyncio.to_thread(self._from.readline), WAIT))  # type: ignore[no-any-return]


MOST = 4096


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("nonsense", PARSE_ERROR),
        ('{"jsonrpc": "2.0", "id": 1, "method": ', PARSE_ERROR),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}', PARSE_ERROR),
        ("[" * 4000, PARSE_ERROR),
        ("1" * 4000 + "]", PARSE_ERROR),
        ("[]", INVALID_REQUEST),
        ("null", INVALID_REQUEST),
        ('{"id": 1, "method": "tools/list"}', INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}', INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}', PARSE_ERROR),
        (lines(call(1, "sessions_send", agentId="ops", message="x" * 2 * MOST)).strip(), INVALID_REQUEST),
    ],
    ids=lambda value: repr(value)[:40],
)
async def test_what_is_no_message_is_answered_and_the_next_one_is_served(
    line: str | bytes, code: int
) -> None:
    async with Pipes(MOST) as client:
        refused = await client.ask((line if isinstance(line, bytes) else line.encode()) + b"\n")
        initialized = await client.ask(lines(INITIALIZE))

    assert refused["id"] is None
    assert refused["error"]["code"] == code
    assert initialized["result"]["serverInfo"]["name"] == "intersession"


async def test_arguments_that_are_no_object_are_a_protocol_error() -> None:
    async with Pipes(MOST) as client:
        await client.ask(lines(INITIALIZE))
        refused = await client.ask(
            lines(
                INITIALIZED,
                {"id": 1, "method": "tools/call", "params": {"name": "sessions_list", "arguments": [1]}},
            )
        )

    assert refused["id"] == 1
    assert refused["error"]["code"] == -32602


async def test_a_number_that_is_none_is_refused_by_its_field() -> None:
    line = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sessions_list","arguments":{"limit":NaN}}}\n'

    async with Pipes(MOST) as client:
        await client.ask(lines(INITIALIZE))
        answer = await client.ask(lines(INITIALIZED) + line)

    assert answer["result"]["isError"]
    assert answer["result"]["structuredContent"]["error"].startswith("limit: ")
