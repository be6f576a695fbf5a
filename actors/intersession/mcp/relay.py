"""MCP over standard input and output where another process is the log's host: relayed to the MCP of its gateway."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final, Protocol, Self, TypeVar

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
from intersession_actors.rules.errors import REFUSAL_CODES, ToolRefused
from intersession_actors.running.host.own_threads import off_loop
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.plain_json import JsonObject

A = TypeVar("A")

logger = logging.getLogger("intersession.mcp")

# A call that waits is kept open by the gateway with a sign of life each 15 seconds.
_TIMEOUT: Final = httpx2.Timeout(30.0, read=60.0)
_LARGEST_EVENT: Final = 16 * 1024 * 1024
_UNAUTHORISED: Final = 401
_SILENT: Final = "the log's host does not answer, try again later"
_THE_CALLERS: Final = frozenset({INVALID_PARAMS, INVALID_REQUEST})
"""What the gateway says of a request. Every other error is of the way there."""


class Way(Protocol):
    """The way to the gateway of the log's host, whose address may change when the host restarts."""

    def address(self) -> str:
        """Return its present address, or raise `StoreUnavailable`. Blocks."""
        ...

    def ticket(self, address: str) -> str:
        """Return a new bearer token for the gateway there, or raise `ToolRefused`. Blocks."""
        ...


def relay_stdio(way: Way, key: str, wire: Wire) -> None:
    """Serve a session's tools, as the host's gateway has them, until the client closes its end. Blocks.

    Raises:
        ToolRefused: the gateway does not let this token be this session.
        StoreUnavailable: there is no MCP at that address, or not for this token.
    """
    asyncio.run(_relay(way, key, wire))


async def _relay(way: Way, key: str, wire: Wire) -> None:
    async with Host(way, key) as host:
        try:
            await host.ask(lambda client: client.list_tools())
        except Exception as error:
            raise _said(error) from error
        await serve(relaying(host), wire)


class Host:
    """The host of the log, as a session reaches it through the host's gateway. An async context manager.

    Every question is a connection of its own, as far as MCP goes: the SDK's client does not outlive one that fails. And
    each is put to where the gateway is then, which may be elsewhere after the host's restart.
    """

    def __init__(self, way: Way, key: str) -> None:
        self._way = way
        self._http = httpx2.AsyncClient(
            headers={SESSION_HEADER: key}, auth=_Ticket(way), timeout=_TIMEOUT, trust_env=False
        )

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def ask(self, question: Callable[[Client], Awaitable[A]]) -> A:
        """Send a request, and return the answer.

        Raises:
            MCPError: the host says no.
            StoreUnavailable: there is no host with a gateway.
            Exception: the host does not answer; whatever the SDK and its HTTP client then raise.
        """
        address = await off_loop(self._way.address)
        transport = streamable_http_client(
            f"{address}/mcp", http_client=self._http, max_sse_event_size=_LARGEST_EVENT
        )
        try:
            async with Client(transport, mode=LATEST_MODERN_VERSION) as client:
                return await question(client)
        except ExceptionGroup as group:
            raise _first(group) from None


class _Ticket(httpx2.Auth):
    """Brings a ticket with each request. A gateway that has begun anew knows it no more, and is asked for another one."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._tickets: dict[str, str] = {}

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        address = f"{request.url.scheme}://{request.url.netloc.decode()}"
        known = self._tickets.get(address)
        if known is None:
            known = await self._made(address)
        request.headers["Authorization"] = f"Bearer {known}"
        response = yield request
        if response.status_code == _UNAUTHORISED:
            request.headers["Authorization"] = f"Bearer {await self._made(address)}"
            yield request

    async def _made(self, address: str) -> str:
        ticket = await off_loop(self._way.ticket, address)
        self._tickets = {address: ticket}
        return ticket


def relaying(host: Host) -> Server[JsonObject]:
    """Return a server that has a host's tools."""

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
    """Raise the host's own errors for a request again, and log those of the connection."""
    if isinstance(error, MCPError) and error.code in _THE_CALLERS:
        raise error
    logger.warning("the log's host does not answer: %s", error)


def _said(problem: Exception) -> Exception:
    match problem:
        case MCPError(error=ErrorData(data={"code": str() as code})) if code in REFUSAL_CODES:
            return ToolRefused(code, problem.message)
        case StoreUnavailable():
            return problem
        case _:
            return StoreUnavailable(
                f"the log's host has a gateway, whose MCP can't be used with this token ({problem})"
            )


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """Return what happened, out of the groups that the SDK's tasks have wrapped it in."""
    match group.exceptions[0]:
        case ExceptionGroup() as inner:
            return _first(inner)
        case error:
            return error
