"""Uvicorn's HTTP and WebSocket protocols, with bounds on a client's time and on buffered data.

They reach into uvicorn's classes, so tests hold each rule against a real socket.
"""

import asyncio
import contextlib
import logging
import socket
import struct
import time
from collections.abc import Iterable
from typing import Any, Final, TypeVar, cast

import h11
import uvicorn
from litestar.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request
from websockets.protocol import Protocol

from intersession.gateway.admission.complaints import limited_logger
from intersession.gateway.admission.limits import HANDSHAKE_BYTES, MOST_FRAGMENTS, MOST_PINGS, Limits
from intersession.gateway.http.shield import Refusal
from intersession.gateway.http.websocket import EXTENSION
from intersession.gateway.process.framing import BadFraming, Framing
from intersession_events.basics.plain_json import JsonObject

P = TypeVar("P", bound=asyncio.Protocol)

ABORT_S: Final = 5.0

_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)

_NOTHING_LINGERS: Final = struct.pack("ii", 1, 0)

_REFUSED: Final = "the request can't be read in one way only: %s"


_OF_HTTP: Final = frozenset(
    [
        "conn",
        "connection_lost",
        "connection_made",
        "connections",
        "cycle",
        "data_received",
        "logger",
        "loop",
        "on_response_complete",
        "pause_writing",
        "resume_writing",
        "timeout_keep_alive_task",
        "transport",
    ]
)
_OF_WEBSOCKETS: Final = frozenset(
    [
        "close_sent",
        "conn",
        "frames",
        "handle_connect",
        "handle_cont",
        "handle_parser_exception",
        "handle_ping",
        "logger",
        "loop",
        "pause_writing",
        "queue",
        "read_paused",
        "receive",
        "resume_writing",
        "send",
        "send_receive_event_to_app",
        "stop_keepalive",
        "transport",
    ]
)
"""What our protocols override or read of uvicorn's, which promises none of it."""


def parts_gone(theirs: type, names: Iterable[str]) -> list[str]:
    """Return the methods and attributes that a class no longer has: it defines them, or sets them in `__init__`."""
    there = set(dir(theirs))
    for kind in theirs.__mro__:
        for beginning in ("__init__", "connection_made"):
            code = getattr(vars(kind).get(beginning), "__code__", None)
            there.update(() if code is None else code.co_names)
    return sorted(set(names) - there)


def own_or_theirs(ours: type[P], theirs: type[P], names: Iterable[str]) -> type[P]:
    """Return our protocol, or uvicorn's own if a version of it has other parts: then slow clients are not bounded."""
    gone = parts_gone(theirs, names)
    if theirs is WebSocketsSansIOProtocol and "max_message_size" not in Protocol.__init__.__code__.co_names:
        gone.append("websockets: max_message_size")
    if not gone:
        return ours
    logging.getLogger("intersession.gateway.connections").warning(
        "uvicorn %s serves without the gateway's bounds on slow clients, since it has no %s any more: use a version that was tried,"
        " or keep the gateway behind a proxy",
        uvicorn.__version__,
        ", ".join(gone),
    )
    return theirs


class ServerConfig(uvicorn.Config):
    """Uvicorn's configuration, and the gateway's limits."""

    def __init__(self, app: ASGIApp, limits: Limits, **options: Any) -> None:  # uvicorn's own, by name
        super().__init__(
            app,
            http=own_or_theirs(PatientHttp, H11Protocol, _OF_HTTP),
            ws=own_or_theirs(CappedWebSocket, WebSocketsSansIOProtocol, _OF_WEBSOCKETS),
            ws_max_size=limits.body_bytes,
            **options,
        )
        self.limits = limits
        # Warnings only: below, uvicorn logs addresses with their queries, and websockets whole frames, and somebody's token
        # may be in both. And not each: a sender of garbage can send much of it.
        self.logger = limited_logger("intersession.gateway.connections", time.monotonic)


