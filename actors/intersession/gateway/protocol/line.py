"""The connection of a worker, or of a door, to the gateway of the log's writer: one, for many requests at once, and made again when it is lost (WORK-12, DOOR-1)."""

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from itertools import count
from typing import Final, NamedTuple

import msgspec

from intersession.gateway.protocol.client import GatewayClient, refused_by
from intersession.gateway.protocol.connection import NO_EVENTS
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.plain_json import JsonMapping, JsonObject, is_object

logger = logging.getLogger("intersession.line")

MOST_BYTES: Final = 8 * 1024 * 1024
"""The largest frame that a gateway takes; its connection would end with a larger one."""

_FIRST_WAIT_S: Final = 0.05
_LONGEST_WAIT_S: Final = 0.25
_AGAIN_S: Final = 0.25
"""How long a request waits that the writer could not take just now."""

_LATER: Final = frozenset({"unavailable", "busy"})


Params = JsonMapping | Callable[[], JsonMapping]
"""The parameters of a request, or what makes them each time that it is sent."""


class _Request(NamedTuple):
    id: str
    method: str
    params: Params
    answer: "Future[JsonObject]"
    again: bool

    @property
    def frame(self) -> JsonObject:
        params = self.params() if callable(self.params) else self.params
        return {"type": "req", "id": self.id, "method": self.method, "params": params}


