"""A small client of the gateway's WebSocket protocol, for commands beside a running gateway."""

import json
import ssl
from collections.abc import Callable, Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from intersession.gateway.admission.proof import Handshake, named_in, server_name, token_digest
from intersession.gateway.protocol.frames import PROTOCOL
from intersession.gateway.protocol.shared_tls import shared_tls
from intersession_actors.rules.errors import REFUSAL_CODES, RefusalCode, ToolRefused
from intersession_events.basics.closing import Closing
from intersession_events.basics.machine import random_id
from intersession_events.basics.plain_json import JsonMapping, JsonObject, is_object

OPEN_S: Final = 10.0
CLOSE_S: Final = 1.0
"""How long the other side may take to end a connection: one that is paused never does."""
LOOK_S: Final = 0.2
"""How long a client waits for an event before it looks whether it is still to wait."""


class GatewayClient(Closing):
    """Calls methods of a running gateway. Use it as a context manager.

    `address` is the gateway's, as the log's lock has it (`http://127.0.0.1:18789`). The token is not sent: each side
    proves to the other that it knows it, before anything else is said. To a gateway
    behind TLS (`https://…`) the token is sent: its certificate says who it is. To one that is `announced` in a log it
    never is, since the address may be anybody's: what both prove holds for the name in it (`gateway.advertise`). `caps` are what
    it can take (`no-events`).

    Raises:
        ToolRefused: the gateway is not there, or went while both got to know each other (`unavailable`); it does not know
            the token, or is not one of ours (`forbidden`).
    """

    def __init__(
        self, address: str, token: str, *, announced: bool = False, caps: Sequence[str] = ()
    ) -> None:
        self._numbers = 0
        self._announced = announced
        self._caps = tuple(caps)
        url = address.replace("http", "ws", 1)
        try:
            sealed = shared_tls() if url.startswith("wss:") else None
            opening = connect(
                url, ssl=sealed, proxy=None, open_timeout=OPEN_S, close_timeout=CLOSE_S, max_size=None
            )
            self._opened: ClientConnection = opening.__enter__()
        except (OSError, WebSocketException) as error:
            raise ToolRefused(
                "unavailable", f"the gateway at {address} can't be reached: {_why(error)}"
            ) from None
        try:
            features = self._known_to_each_other(address, token).get("features")
        except ToolRefused as refused:
            self.close()
            # A connection that was lost says nothing of the token: the gateway may have stopped just now.
            code: RefusalCode = "unavailable" if refused.code == "unavailable" else "forbidden"
            raise ToolRefused(code, f"the gateway at {address} refused: {refused.error}") from None
        self.methods = frozenset[str](features.get("methods", ()) if is_object(features) else ())
        """The methods that the gateway has."""

    def call(
        self, method: str, params: JsonMapping | None = None, *, timeout: float | None = 60.0
    ) -> JsonObject:
        """Call a method and return its payload.

        Raises:
            ToolRefused: the gateway refused, or did not answer in time (`unavailable`).
        """
        self._numbers += 1
        request_id = str(self._numbers)
        self.send({"type": "req", "id": request_id, "method": method, "params": dict(params or {})})
        while True:
            frame = self.receive(timeout)
            if frame.get("type") != "res" or frame.get("id") != request_id:
                continue
            if not frame["ok"]:
                raise refused_by(frame["error"])
            payload: JsonObject = frame.get("payload") or {}
            return payload

    def call_tool(self, tool: str, arguments: JsonMapping, *, session_key: str | None = None) -> JsonObject:
        """Call a session tool, as a session or as the operator, and return its answer.

        Raises:
            ToolRefused: the gateway refused the call; a tool's own refusal is an answer.
        """
        given = {"name": tool, "args": dict(arguments)}
        named = {} if session_key is None else {"sessionKey": session_key}
        return self.call("tools.invoke", given | named, timeout=None)

    def deltas(self, run_id: str, is_over: Callable[[], bool]) -> Iterator[str]:
        """Yield what the agent of a run has said so far, each time all of it, until the run has ended or `is_over` (STREAM-4).

        Raises:
            ToolRefused: the gateway closed the connection (`unavailable`).
        """
        while not is_over():
            try:
                frame: JsonObject = json.loads(self._opened.recv(timeout=LOOK_S))
            except TimeoutError:
                continue
            except WebSocketException as error:
                raise ToolRefused("unavailable", f"the gateway closed the connection: {error}") from None
            payload: JsonObject = frame.get("payload") or {}
            if frame.get("event") != "chat" or payload.get("runId") != run_id:
                continue
            if payload["state"] != "delta":
                return
            yield payload["message"]["content"][0]["text"]

    def close(self) -> None:
        """Close the connection; any thread may."""
        self._opened.close()

    def _known_to_each_other(self, address: str, token: str) -> JsonObject:
        """Prove to know the token, and have the gateway prove it; return what it says as it admits this client."""
        challenge = self.receive(OPEN_S).get("payload")
        nonce = challenge.get("nonce") if is_object(challenge) else None
        # As it was reached: a name stands for an address, and that is what the gateway sees of it.
        server = named_in(address) if self._announced else server_name(*self._opened.remote_address[:2])
        if not isinstance(nonce, str) or server is None:
            raise ToolRefused("forbidden", "there is no gateway of ours at this address")
        if urlsplit(address).scheme == "https" and not self._announced:
            return self._connect({"token": token})
        digest = token_digest(token.encode())
        handshake = Handshake(challenge=nonce, nonce=random_id(), server=server)
        hello = self._connect({"proof": handshake.proof(digest, "client"), "nonce": handshake.nonce})
        auth = hello.get("auth")
        said = auth.get("proof") if is_object(auth) else None
        if not isinstance(said, str) or not handshake.proves(digest, "gateway", said):
            raise ToolRefused("forbidden", "it did not prove that it knows the token")
        return hello

    def _connect(self, auth: JsonMapping) -> JsonObject:
        params = {
            "minProtocol": PROTOCOL,
            "maxProtocol": PROTOCOL,
            "client": {"id": "cli", "version": "1", "platform": "python", "mode": "cli"},
            "auth": auth,
            "caps": self._caps,
        }
        return self.call("connect", params, timeout=OPEN_S)

    def send(self, frame: JsonMapping) -> None:
        """Send a frame; any thread may.

        Raises:
            ToolRefused: the connection is lost (`unavailable`).
        """
        try:
            self._opened.send(json.dumps(frame))
        except WebSocketException as error:
            raise ToolRefused("unavailable", f"the gateway closed the connection: {error}") from None

    def receive(self, timeout: float | None) -> JsonObject:
        """Return the next frame, in `timeout` seconds at most; for one thread.

        Raises:
            ToolRefused: the connection is lost, or nothing came in time (`unavailable`).
        """
        try:
            frame: JsonObject = json.loads(self._opened.recv(timeout=timeout))
        except TimeoutError:
            raise ToolRefused("unavailable", "the gateway did not answer in time") from None
        except WebSocketException as error:
            raise ToolRefused("unavailable", f"the gateway closed the connection: {error}") from None
        return frame


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{error}; SSL_CERT_FILE names the certificates that are trusted"
    if isinstance(error, ssl.SSLError):
        return f"{error}; the gateway itself speaks no TLS, give its http:// address, or that of a proxy"
    return str(error)


def refused_by(error: JsonMapping) -> ToolRefused:
    """Return the refusal in the answer of a gateway."""
    details = error.get("details")
    code = details.get("code") if is_object(details) else None
    usual: RefusalCode = "unavailable" if error.get("code") == "UNAVAILABLE" else "invalid_request"
    known: RefusalCode = code if code in REFUSAL_CODES else usual
    return ToolRefused(known, str(error.get("message", "refused")))
