"""The SDK's own client, in front of a system: in one process, or over HTTP to a server on a real socket."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from io import BufferedReader, FileIO
from typing import Any, Literal

import httpx2
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent
from starlette.types import ASGIApp

from intersession import SessionSystem
from intersession.mcp.server import Seat, mcp_server
from intersession.mcp.stdio import Wire
from support.doors.prompt_server import PromptServer
from support.running import WAIT

Mode = Literal["auto", "legacy"]


@asynccontextmanager
async def connected(system: SessionSystem, key: str | None, mode: Mode = "auto") -> AsyncGenerator[Client]:
    """Connect a client to a system, as a session has it (None: as the operator)."""
    tools = system.tools(key)
    async with Client(mcp_server(lambda _: Seat(tools, tools.names)), mode=mode) as client:
        yield client


class _Started(PromptServer):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@asynccontextmanager
async def served(
    app: ASGIApp, *, lifespan: Literal["on", "off"] = "on", port: int = 0
) -> AsyncGenerator[str]:
    """Serve an app on the loopback, on a free port if none is given; yields its address."""
    server = _Started(uvicorn.Config(app, port=port, log_config=None, lifespan=lifespan))
    # Without its handling of signals, which would be the test's.
    serving = asyncio.create_task(server._serve())
    await asyncio.wait_for(server.listening.wait(), WAIT)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.end()
        await serving


def plain_http(**options: Any) -> httpx2.AsyncClient:
    """Return an HTTP client for a server on this machine; there is no TLS, and loading certificates takes its time."""
    return httpx2.AsyncClient(timeout=WAIT, trust_env=False, verify=False, **options)


@asynccontextmanager
async def over_http(url: str, *, mode: Mode = "auto", **headers: str) -> AsyncGenerator[Client]:
    """Connect a client to an address, with headers (`_` for `-`)."""
    async with AsyncExitStack() as stack:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        http = await stack.enter_async_context(plain_http(headers=given))
        transport = streamable_http_client(url, http_client=http)
        yield await stack.enter_async_context(Client(transport, mode=mode))


def text_of(result: CallToolResult) -> str:
    """Return the one text of a result."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def piped() -> tuple[Wire, FileIO, BufferedReader]:
    """Return a wire for a server, and the ends of its client: what that writes to, and what it reads from."""
    server_reads, client_writes = os.pipe()
    client_reads, server_writes = os.pipe()
    wire = Wire(os.fdopen(server_reads, "rb", buffering=0), os.fdopen(server_writes, "wb"))
    return wire, os.fdopen(client_writes, "wb", buffering=0), os.fdopen(client_reads, "rb")
