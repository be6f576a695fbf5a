"""One connection of the WebSocket protocol, without any I/O: frames in, effects out.

The gateway speaks first (`connect.challenge`); the first request must be `connect` with a token. Scopes come from the
credential alone: what a client claims can only narrow them. A device's identity is read and gives no right.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal

import msgspec

from intersession.gateway.admission import attempts as admission_attempts
from intersession.gateway.admission import credentials as admission_credentials
from intersession.gateway.admission import limits, scopes
from intersession.gateway.admission import proof as admission_proof
from intersession.gateway.protocol.connect_params import ConnectAuth, ConnectParams
from intersession.gateway.protocol.effects import Close, Effect, Perform, Send, Welcome
from intersession.gateway.protocol.frames import (
    PROTOCOL,
    BadFrame,
    Frame,
    Request,
    encoded,
    error_response,
    error_shape,
    event,
    read_request,
    refusal_shape,
    response,
)
from intersession.gateway.protocol.run_events import RunEvent
from intersession.gateway.protocol.run_names import name_for
from intersession_actors.assembly.methods.terms import in_terms_of_methods
from intersession_actors.rules.config.host import OperatorScope
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.keys.key import SessionKey

TOOL_EVENTS: Final = "tool-events"
"""The capability of a client that wants to hear of tool calls."""

NO_EVENTS: Final = "no-events"
"""The capability of a client that hears of nothing: it waits for answers alone."""

POSITION: Final = "position"
"""The capability of a client that wants each answer's position in the log (DOOR-3)."""

POLICY_VIOLATION: Final = 1008
PROTOCOL_ERROR: Final = 1002
TOO_BIG: Final = 1009
RESTARTING: Final = 1012
TRY_AGAIN: Final = 1013


State = Literal["new", "welcoming", "open", "closed"]


