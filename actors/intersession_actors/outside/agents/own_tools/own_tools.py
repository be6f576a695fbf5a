"""All tools of an agent's own: what it was given, checked when the agent is made, and what a turn has of it."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import NamedTuple, cast

from intersession_actors.outside.agents.own_tools.functions import function_tool
from intersession_actors.outside.agents.own_tools.mcp_servers import McpTools
from intersession_actors.outside.agents.own_tools.tool import OwnTool, ToolFailed
from intersession_actors.outside.agents.turn import Turn, json_text
from intersession_actors.rules.config.tools import TOOL_NAMES
from intersession_actors.rules.gate.schemas import tool_in
from intersession_events.basics.plain_json import JsonObject

_logger = logging.getLogger("intersession.runs")


class Offered(NamedTuple):
    """The agent's own tools in a turn, by name, and in words what is missing of them."""

    tools: Mapping[str, OwnTool]
    missing: tuple[str, ...] = ()

    def schemas(self, dialect: str) -> list[JsonObject]:
        """Describe them in an API's form."""
        return [tool_in(dialect, name, tool.description, tool.schema) for name, tool in self.tools.items()]


class OwnTools:
    """The tools that an agent was given: functions, and sources such as MCP servers.

    Raises:
        TypeError: there is something else among them, a function can't be a tool, or two have the same name.
    """

    def __init__(self, given: object) -> None:
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            kind = given.__class__.__name__  # pyright: ignore[reportUnknownMemberType] - a host gives what it likes
            raise TypeError(f"tools: is {kind}, give a list of functions and mcp_tools(…)")
        self._functions: dict[str, OwnTool] = {}
        self._sources: list[McpTools] = []
        for index, one in enumerate(cast("Iterable[object]", given)):
            if isinstance(one, Mapping):
                raise TypeError(f"tools[{index}]: is a description of a tool, give the function itself")
            if isinstance(one, McpTools):
                self._sources.append(one)
                continue
            try:
                tool = function_tool(cast("Callable[..., object]", one))
            except TypeError as error:
                raise TypeError(f"tools[{index}]: {error}") from error
            if tool.name in self._functions:
                raise TypeError(f"tools[{index}]: there is another tool {tool.name!r}, give it another name")
            if tool.name in TOOL_NAMES:
                raise TypeError(
                    f"tools[{index}]: {tool.name!r} is a tool of the system, give it another name"
                )
            self._functions[tool.name] = tool

    @property
    def described(self) -> str:
        """What a model is told of the functions, for a reckoning of its length."""
        return json_text(Offered(self._functions).schemas("openai")) if self._functions else ""

    def close(self) -> list[Future[None]]:
        """Close the connections of its sources; returns what says that they have ended."""
        return [ended for source in self._sources for ended in source.close()]

    async def of(self, turn: Turn) -> Offered:
        """Return those that a turn has, by the settings of its session (TOOL-5)."""
        found: list[tuple[McpTools, Sequence[OwnTool]]] = []
        missing: list[str] = []
        for source in self._sources:
            try:
                found.append((source, await source.tools()))
            except ToolFailed as error:
                _logger.warning("the tools of %s can't be had: %s; run=%s", source.name, error, turn.run_id)
                missing.append(f"The tools of {source.name!r} can't be had now: {error}")
        times = Counter([*TOOL_NAMES, *self._functions, *(tool.name for _, tools in found for tool in tools)])
        tools = dict(self._functions)
        for source, of_source in found:
            for tool in of_source:
                name = tool.name if times[tool.name] == 1 else f"{source.name}__{tool.name}"[:64]
                if name in tools:
                    missing.append(f"A second tool {name!r} is left out.")
                    continue
                tools[name] = tool
        allowed = await turn.tools.aallowed(list(tools))
        return Offered({name: tools[name] for name in allowed}, tuple(missing))
