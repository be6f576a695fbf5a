"""Uvicorn's protocols with what a door on a network needs besides: a time for heads, a size before and after the handshake.

They reach into uvicorn's classes, so tests hold each of the three against a real socket.
"""

import asyncio
from typing import Any, Final, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from intersession.gateway.limits import HANDSHAKE_BYTES, HEAD_S
from intersession.gateway.websocket import EXTENSION

ABORT_S: Final = 5.0


class PatientHttp(H11Protocol):
    """HTTP/1.1 whose requests have `HEAD_S` seconds to say what they want."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._late = self.loop.call_later(HEAD_S, self._is_late)

    def data_received(self, data: bytes) -> None:
        """Take bytes, and note whether they complete a head."""
        if self._late is None and self.conn.their_state is h11.IDLE:
            self._late = self.loop.call_later(HEAD_S, self._is_late)
        super().data_received(data)
        if self._late is not None and self.conn.their_state is not h11.IDLE:
            self._late.cancel()
            self._late = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._late is not None:
            self._late.cancel()
        super().connection_lost(exc)

    def _is_late(self) -> None:
        self._late = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()


class CappedWebSocket(WebSocketsSansIOProtocol):
    """A connection whose frames are small until somebody is let in, and that can be closed while its client does not read."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn.max_message_size = HANDSHAKE_BYTES

    def handle_connect(self, event: Any) -> None:
        """Offer the logic of the connection what ASGI has no words for."""
        super().handle_connect(event)
        scope = cast("dict[str, Any]", getattr(self, "scope", {}))
        scope.setdefault("extensions", {})[EXTENSION] = self

    def allow(self, size: int) -> None:
        """Take frames of up to `size` bytes from now on."""
        self.conn.max_message_size = size

    def close_at_once(self, code: int, reason: str) -> None:
        """Put a close frame behind what is on its way already, and cut the connection if nobody reads that either."""
        if self.close_sent or self.transport.is_closing():
            return
        self.stop_keepalive()
        self.conn.send_close(code, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(ABORT_S, self.transport.abort)