class Line:
    """Sends requests to whichever of some addresses has the log's writer. Its methods may be called from any thread.

    `addresses` gives them anew for each connection; they are tried in turn. The token is proven, not sent (`GatewayClient`);
    by TLS neither, where the log has `announced` them. `hear` gets the events that the gateway tells, on the line's thread.
    """

    def __init__(
        self,
        addresses: Callable[[], Sequence[str]],
        token: str,
        *,
        announced: bool = False,
        hear: Callable[[JsonObject], object] | None = None,
    ) -> None:
        self._announced = announced
        self._addresses = addresses
        self._hear = hear
        self.address: str | None = None
        """Where it is connected, or was last."""
        self._token = token
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._waiting: dict[str, _Request] = {}
        self._sent: dict[str, GatewayClient] = {}
        """The connection on which each of them was sent, and is yet to be answered: on one, a gateway takes it once."""
        self._client: GatewayClient | None = None
        self._turn = 0
        self._closed = threading.Event()
        self._trouble: str | None = None
        self._told: set[str] = set()
        """What was logged since a gateway answered: of several addresses each has its own trouble, in turn."""
        self._thread = threading.Thread(target=self._run, name="worker-line", daemon=True)

    def open(self) -> None:
        """Connect for the first time, if a gateway answers; later ones are waited for.

        Raises:
            ToolRefused: a gateway does not know the token (`forbidden`).
        """
        try:
            self._client = self._connected()
        except ToolRefused as refused:
            if refused.code == "forbidden":
                raise
        self._thread.start()

    @property
    def is_connected(self) -> bool:
        """Whether a gateway answers now."""
        return self._client is not None

    @property
    def methods(self) -> Collection[str]:
        """Names of what can be asked of the host that answers now."""
        client = self._client
        return () if client is None else client.methods

    @property
    def trouble(self) -> str | None:
        """Why no gateway answers."""
        return self._trouble

    def ask(self, method: str, params: Params, *, again: bool = True) -> "Future[JsonObject]":
        """Send a request; return its payload to come, or a `ToolRefused`.

        With `again` it is sent again when the connection is lost, or the writer could not take it just now, until it is answered
        or its future is cancelled. Else its future has `StoreUnavailable` then.
        """
        request_id = f"w{next(self._numbers)}"
        request = _Request(request_id, method, params, Future(), again)
        if not callable(params) and len(msgspec.json.encode(params)) > MOST_BYTES:
            request.answer.set_exception(
                ToolRefused("too_large", f"{method}: more than {MOST_BYTES} bytes, send less")
            )
            return request.answer
        request.answer.add_done_callback(lambda _: self._forget(request_id))
        with self._lock:
            self._waiting[request_id] = request
            client = self._client
        if client is not None:
            self._send(client, request)
        elif not again:
            self._give_up(request, "no gateway of the log's writer answers")
        return request.answer

    def lose(self) -> None:
        """Give the present connection up, and try the next address: its gateway does not answer."""
        with self._lock:
            client = self._client
        if client is not None:
            client.close()

    def close(self) -> None:
        """Close the connection for good."""
        self._closed.set()
        self.lose()
        if self._thread.ident is not None:
            self._thread.join(5.0)
        for request in tuple(self._waiting.values()):
            self._give_up(request, "this process has ended")

    # --- its thread

    def _run(self) -> None:
        wait = _FIRST_WAIT_S
        while not self._closed.is_set():
            client = self._client
            if client is None:
                try:
                    client = self._connected()
                except ToolRefused as refused:
                    self._tell(refused.error)
                    self._closed.wait(wait)
                    wait = min(wait * 2, _LONGEST_WAIT_S)
                    continue
            wait = _FIRST_WAIT_S
            self._tell(None)
            try:
                self._serve(client)
            finally:
                client.close()

    def _serve(self, client: GatewayClient) -> None:
        with self._lock:
            self._client = client
            waiting = tuple(self._waiting.values())
        for request in waiting:
            self._send(client, request)
        try:
            while not self._closed.is_set():
                self._take(client.receive(None))
        except (ToolRefused, ValueError) as error:
            if not self._closed.is_set():
                logger.info("the connection to the writer's gateway is lost: %s", error)
        with self._lock:
            self._client = None
            lost = [request for request in tuple(self._waiting.values()) if not request.again]
        for request in lost:
            self._give_up(request, "the connection to the writer's gateway was lost")

    def _connected(self) -> GatewayClient:
        """Return a connection to the first address that answers, from the next one on."""
        try:
            addresses = self._addresses()
        except StoreUnavailable as error:
            raise ToolRefused("unavailable", str(error)) from None
        failed = ToolRefused("unavailable", "the log has no writer with a gateway")
        first, self._turn = self._turn, self._turn + 1
        for number in range(len(addresses)):
            caps = () if self._hear is not None else (NO_EVENTS,)
            address = addresses[(first + number) % len(addresses)]
            try:
                client = GatewayClient(address, self._token, announced=self._announced, caps=caps)
            except ToolRefused as refused:
                failed = refused
            else:
                self.address = address
                return client
        raise failed

    def _tell(self, problem: str | None) -> None:
        """Log once that no gateway answers, and that one does again."""
        self._trouble = problem
        if problem is None:
            if self._told:
                logger.warning("the writer's gateway is reached again")
            self._told.clear()
        elif problem not in self._told:
            self._told.add(problem)
            logger.warning("the writer's gateway can't be reached, and is tried again: %s", problem)

    def _forget(self, request_id: str) -> None:
        with self._lock:
            self._waiting.pop(request_id, None)
            self._sent.pop(request_id, None)

    def _send(self, client: GatewayClient, request: _Request) -> None:
        with self._lock:
            # A caller, a connection that begins, and another try of a request may all send it at once.
            if self._sent.get(request.id) is client or request.id not in self._waiting:
                return
            self._sent[request.id] = client
        try:
            client.send(request.frame)
        except ToolRefused as refused:
            if not request.again:
                self._give_up(request, refused.error)

    def _take(self, frame: JsonObject) -> None:
        if frame.get("type") != "res":
            if self._hear is not None:
                self._hear(frame)
            return
        request = self._waiting.get(str(frame.get("id")))
        if request is None:
            return
        if frame.get("ok"):
            payload = frame.get("payload")
            self._settle(request, payload if is_object(payload) else {})
            return
        error = frame.get("error")
        refused = refused_by(error if is_object(error) else {})
        if refused.code not in _LATER:
            self._settle(request, refused)
        elif request.again:
            self._sent.pop(request.id, None)
            later = threading.Timer(_AGAIN_S, self._send_again, (request,))
            later.daemon = True
            later.start()
        else:
            self._give_up(request, refused.error)

    def _send_again(self, request: _Request) -> None:
        with self._lock:
            client = self._client
        if client is not None and request.id in self._waiting:
            self._send(client, request)

    def _give_up(self, request: _Request, why: str) -> None:
        self._settle(request, StoreUnavailable(why))

    def _settle(self, request: _Request, answer: JsonObject | Exception) -> None:
        """Answer a request; the first of several answers counts."""
        if self._waiting.pop(request.id, None) is None or not request.answer.set_running_or_notify_cancel():
            return
        if isinstance(answer, Exception):
            request.answer.set_exception(answer)
        else:
            request.answer.set_result(answer)