class Connection:
    """A client's connection. `nonce` makes its challenge; `parse_key` reads canonical keys.

    `servers` are the names by which its client may have met the gateway, so that a token can be proven instead of sent: the
    gateway's end of a direct connection (`server_name`), and the address that it advertises, also through a proxy. `position`
    returns up to where this host has read the log.
    """

    def __init__(
        self,
        *,
        nonce: str,
        address: str,
        credentials: admission_credentials.Credentials,
        attempts: admission_attempts.FailedAttempts,
        now_ms: Callable[[], int],
        parse_key: Callable[[str], SessionKey],
        servers: Sequence[str] = (),
        position: Callable[[], int] = lambda: 0,
    ) -> None:
        self._nonce = nonce
        self._position = position
        self._address = address
        self._credentials = credentials
        self._attempts = attempts
        self._now_ms = now_ms
        self._parse_key = parse_key
        self._servers = servers
        self._handshake: admission_proof.Handshake | None = None
        self._seq = 0
        self._in_flight: set[str] = set()
        self._capabilities: frozenset[str] = frozenset()
        self.state: State = "new"
        self.credential: admission_credentials.Credential | None = None
        self.scopes: frozenset[OperatorScope] = frozenset()
        self.refused_because: str | None = None
        """Why nobody was let in, for the process's own log."""

    def opened(self) -> list[Effect]:
        """Greet: send the challenge for the first request."""
        challenge = {"nonce": self._nonce, "ts": self._now_ms()}
        return [Send(encoded(event("connect.challenge", challenge)))]

    def received(self, data: str | bytes) -> list[Effect]:
        """Take a frame, and return effects."""
        if self.state == "closed":
            return []
        if self.state == "new" and len(data) > limits.HANDSHAKE_BYTES:
            return self._close(TOO_BIG, "frame too large before connect")
        try:
            request = read_request(data)
        except BadFrame as bad:
            return self._bad(bad)
        if self.state == "new":
            return self._connect(request)
        if request.method == "connect":
            return self._refuse(request.id, "connect is only valid as the first request")
        if self.state == "welcoming":
            return self._refuse(request.id, "wait for the answer to connect")
        return self._ask(request)

    def handshake_is_late(self) -> list[Effect]:
        """Give up a client whose handshake is late."""
        return (
            self._close(POLICY_VIOLATION, "handshake timeout") if self.state in {"new", "welcoming"} else []
        )

    def gives_way(self) -> list[Effect]:
        """Give up a client to make room: a stranger, or one of many of its credential."""
        if self.state == "closed":
            return []
        whose = "of this credential" if self.state == "open" else "that have not said who they are"
        return self._close(TRY_AGAIN, f"too many connections {whose}")

    def turned_away(self, request_id: str, message: str) -> list[Effect]:
        """Send an authorised client away for lack of room."""
        if self.state != "welcoming":
            return []
        shape = error_shape("UNAVAILABLE", message, retryable=True)
        return [Send(encoded(error_response(request_id, shape))), *self._close(TRY_AGAIN, message[:120])]

    def welcomed(self, request_id: str, hello: Frame) -> list[Effect]:
        """Admit a client: `hello` is the payload of `hello-ok`. If the client proved its token, the gateway proves it as well."""
        if self.state != "welcoming":
            return []
        self.state = "open"
        if self._handshake is not None and self.credential is not None:
            hello = hello | {"auth": {"proof": self._handshake.proof(self.credential.digest, "gateway")}}
        return [Send(encoded(response(request_id, hello)))]

    def accepted(self, request_id: str, payload: Frame) -> list[Effect]:
        """Answer a request for the first time; a second answer follows."""
        return self._answer(response(request_id, payload), request_id, last=False)

    def answered(self, request_id: str, payload: Frame) -> list[Effect]:
        """Answer a request."""
        return self._answer(response(request_id, payload), request_id)

    def failed(self, request_id: str, error: Frame, payload: Frame | None = None) -> list[Effect]:
        """Refuse a request, with a shape of `error_shape`."""
        return self._answer(error_response(request_id, error, payload), request_id)

    def refused(self, request_id: str, refused: ToolRefused) -> list[Effect]:
        """Refuse a request with a tool's refusal, worded for methods, or for our own commands: those prove their token."""
        if self._handshake is None:
            refused = in_terms_of_methods(refused)
        return self.failed(request_id, refusal_shape(refused))

    @property
    def hears_nothing(self) -> bool:
        """Whether its client has said that it takes no events."""
        return NO_EVENTS in self._capabilities

    def hears(self, told: RunEvent) -> bool:
        """Whether an event of a session is for this client."""
        if self.state != "open" or self.credential is None or "operator.read" not in self.scopes:
            return False
        if "door" in self.scopes and (told.position is not None or told.name != "chat"):
            return False  # it reads the log, and needs nothing else than what agents say in pieces
        if told.tools and TOOL_EVENTS not in self._capabilities:
            return False
        caller = self.credential.caller
        return caller.is_operator or caller.reaches(self._parse_key(told.session_key))

    def tell_of(self, told: RunEvent) -> list[Effect]:
        """Send an event of a session, with the client's own name of the run."""
        payload = told.payload
        if "door" in self.scopes:
            payload = payload | {"attempt": told.attempt}
        elif self.credential is not None:
            name = name_for(self.credential.caller.name, payload["runId"], told.asked)
            payload = payload | {"runId": name}
        return self.tell(told.name, payload, position=told.position)

    def tell(self, name: str, payload: Frame, *, position: int | None = None) -> list[Effect]:
        """Send an event with the next number."""
        if self.state != "open":
            return []
        self._seq += 1
        return [Send(encoded(event(name, payload, self._seq)), position)]

    def still_counts(self) -> bool:
        """Whether the client's credential is still valid."""
        return self.credential is None or self._credentials.count(self.credential)

    def revoked(self) -> list[Effect]:
        """Send a client away whose credential is no longer valid."""
        return self._close(POLICY_VIOLATION, "credential revoked")

    def ended(self) -> None:
        """Note that the connection is gone."""
        self.state = "closed"
        self._in_flight.clear()

    # --- the first request

    def _connect(self, request: Request) -> list[Effect]:
        if request.method != "connect":
            return self._turn_away(request.id, "invalid handshake: first request must be connect")
        try:
            given = msgspec.convert(request.params or {}, ConnectParams)
        except (msgspec.ValidationError, RecursionError) as error:
            return self._turn_away(request.id, f"invalid connect params: {str(error).replace('`', '')}")
        if not given.min_protocol <= PROTOCOL <= given.max_protocol:
            details = {"expectedProtocol": PROTOCOL}
            return self._turn_away(request.id, "protocol mismatch", details=details, code=PROTOCOL_ERROR)
        if given.role != "operator":
            return self._turn_away(request.id, "invalid role: only operator is supported")
        credential = self._credential(request.id, given.auth)
        if not isinstance(credential, admission_credentials.Credential):
            return credential
        self.credential = credential
        self.scopes = scopes.granted(given.scopes, credential.scopes)
        self._capabilities = frozenset(given.caps)
        self.state = "welcoming"
        return [Welcome(request.id)]

    def _credential(
        self, request_id: str, auth: ConnectAuth | None
    ) -> admission_credentials.Credential | list[Effect]:
        given = (auth.token or auth.password) if auth is not None else None
        proof = auth.proof if auth is not None and not given else None
        if not given and not (proof and self._servers):
            details = {"code": "AUTH_TOKEN_MISSING", "authReason": "token_missing"}
            return self._turn_away(request_id, "unauthorized: gateway token missing", details=details)
        if given:
            credential = self._credentials.match(given.encode(errors="surrogatepass"))
        else:
            credential = self._proven(proof or "", (auth and auth.nonce) or "")
        if credential is None:
            wait = self._attempts.wait_for(self._address)
            if wait > 0:
                details = {"code": "AUTH_RATE_LIMITED", "authReason": "rate_limited"}
                message = "unauthorized: too many failed authentication attempts (retry later)"
                return self._turn_away(
                    request_id, message, details=details, retry_after_ms=round(wait * 1000)
                )
            self._attempts.failed(self._address)
            details = {"code": "AUTH_TOKEN_MISMATCH", "authReason": "token_mismatch"}
            return self._turn_away(request_id, "unauthorized: gateway token mismatch", details=details)
        return credential

    def _proven(self, proof: str, nonce: str) -> admission_credentials.Credential | None:
        for server in self._servers:
            handshake = admission_proof.Handshake(challenge=self._nonce, nonce=nonce, server=server)
            credential = self._credentials.proven(handshake, proof)
            if credential is not None:
                self._handshake = handshake
                return credential
        return None

    def _turn_away(
        self,
        request_id: str,
        message: str,
        *,
        details: Frame | None = None,
        code: int = POLICY_VIOLATION,
        retry_after_ms: int | None = None,
    ) -> list[Effect]:
        self.refused_because = message
        shape = error_shape(
            "INVALID_REQUEST",
            message,
            details=details,
            retryable=retry_after_ms is not None,
            retry_after_ms=retry_after_ms,
        )
        return [Send(encoded(error_response(request_id, shape))), *self._close(code, message[:120])]

    # --- all others

    def _ask(self, request: Request) -> list[Effect]:
        scope = scopes.needed_scope(request.method)
        if scope not in self.scopes:
            return self._refuse(request.id, f"missing scope: {scope}")
        if request.id in self._in_flight:
            return self._refuse(request.id, "a request with this id is not answered yet")
        most = limits.MOST_OF_A_DOOR if "door" in self.scopes else limits.MOST_IN_FLIGHT
        if len(self._in_flight) >= most:
            shape = error_shape("UNAVAILABLE", "too many requests in flight", retryable=True)
            return [Send(encoded(error_response(request.id, shape)))]
        self._in_flight.add(request.id)
        return [Perform(request.id, request.method, request.params or {}, request.after or 0)]

    def _bad(self, bad: BadFrame) -> list[Effect]:
        message = f"invalid request frame: {bad}"
        if self.state == "open":
            return self._refuse(bad.request_id or "invalid", message)
        if bad.request_id is not None:
            return self._turn_away(bad.request_id, message)
        return self._close(POLICY_VIOLATION, "invalid request frame")

    def _answer(self, frame: Frame, request_id: str, *, last: bool = True) -> list[Effect]:
        if request_id not in self._in_flight:
            return []  # the connection is gone
        if last:
            self._in_flight.discard(request_id)
        if POSITION in self._capabilities:
            frame = frame | {"position": self._position()}
        text = encoded(frame)
        if len(text) > limits.ANSWER_BYTES:
            message = f"the answer is larger than {limits.ANSWER_BYTES} bytes, ask for less (limit)"
            self._in_flight.discard(request_id)
            text = encoded(
                error_response(
                    request_id, error_shape("INVALID_REQUEST", message, details={"code": "too_large"})
                )
            )
        return [Send(text)]

    def _refuse(self, request_id: str, message: str) -> list[Effect]:
        return [Send(encoded(error_response(request_id, error_shape("INVALID_REQUEST", message))))]

    def _close(self, code: int, reason: str) -> list[Effect]:
        self.state = "closed"
        return [Close(code, reason)]