class PatientHttp(H11Protocol):
    """HTTP/1.1 with a time limit for each thing a client does: send its request, finish its body, read its answer."""

    _late: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def __init__(self, config: ServerConfig, *args: Any, **options: Any) -> None:  # uvicorn's own
        super().__init__(config, *args, **options)
        self.logger = config.logger
        self._limits: Limits = config.limits
        self._framing = Framing()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head, if there is room for another connection."""
        room = self._make_room()
        super().connection_made(transport)
        if not room:
            transport.write(_FULL)
            transport.close()
            return
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take bytes after checking their framing, and note whether they complete a head."""
        try:
            self._framing.take(data)
        except BadFraming as bad:
            self._refuse(bad)
            return
        if self._late is None and self.conn.their_state is h11.IDLE:
            self._wait()
        super().data_received(data)
        if self._late is not None and not self._owes():
            self._late.cancel()
            self._late = None

    def on_response_complete(self) -> None:
        """Give a client that was answered early a last time to finish sending."""
        super().on_response_complete()
        if self._late is None and self._owes() and self.conn.their_state is not h11.IDLE:
            self._wait()

    def pause_writing(self) -> None:
        """Begin to wait until an answer is read."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self._limits.stall_s, self._cut)

    def resume_writing(self) -> None:
        """Go on: the client reads."""
        super().resume_writing()
        self._stop_stalled()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._late is not None:
            self._late.cancel()
        self._stop_stalled()
        super().connection_lost(exc)

    def _refuse(self, bad: BadFraming) -> None:
        """Answer with the error, if no answer is in progress, and close: the start of the next request is unknown."""
        self.logger.warning(_REFUSED, bad)
        if self.transport.is_closing():
            return
        # uvicorn says that there always is a cycle; before the first request there is none
        if self.cycle is None or self.cycle.response_complete:  # pyright: ignore[reportUnnecessaryComparison]
            refusal = Refusal(400, "invalid_request_error", f"{bad}", (("connection", "close"),)).as_json()
            head = b"".join(b"%s: %s\r\n" % header for header in refusal.raw_headers)
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head + b"\r\n" + refusal.body)
        self.transport.close()

    @property
    def waits_since(self) -> float | None:
        """When its time for a request will be over, on the loop's clock; None if the request is there.

        An answered client that keeps the connection for later has said nothing yet, either: what it had it can have again.
        """
        if self.conn.their_state is not h11.IDLE:
            return None
        waiting = self._late or self.timeout_keep_alive_task
        return None if waiting is None else waiting.when()

    def _make_room(self) -> bool:
        """Whether there is room for one more: if necessary, in place of the client that has been silent for longest."""
        if len(self.connections) < self._limits.connections:
            return True
        silent = [
            (since, id(other), other)
            for other in self.connections
            if isinstance(other, PatientHttp) and (since := other.waits_since) is not None
        ]
        if not silent:
            return False
        _, _, longest = min(silent)
        longest.transport.abort()
        self.connections.discard(longest)
        return True

    def _owes(self) -> bool:
        """Whether the client has to send something that no other timer covers: a head, or an unread body."""
        state = self.conn.their_state
        return state is h11.IDLE or (state is h11.SEND_BODY and self.conn.our_state is h11.DONE)

    def _wait(self) -> None:
        self._late = self.loop.call_later(self._limits.head_s, self._is_late)

    def _is_late(self) -> None:
        self._late = None
        if self._owes() and not self.transport.is_closing():
            self.transport.close()

    def _cut(self) -> None:
        """Drop the connection and unsent data, the system's buffers included: the client does not read."""
        raw = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError, AttributeError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NOTHING_LINGERS)
        self.transport.abort()

    def _stop_stalled(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


class CappedWebSocket(WebSocketsSansIOProtocol):
    """A connection with small frames until it is admitted, which can be closed while its client does not read.

    A client that does not read is not read either, so that pings can't fill the memory with pongs.
    """

    _unread = False
    _is_in = False
    _pings = 0

    def __init__(self, *args: Any, **options: Any) -> None:  # uvicorn's own
        super().__init__(*args, **options)
        self.logger = self.conn.logger = cast("ServerConfig", self.config).logger
        self.conn.debug = False
        self.conn.max_message_size = HANDSHAKE_BYTES

    def handle_connect(self, event: Request) -> None:
        """Offer the connection's logic the operations that ASGI does not have."""
        super().handle_connect(event)
        scope = cast("JsonObject", getattr(self, "scope", {}))
        scope.setdefault("extensions", {})[EXTENSION] = self

    def handle_cont(self, event: Frame) -> None:
        """Take a further part of a message. Empty parts count as well: without a bound, they would be stored for ever."""
        if len(self.frames) >= MOST_FRAGMENTS:
            self._fail(1009, "too many fragments")
            return
        super().handle_cont(event)

    def handle_ping(self) -> None:
        """Answer a ping. A stranger needs few, and each costs time that is everybody's."""
        self._pings += 1
        if not self._is_in and self._pings > MOST_PINGS:
            self._fail(1008, "too many pings before connect")
            return
        if not self.transport.is_closing():
            super().handle_ping()

    def send_receive_event_to_app(self) -> None:
        """Pass a message on, unless it is invalid text."""
        if self.curr_msg_data_type == "text" and not _is_text(self.frames):
            self._fail(1007, "the text is not UTF-8")
            return
        super().send_receive_event_to_app()

    def pause_writing(self) -> None:
        """Stop reading until the written data is on its way."""
        super().pause_writing()
        self._unread = True
        if not self.read_paused:
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on reading."""
        super().resume_writing()
        self._unread = False
        if not self.read_paused:
            self.transport.resume_reading()

    async def send(self, message: Any) -> None:  # uvicorn keeps its types of messages to itself
        """Send, unless the client has gone: asyncio would warn at each attempt."""
        if self.transport.is_closing():
            raise ClientDisconnected
        await super().send(message)

    async def receive(self) -> Any:  # as `send`
        """Return the next message; later ones stay in the network until it is read."""
        message = await super().receive()
        if self._unread and not self.read_paused:
            self.transport.pause_reading()
        return message

    def allow(self, size: int) -> None:
        """Take frames of up to `size` bytes from now on."""
        self._is_in = True
        self.conn.max_message_size = size

    def close_at_once(self, code: int, reason: str) -> None:
        """Send a close frame behind data that is on its way, and cut the connection if the client does not read it."""
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

    def _fail(self, code: int, reason: str) -> None:
        self.frames = []
        if self.close_sent or self.transport.is_closing():
            return
        self.conn.fail(code, reason)
        self.handle_parser_exception()


def _is_text(parts: list[bytes]) -> bool:
    try:
        b"".join(parts).decode()
    except UnicodeDecodeError:
        return False
    return True
