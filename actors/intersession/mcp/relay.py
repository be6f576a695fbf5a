"""MCP over standard input and output where another process is the log's host: passed on to the MCP of its gateway."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, Self, TypeVar

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    ListToolsResult,
    PaginatedRequestParams,
)
from mcp_types.version import LATEST_MODERN_VERSION

from intersession.mcp.http import SESSION_HEADER
from intersession.mcp.server import Context, refusal, server_of, tool_result
from intersession.mcp.stdio import Wire, serve
from intersession_actors.errors import REFUSAL_CODES, ToolRefused
from intersession_events.errors import StoreUnavailable

A = TypeVar("A")

logger = logging.getLogger(__name__)

# A call that waits is kept open by the gateway with a sign of life each 15 seconds.
_TIMEOUT: Final = httpx2.Timeout(30.0, read=60.0)
_LARGEST_EVENT: Final = 16 * 1024 * 1024
_SILENT: Final = "the log's host does not answer, try again later"
_THE_CALLERS: Final = frozenset({INVALID_PARAMS, INVALID_REQUEST})
"""What the gateway says of a request. Every other error is of the way there."""


def relay_stdio(address: str, token: str, key: str, wire: Wire) -> None:
    """Serve a session's tools, as the gateway at `address` has them, until the client closes its end. Blocks.

    Raises:
        ToolRefused: the gateway does not let this token be this session.
        StoreUnavailable: there is no MCP at that address, or not for this token.
    """
    asyncio.run(_relay(address, token, key, wire))


async def _relay(address: str, token: str, key: str, wire: Wire) -> None:
    async with Host(address, token, key) as host:
        try:
            await host.ask(lambda client: client.list_tools())
        except Exception as error:
            raise _said(error, address) from error
        await serve(relaying(host), wire)


class Host:
    """The host of the log, as a session sees it through the host's gateway. An async context manager.

    Every question is a connection of its own, as far as MCP goes: the SDK's client does not outlive one that fails.
    """

    def __init__(self, address: str, token: str, key: str) -> None:
        self._url = f"{address}/mcp"
        headers = {"Authorization": f"Bearer {token}", SESSION_HEADER: key}
        self._http = httpx2.AsyncClient(headers=headers, timeout=_TIMEOUT, trust_env=False)

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def ask(self, question: Callable[[Client], Awaitable[A]]) -> A:
        """Ask, and return the answer.

        Raises:
            MCPError: the host says no.
            Exception: the host does not answer; whatever the SDK and its HTTP client then raise.
        """
        transport = streamable_http_client(
            self._url, http_client=self._http, max_sse_event_size=_LARGEST_EVENT
        )
        try:
            async with Client(transport, mode=LATEST_MODERN_VERSION) as client:
                return await question(client)
        except ExceptionGroup as group:
            raise _first(group) from None


def relaying(host: Host) -> Server[Any]:
    """Return a server that has the tools of a host."""

    async def list_tools(_: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        cursor = None if params is None else params.cursor
        try:
            return await host.ask(lambda client: client.list_tools(cursor=cursor))
        except Exception as error:
            _pass_on(error)
            raise MCPError(INTERNAL_ERROR, _SILENT) from error

    async def call_tool(_: Context, params: CallToolRequestParams) -> CallToolResult:
        try:
            return await host.ask(lambda client: client.call_tool(params.name, params.arguments))
        except Exception as error:  # noqa: BLE001 - whatever keeps the host from answering
            _pass_on(error)
            return tool_result(refusal("unavailable", _SILENT))

    return server_of(list_tools, call_tool)


def _pass_on(error: Exception) -> None:
    """Raise again what the host itself says of a request, and log what is of the way there."""
    if isinstance(error, MCPError) and error.code in _THE_CALLERS:
        raise error
    logger.warning("the log's host does not answer: %s", error)


def _said(problem: Exception, address: str) -> Exception:
    match problem:
        case MCPError(error=ErrorData(data={"code": str() as code})) if code in REFUSAL_CODES:
            return ToolRefused(code, problem.message)
        case _:
            return StoreUnavailable(
                f"the log's host has a gateway at {address}, whose MCP can't be used with this token ({problem})"
            )


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """Return what happened, out of the groups that the SDK's tasks have wrapped it in."""
    match group.exceptions[0]:
        case ExceptionGroup() as inner:
            return _first(inner)
        case error:
            return error
