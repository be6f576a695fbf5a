"""The session tools of a host with a gateway, for a process beside it: each call is put to whichever host writes the log then."""

import asyncio
from concurrent.futures import Future
from typing import Final

from intersession.gateway.protocol.line import Line
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.plain_json import JsonMapping, JsonObject

_PATIENCE_S: Final = 30.0
_SILENT: Final = "the log's host does not answer, try again later"


class ToolsThere:
    """Gives sessions their tools at the other end of a line."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def tools(self, session_key: str) -> "ToolsOfSession":
        """Return the tools of a session there.

        Raises:
            ToolRefused: the token does not stand for this session, or nobody answers (`unavailable`).
        """
        tools = ToolsOfSession(self._line, session_key)
        _ = tools.names
        return tools


class ToolsOfSession:
    """The tools of a session. A call is never sent twice: where its host went away, it may have been carried out."""

    def __init__(self, line: Line, session_key: str) -> None:
        self._line, self._session_key = line, session_key

    @property
    def names(self) -> tuple[str, ...]:
        """The tools that the session is offered there.

        Raises:
            ToolRefused: the token does not stand for this session, or nobody answers (`unavailable`).
        """
        try:
            names: list[str] = self._asked("tools.names").result(_PATIENCE_S)["names"]
        except (StoreUnavailable, TimeoutError):
            raise ToolRefused("unavailable", _SILENT) from None
        return tuple(names)

    async def acall(self, name: str, arguments: JsonMapping | None = None) -> JsonObject:
        """Call one and return its answer; a refusal is an answer as well."""
        try:
            return await asyncio.wrap_future(
                self._asked("tools.invoke", name=name, args=dict(arguments or {}))
            )
        except ToolRefused as refused:
            return dict(refused.as_result())
        except StoreUnavailable:
            return dict(ToolRefused("unavailable", _SILENT).as_result())

    def _asked(self, method: str, **params: object) -> "Future[JsonObject]":
        return self._line.ask(method, {**params, "sessionKey": self._session_key}, again=False)
