"""A small client of the gateway's WebSocket protocol, for commands beside a running gateway."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final, Self

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from intersession.gateway.protocol.frames import PROTOCOL
from intersession_actors.errors import REFUSAL_CODES, RefusalCode, ToolRefused
from intersession_events.plain_json import is_object

OPEN_S: Final = 10.0


class GatewayClient:
    """Calls methods of a running gateway. Use it as a context manager.

    `address` is the gateway's, as the log's lock has it (`http://127.0.0.1:18789`).

    Raises:
        ToolRefused: the gateway is not there (`unavailable`), or does not take the token (`forbidden`).
    """

    def __init__(self, address: str, token: str) -> None:
        self._numbers = 0
        self._open = ExitStack()
        url = address.replace("http", "ws", 1)
        try:
            opening = connect(url, proxy=None, open_timeout=OPEN_S, max_size=None)
            self._opened: ClientConnection = self._open.enter_context(opening)
        except (OSError, WebSocketException) as error:
            raise ToolRefused("unavailable", f"the gateway at {address} can't be reached: {error}") from None
        try:
            self._receive(timeout=OPEN_S)  # the challenge, which only devices answer
            self.call(
                "connect",
                {
                    "minProtocol": PROTOCOL,
                    "maxProtocol": PROTOCOL,
                    "client": {"id": "cli", "version": "1", "platform": "python", "mode": "cli"},
                    "auth": {"token": token},
                },
                timeout=OPEN_S,
            )
        except ToolRefused as refused:
            self.close()
            raise ToolRefused("forbidden", f"the gateway at {address} refused: {refused.error}") from None

    def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        final: bool = False,
        timeout: float | None = 60.0,
    ) -> dict[str, Any]:
        """Call a method and return its payload; with `final` the second one of `agent`.

        Raises:
            ToolRefused: the gateway refused, or did not answer in time (`unavailable`).
        """
        self._numbers += 1
        request_id = str(self._numbers)
        self._send({"type": "req", "id": request_id, "method": method, "params": dict(params or {})})
        while True:
            frame = self._receive(timeout)
            if frame.get("type") != "res" or frame.get("id") != request_id:
                continue
            payload: dict[str, Any] = frame.get("payload") or {}
            if not frame["ok"]:
                raise _refused(frame["error"])
            if not final or payload.get("status") != "accepted":
                return payload

    def call_tool(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        session_key: str | None = None,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Call a session tool, as a session or as the operator, and return its answer.

        Raises:
            ToolRefused: the gateway refused the call; a tool's own refusal is an answer.
        """
        given = {"name": tool, "args": dict(arguments)}
        return self.call(
            "tools.invoke",
            given if session_key is None else given | {"sessionKey": session_key},
            timeout=timeout,
        )

    def close(self) -> None:
        """Close the connection."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, frame: Mapping[str, Any]) -> None:
        try:
            self._opened.send(json.dumps(frame))
        except WebSocketException as error:
            raise ToolRefused("unavailable", f"the gateway closed the connection: {error}") from None

    def _receive(self, timeout: float | None) -> dict[str, Any]:
        try:
            frame: dict[str, Any] = json.loads(self._opened.recv(timeout=timeout))
        except TimeoutError:
            raise ToolRefused("unavailable", "the gateway did not answer in time") from None
        except WebSocketException as error:
            raise ToolRefused("unavailable", f"the gateway closed the connection: {error}") from None
        return frame


def _refused(error: Mapping[str, Any]) -> ToolRefused:
    details = error.get("details")
    code = details.get("code") if is_object(details) else None
    known: RefusalCode = code if code in REFUSAL_CODES else "invalid_request"
    return ToolRefused(known, str(error.get("message", "refused")))
