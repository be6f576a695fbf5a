"""Carries frames between a WebSocket and the rules in `connection.py`: the socket, its tasks and its buffer.

What is to be sent waits in a bounded buffer. A client that does not read is sent away with the position to go on from, and
nobody else waits for it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from litestar.types import Receive
from litestar.types import Send as AsgiSend

from intersession.gateway.admission.addresses import is_of_a_proxy, is_this_machine, printable
from intersession.gateway.admission.credentials import Credential
from intersession.gateway.admission.proof import server_name
from intersession.gateway.admission.shares import Hold
from intersession.gateway.admission.strangers import Strangers
from intersession.gateway.door import TOO_MUCH, Door
from intersession.gateway.protocol.connection import RESTARTING, TRY_AGAIN
from intersession.gateway.protocol.effects import Close, Effect, Perform, Send, Welcome
from intersession.gateway.protocol.frames import error_shape
from intersession.gateway.protocol.run_events import RunEvent
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.plain_json import JsonMapping, JsonObject

logger = logging.getLogger("intersession.gateway")

EXTENSION: Final = "intersession.connection"
"""Where our own server's protocol offers what ASGI has no words for: `allow(size)` and `close_at_once(code, reason)`."""

LAGGING_BYTES: Final = 65_536
"""What may wait for a client before it is told nothing more of texts that grow."""

Scope: TypeAlias = Any  # litestar's own types want what its router adds later
"""What ASGI says of a request or a connection."""


