"""MCP servers whose tools an agent has: connected when they are first needed, again when they have died, closed at the stop."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Final, Protocol, cast
from urllib.parse import urlsplit

import msgspec

from intersession_actors.outside.agents.own_tools.tool import OwnTool, ToolFailed
from intersession_actors.rules.config.tools import names_tool
from intersession_actors.running.host.extras import imported, needed
from intersession_actors.running.host.own_threads import off_loop
from intersession_events.facts import ready

_MODULE: Final = "intersession_actors.outside.agents.own_tools.mcp_client"
_WHAT: Final = "an agent with tools of an MCP server"
_AGAIN_S: Final = 30.0
"""How long a server that could not be reached is left alone: else each message would wait for it."""


@ready
class McpServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server: a command that is started, and spoken to by its standard input and output, or the URL of one that listens.

    Times are in seconds. `include` and `exclude` are globs over the server's own names of its tools.
    """

    label: str
    command: tuple[str, ...] = ()
    url: str | None = None
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    headers: Mapping[str, str] | None = None
    connect_seconds: float = 30.0
    call_seconds: float = 60.0
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()

    def offers(self, tool: str) -> bool:
        """Whether an agent gets a tool of it."""
        name = tool.lower()
        return (self.include is None or names_tool(self.include, name)) and not names_tool(self.exclude, name)


class Connection(Protocol):
    """A connection to a server, on the loop that it was made on."""

    async def tools(self) -> Sequence[OwnTool]:
        """Return the server's tools as they are now.

        Raises:
            ToolFailed: the server can't be reached, or does not answer.
        """
        ...

    @property
    def is_open(self) -> bool:
        """Whether it can still be used."""
        ...

    ended: Future[None]
    """Done once it has ended, and its program with it."""

    def close(self) -> None:
        """End it, soon."""
        ...


class McpTools:
    """The tools of one server. `prefix` stands before the names of all of them."""

    def __init__(self, server: McpServer, *, prefix: bool) -> None:
        self._server = server
        self._prefix = prefix
        # A loop, which is one thread, touches nothing but its own entry and those of loops that have ended.
        self._kept: dict[asyncio.AbstractEventLoop, Connection] = {}
        self._failed: tuple[float, str] | None = None

    @property
    def name(self) -> str:
        """The server's name."""
        return self._server.label

    async def tools(self) -> Sequence[OwnTool]:
        """Return its tools, as they are now; a server that has died is connected again.

        Raises:
            ToolFailed: it can't be reached, or does not answer.
        """
        loop = asyncio.get_running_loop()
        failed = self._failed
        if failed is not None:
            until, error = failed
            if loop.time() < until:
                raise ToolFailed(error)
        try:
            found = await self._found(loop)
        except ToolFailed as error:
            self._failed = (loop.time() + _AGAIN_S, str(error))
            raise
        self._failed = None
        offered = [tool for tool in found if self._server.offers(tool.name)]
        return [self._named(tool) for tool in offered] if self._prefix else offered

    async def _found(self, loop: asyncio.AbstractEventLoop) -> Sequence[OwnTool]:
        kept = self._kept.get(loop)
        if kept is not None and kept.is_open:
            try:
                return await kept.tools()
            except ToolFailed:
                kept.close()
        for other in [one for one in tuple(self._kept) if one.is_closed()]:
            self._kept.pop(other, None)
        client = await off_loop(imported, _MODULE, what=_WHAT, library="mcp", extra="mcp")
        kept = self._kept.get(loop)
        if kept is None or not kept.is_open:
            kept = self._kept[loop] = cast("Connection", client.McpConnection(self._server, loop))
        return await kept.tools()

    def _named(self, tool: OwnTool) -> OwnTool:
        return tool._replace(name=f"{self.name}__{tool.name}"[:64])

    def close(self) -> list[Future[None]]:
        """Close its connections; returns what says that they have ended. The next turn that needs them opens them anew."""
        ended: list[Future[None]] = []
        for loop, connection in list(self._kept.items()):
            if not loop.is_closed():
                loop.call_soon_threadsafe(connection.close)
                ended.append(connection.ended)
        self._failed = None
        return ended


def mcp_tools(
    *,
    command: Sequence[str] | None = None,
    url: str | None = None,
    name: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    headers: Mapping[str, str] | None = None,
    connect_seconds: float = 30.0,
    call_seconds: float = 60.0,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
) -> McpTools:
    """Return the tools of an MCP server, for `tools=[…]` of `openai_agent` (TOOL-7).

    Either `command` is started (with `env` beside a few variables of this process's environment, in `cwd`), or `url` is asked over
    streamable HTTP (with `headers`). With a `name` its tools are called `NAME__TOOL`; without one as the server calls them, unless
    two tools of an agent would have the same name. `include` and `exclude` are globs over the server's names of its tools. Times are in
    seconds.

    Raises:
        MissingExtra: the extra `mcp` is not installed.
        TypeError: both `command` and `url` are given, or neither.
        ValueError: a value can't be used.
    """
    needed("mcp", what=_WHAT, library="mcp", extra="mcp")
    if (command is None) == (url is None):
        raise TypeError("give either command=[…] or url=… of an MCP server")
    if isinstance(command, str) or (command is not None and not command):
        raise ValueError(f"command: is {command!r}, give a list of the program and its arguments")
    if url is not None and (urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname):
        raise ValueError(f"url: is {url!r}, give the http or https address of an MCP server")
    for field, seconds in (("connect_seconds", connect_seconds), ("call_seconds", call_seconds)):
        if not seconds > 0:
            raise ValueError(f"{field}: is {seconds}, give seconds above 0")
    found = name
    if found is None:
        found = Path(command[0]).name if command else urlsplit(url or "").hostname or "mcp"
    label = re.sub(r"[^A-Za-z0-9_-]", "-", found)[:32]
    server = McpServer(
        label=label,
        command=tuple(command or ()),
        url=url,
        env=env,
        cwd=None if cwd is None else str(cwd),
        headers=headers,
        connect_seconds=connect_seconds,
        call_seconds=call_seconds,
        include=None if include is None else tuple(include),
        exclude=tuple(exclude),
    )
    return McpTools(server, prefix=name is not None)
