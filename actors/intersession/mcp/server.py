"""The tools as an MCP server over any transport: listing, calling, and the form of answers."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from intersession_actors.calls.tools.registry import TOOLS, schemas
from intersession_actors.rules.disclosure.advice import Called, Terms, advised
from intersession_actors.rules.errors import RefusalCode, ToolRefused, status_of
from intersession_actors.running.host.own_threads import off_loop
from intersession_events.basics.machine import VERSION
from intersession_events.basics.plain_json import JsonMapping, JsonObject

logger = logging.getLogger("intersession.mcp")

MOST_BYTES: Final = 8 * 1024 * 1024
"""The largest message that is read: a spawn with all the attachments it may have by default, in base64."""

_INSTRUCTIONS: Final = (
    "Tools to list the sessions of AI agents, read what was said in them, send one a message and wait for its reply, "
    "and start sub-agents. What they show and reach is what the session that you act as may see."
)
READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
# A message and a sub-agent add to what is there; what comes of them may leave through a channel.
ACTS: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True
)
READING: Final = frozenset(name for name, tool in TOOLS.items() if tool.reads)
"""The tools that change nothing."""

_MOST_SHOWN: Final = 64


class SessionTools(Protocol):
    """The tools of a caller."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return their names."""
        ...

    async def acall(self, name: str, arguments: JsonMapping | None = None) -> JsonMapping:
        """Call one and return its answer; a refusal is an answer as well."""
        ...


class HasTools(Protocol):
    """Gives sessions their tools: a system, or the way to one in another process."""

    def tools(self, session_key: str) -> SessionTools:
        """Return the tools of a session."""
        ...


class Seat(NamedTuple):
    """The caller of a request: its tools, and which of them it is offered here."""

    tools: SessionTools
    names: tuple[str, ...]


Seating = Callable[[Any], Seat]  # each transport has its own part
"""Finds the seat for a request's transport part (an HTTP request, None on stdio). It may read views: it runs in a thread.

Raises `ToolRefused` for a claim that is not granted."""

Context = ServerRequestContext[JsonObject, Any]  # the request, as `Seating` gets it
ListTools = Callable[[Context, PaginatedRequestParams | None], Awaitable[ListToolsResult]]
CallTool = Callable[[Context, CallToolRequestParams], Awaitable[CallToolResult]]


def mcp_server(seating: Seating) -> Server[JsonObject]:
    """Return an MCP server that gives each request the tools of its caller."""

    async def list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        if params is not None and params.cursor is not None:
            raise MCPError(INVALID_PARAMS, "cursor: there is one page only, leave it out")
        try:
            seat = await off_loop(seating, context.request)
        except ToolRefused as refused:
            raise MCPError(INVALID_REQUEST, refused.error, {"code": refused.code}) from None
        return ListToolsResult(tools=[_described(tool) for tool in schemas(seat.names, "mcp")])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        try:
            seat = await off_loop(seating, context.request)
            _must_have(seat, params.name)
            answer = await seat.tools.acall(params.name, params.arguments)
        except ToolRefused as refused:
            answer = dict(refused.as_result())
        except MCPError:
            raise
        except Exception:
            # What went wrong is for whoever runs the host; the client's model can only be told that it did.
            logger.exception("the call of %s failed", params.name)
            answer = refusal(
                "internal", "the call failed inside the host, whose log says why; try again later"
            )
        return tool_result(in_terms(answer, _TERMS))

    return server_of(list_tools, call_tool)


def server_of(
    list_tools: ListTools, call_tool: CallTool, instructions: str = _INSTRUCTIONS
) -> Server[JsonObject]:
    """Return a server under our name that lists and calls tools in these ways. `instructions` tell a model their purpose."""
    return Server(
        "intersession",
        version=VERSION,
        title="Intersession",
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def tool_result(answer: JsonMapping) -> CallToolResult:
    """Return a tool's answer as MCP takes it: the same JSON as structured content and as text."""
    text = msgspec.json.encode(answer)
    return CallToolResult(
        content=[TextContent(type="text", text=text.decode())],
        structured_content=msgspec.json.decode(text),
        is_error=answer.get("status") in {"error", "forbidden"},
    )


def in_terms(answer: JsonMapping, terms: Terms) -> JsonMapping:
    """Return an answer; a refusal gets advice in the terms of these tools."""
    error = answer.get("error")
    return (
        {**answer, "error": advised(error, terms)} if isinstance(error, str) and "code" in answer else answer
    )


_TERMS: Final[Terms] = {"sessions": Called("sessions_list"), "search": Called("sessions_search", "query")}


def _must_have(seat: Seat, name: str) -> None:
    if name not in seat.names:
        had = ", ".join(seat.names) or "none"
        given = ascii(name[:_MOST_SHOWN])
        raise MCPError(INVALID_PARAMS, f"name: there is no tool {given} here, use one of {had}")


def _described(tool: JsonMapping) -> Tool:
    known = TOOLS[tool["name"]]
    return Tool(
        name=known.name,
        title=known.title,
        description=tool["description"],
        input_schema=tool["inputSchema"],
        annotations=READS if known.reads else ACTS,
    )


def refusal(code: RefusalCode, error: str) -> dict[str, str]:
    """Return the answer for a refused call."""
    return {"status": status_of(code), "code": code, "error": error}