class WebSocketShell:
    """Carries frames between one client and the logic of its connection."""

    def __init__(
        self, door: Door, strangers: Strangers, scope: Scope, receive: Receive, send: AsgiSend
    ) -> None:
        client = scope.get("client")
        self._door = door
        self._strangers = strangers
        self._receive = receive
        self._send = send
        extensions: JsonObject = scope.get("extensions") or {}
        # Ours, which the process puts there (`uvicorn_protocols.py`); ASGI knows dicts only. A host's server has none.
        self._protocol: Any = extensions.get(EXTENSION)
        self._here = is_this_machine(client[0] if client else None, scope["headers"])
        server = None if is_of_a_proxy(scope["headers"]) else scope.get("server")
        self._client = door.client_of(scope)
        self._connection = door.connection(self._client, server and server_name(server[0], server[1] or 0))
        self._buffer: deque[Send] = deque()
        self._buffered = 0
        self._position = 0
        self._closing: Close | None = None
        self._told_of_end = False
        self._given_up = False
        self._hold: Hold | None = None
        self._stop: Callable[[], object] = lambda: None
        self._known: Callable[[], object] = lambda: None
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serve the connection until it is gone."""
        await self._receive()
        await self._send({"type": "websocket.accept", "subprotocol": None, "headers": []})
        self._stop = self._door.hub.listen(self._hear)
        self._known = self._strangers.come(lambda: self._apply(self._connection.gives_way()))
        main = [
            asyncio.create_task(self._read()),
            asyncio.create_task(self._write()),
            asyncio.create_task(self._watch()),
        ]
        try:
            self._apply(self._connection.opened())
            await asyncio.wait(main, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._stop()
            self._known()
            if self._hold is not None:
                self._hold.release()
            self._connection.ended()
            await _end([*main, *self._tasks])
            if self._connection.refused_because is not None:
                self._tell_of(self._connection.refused_because)

    def _tell_of(self, refusal: str) -> None:
        """Log why a client was refused; a flood from one address fills no log."""
        told, address = self._door.refusals_told, self._client
        if told.wait_for(address) == 0:
            told.failed(address)
            self._door.logger.warning("refused a connection from %s: %s", address, printable(refusal))
            if told.wait_for(address) > 0:
                self._door.logger.warning("further refusals of %s are not told of for a minute", address)

    # --- in

    async def _read(self) -> None:
        while True:
            message: JsonMapping = await self._receive()
            if message["type"] != "websocket.receive":
                return
            data = message.get("text")
            for effect in self._connection.received(message.get("bytes") or b"" if data is None else data):
                if isinstance(effect, Welcome):
                    await self._welcome(effect)
                else:
                    self._apply([effect])

    async def _welcome(self, effect: Welcome) -> None:
        credential = self._connection.credential
        if credential is None:
            return
        self._hold = self._door.open.take(credential)
        if self._hold is None:
            self._apply(self._connection.turned_away(effect.request_id, TOO_MUCH))
            return
        self._hold.give_way = lambda: self._apply(self._connection.gives_way())
        self._position = self._door.system.log.head()
        try:
            hello = await self._door.hello(credential)
        except ToolRefused as refused:
            self._apply([Close(RESTARTING, refused.error[:120])])
            return
        self._known()
        if self._protocol is not None:
            self._protocol.allow(self._door.limits.body_bytes)
        self._apply(self._connection.welcomed(effect.request_id, hello))
        if self._connection.hears_nothing:
            self._stop()  # where nobody else listens, no events are made
        else:
            self._door.hub.catch_up(self._hear)

    async def _perform(self, asked: Perform) -> None:
        connection, credential = self._connection, self._connection.credential
        if credential is None:
            return
        hold = self._door.waits.take(credential)
        if hold is None:
            self._apply(
                connection.failed(asked.request_id, error_shape("UNAVAILABLE", TOO_MUCH, retryable=True))
            )
            return
        credential = msgspec.structs.replace(credential, scopes=connection.scopes)
        try:
            await self._performed(credential, asked)
        finally:
            hold.release()

    async def _performed(self, credential: Credential, asked: Perform) -> None:
        connection = self._connection
        try:
            await self._door.reach(asked.after)
            payload = await self._door.perform(credential, asked.method, asked.params, here=self._here)
            answer = await self._door.named(credential, asked.method, asked.params, payload)
            if asked.method != "agent":
                self._apply(connection.answered(asked.request_id, answer))
                return
            self._apply(connection.accepted(asked.request_id, answer))
            last, error = await self._door.final(payload["runId"])
            last = await self._door.named(credential, asked.method, asked.params, last)
        except ToolRefused as refused:
            self._apply(connection.refused(asked.request_id, refused))
            return
        if error is None:
            self._apply(connection.answered(asked.request_id, last))
        else:
            self._apply(connection.failed(asked.request_id, error, last))

    # --- out

    def _hear(self, events: Sequence[RunEvent]) -> None:
        for told in events:
            # A reader that lags behind needs no text that has grown since: the next one, or the end, has all of it.
            is_passed_over = told.position is None and self._buffered > LAGGING_BYTES
            if not is_passed_over and self._connection.hears(told):
                self._apply(self._connection.tell_of(told))
        if self._door.draining and not self._told_of_end:
            self._told_of_end = True
            self._apply(self._connection.tell("shutdown", {"reason": "service restart"}))

    def _apply(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send():
                    self._put(effect)
                case Close():
                    self._closing = self._closing or effect
                    self._wake.set()
                case Perform():
                    task = asyncio.create_task(self._perform(effect))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                case Welcome():
                    pass  # awaited where it is read

    def _put(self, effect: Send) -> None:
        if self._closing is not None:
            return
        self._buffer.append(effect)
        self._buffered += len(effect.text)
        if self._buffered > self._door.limits.buffered_bytes:
            self._give_up()
        self._wake.set()

    def _give_up(self) -> None:
        """Send a slow reader away: the log has everything it has not read."""
        reason = f"slow consumer: resume after position {self._position}"
        self._closing, self._given_up = Close(TRY_AGAIN, reason), True
        self._buffer.clear()
        self._door.logger.warning("a connection from %s does not read; closed", self._client)
        if self._protocol is not None:
            self._protocol.close_at_once(TRY_AGAIN, reason)

    async def _write(self) -> None:
        while True:
            while self._buffer:
                effect = self._buffer[0]
                await self._send({"type": "websocket.send", "bytes": None, "text": effect.text})
                if self._buffer:
                    self._buffer.popleft()
                    self._buffered -= len(effect.text)
                if effect.position is not None:
                    self._position = effect.position
            if self._closing is not None:
                close = self._closing
                if self._given_up and self._protocol is not None:
                    return
                async with asyncio.timeout(self._door.limits.close_s):
                    await self._send({"type": "websocket.close", "code": close.code, "reason": close.reason})
                return
            self._wake.clear()
            await self._wake.wait()

    # --- time

    async def _watch(self) -> None:
        """Give up a client that does not identify itself in time, or is no longer allowed; else tick."""
        late = asyncio.get_running_loop().call_later(
            self._door.limits.handshake_s, lambda: self._apply(self._connection.handshake_is_late())
        )
        try:
            ticks = 0
            while self._closing is None:
                await asyncio.sleep(self._door.limits.check_s)
                ticks += 1
                if not self._connection.still_counts():
                    self._apply(self._connection.revoked())
                elif ticks % round(self._door.limits.tick_s / self._door.limits.check_s) == 0:
                    self._apply(
                        self._connection.tell("tick", {"ts": self._door.system.service.clock.now_ms()})
                    )
        finally:
            late.cancel()  # else it keeps the connection of a client that has left
        await asyncio.sleep(self._door.limits.close_s)


async def _end(tasks: Iterable[asyncio.Task[None]]) -> None:
    waiting = list(tasks)
    for task in waiting:
        task.cancel()
    for outcome in await asyncio.gather(*waiting, return_exceptions=True):
        # A client that is gone is no fault (OSError, also a time-out); anything else is.
        if isinstance(outcome, Exception) and not isinstance(outcome, OSError):
            logger.error("a connection failed", exc_info=outcome)
