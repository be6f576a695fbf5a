"""A connection to an MCP server, by the SDK's client. Needs the extra `mcp`."""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from contextvars import Context
from functools import partial
from typing import Final, TypeVar, cast

import msgspec
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT, CallToolResult, RequestParamsMeta, TextContent, Tool

from intersession_actors.outside.agents.own_tools.functions import CALL_NAME
from intersession_actors.outside.agents.own_tools.mcp_servers import McpServer
from intersession_actors.outside.agents.own_tools.tool import OwnTool, ToolFailed
from intersession_actors.outside.agents.turn import Turn, json_text
from intersession_actors.running.failures.failure import described
from intersession_events.basics.plain_json import JsonObject

_logger = logging.getLogger("intersession.runs")

T = TypeVar("T")

MOST_TOOLS: Final = 128
"""The most tools of a server; what is beyond is left out, and logged."""
_MOST_PAGES: Final = 16
_MOST_DESCRIPTION: Final = 4_000
_MOST_SCHEMA: Final = 65_536


class McpConnection:
    """Lives in a task of its own, which opens the client and closes it, as the SDK asks."""

    def __init__(self, server: McpServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._opened: asyncio.Future[Client] = loop.create_future()
        # Asked for here, so that Python does not complain of an exception that no turn waited for.
        self._opened.add_done_callback(lambda opened: opened.cancelled() or opened.exception())
        self._end = asyncio.Event()
        # It outlives the run that asked for it, and is not of its chain.
        self._task = loop.create_task(self._live(), context=Context())
        self.ended: Future[None] = Future()
        self._task.add_done_callback(lambda _: self.ended.set_result(None))

    @property
    def is_open(self) -> bool:
        """Whether it is being opened or is open."""
        return not self._task.done() and not self._end.is_set()

    def close(self) -> None:
        """End it: the program is asked to end, and ended."""
        self._end.set()

    async def _live(self) -> None:
        server = self._server
        try:
            async with AsyncExitStack() as stack:
                if server.url is None:
                    program, *arguments = server.command
                    way = StdioServerParameters(
                        command=program,
                        args=arguments,
                        env=None if server.env is None else {**server.env},
                        cwd=server.cwd,
                    )
                    client = Client(way)
                else:
                    http = create_mcp_http_client(headers={**(server.headers or {})})
                    await stack.enter_async_context(http)
                    client = Client(streamable_http_client(server.url, http_client=http))
                async with asyncio.timeout(server.connect_seconds):
                    await stack.enter_async_context(client)
                self._opened.set_result(client)
                await self._end.wait()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - the SDK gives groups of exceptions, and the host's loop is not to end for them
            if not self._opened.done():
                self._opened.set_exception(ToolFailed(self._why(error)))
            else:
                _logger.warning("the connection to MCP server %s ended: %s", server.label, described(error))
        finally:
            self._end.set()
            if not self._opened.done():
                self._opened.cancel()

    def _why(self, error: BaseException) -> str:
        if isinstance(error, TimeoutError):
            return f"it did not answer within {self._server.connect_seconds:g} seconds"
        if isinstance(error, BaseExceptionGroup):
            return self._why(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
        return described(error)

    async def _client(self) -> Client:
        try:
            return await asyncio.shield(self._opened)
        except asyncio.CancelledError:
            if self._opened.cancelled():
                raise ToolFailed("its connection was closed") from None
            raise

    async def tools(self) -> Sequence[OwnTool]:
        """Return the server's tools as they are now.

        Raises:
            ToolFailed: the server can't be reached, or does not answer.
        """
        client = await self._client()
        found: list[Tool] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._answered(
                client.list_tools(cursor=cursor, cache_mode="refresh"), self._server.connect_seconds
            )
            found += page.tools
            cursor = page.next_cursor
            if cursor is None or len(found) > MOST_TOOLS:
                break
        fit = [tool for tool in found if _fits(tool)][:MOST_TOOLS]
        if len(fit) < len(found) or cursor is not None:
            left_out = sorted({tool.name for tool in found} - {tool.name for tool in fit})
            _logger.warning(
                "tools of MCP server %s are left out: %s (beyond %d tools, or a name or schema that no model takes)",
                self._server.label,
                ", ".join(left_out)[:500] or "further pages",
                MOST_TOOLS,
            )
        return [
            OwnTool(
                tool.name,
                (tool.description or tool.title or "")[:_MOST_DESCRIPTION],
                dict(tool.input_schema),
                partial(self._call, tool.name),
            )
            for tool in fit
        ]

    async def _call(self, name: str, turn: Turn, arguments: JsonObject) -> object:
        client = await self._client()
        meta = cast("RequestParamsMeta", {"idempotencyKey": turn.call_id})
        asked = client.call_tool(name, arguments, meta=meta)
        result = await self._answered(asked, self._server.call_seconds)
        told = _told(result)
        if result.is_error:
            raise ToolFailed(told if isinstance(told, str) else json_text(told))
        return told

    async def _answered(self, asked: Awaitable[T], seconds: float) -> T:
        """Await an answer of the server's. One that does not come ends the connection: the server may hang."""
        try:
            async with asyncio.timeout(seconds):
                return await asked
        except TimeoutError:
            self.close()
            raise ToolFailed(
                f"the MCP server {self._server.label!r} did not answer within {seconds:g} seconds; it may have acted"
            ) from None
        except ToolFailed:
            raise
        except Exception as error:
            if _is_of_the_server(error):
                raise ToolFailed(f"{described(error)}") from error
            self.close()
            raise ToolFailed(
                f"the connection to the MCP server {self._server.label!r} was lost ({described(error)}); it may have acted"
            ) from error


def _is_of_the_server(error: Exception) -> bool:
    """Whether a server answered with an error of its own, over a connection that is whole."""
    return isinstance(error, MCPError) and error.error.code not in {CONNECTION_CLOSED, REQUEST_TIMEOUT}


def _fits(tool: Tool) -> bool:
    if CALL_NAME.fullmatch(tool.name) is None:
        return False
    try:
        return len(msgspec.json.encode(tool.input_schema)) <= _MOST_SCHEMA
    except (TypeError, ValueError, RecursionError):
        return False


def _told(result: CallToolResult) -> object:
    """Return what a result tells a model: its texts, else its structured content; what else is in it is named."""
    texts = [
        block.text if isinstance(block, TextContent) else f"[{block.type}: left out, it is no text]"
        for block in result.content
    ]
    if not texts and result.structured_content is not None:
        return result.structured_content
    return "\n".join(texts)
