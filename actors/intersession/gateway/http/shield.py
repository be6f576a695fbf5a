"""Judges each request before it is parsed or routed: its host, origin, token, kind, size and time."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
from litestar.datastructures import Headers
from litestar.types import (
    ASGIApp,
    HTTPReceiveMessage,
    HTTPResponseBodyEvent,
    HTTPResponseStartEvent,
    Message,
    Receive,
    Send,
    WebSocketReceiveMessage,
    WebSocketResponseBodyEvent,
    WebSocketResponseStartEvent,
)

from intersession.gateway.admission.addresses import host_allowed, origin_allowed, printable
from intersession.gateway.admission.credentials import Credential
from intersession.gateway.admission.shares import Hold
from intersession.gateway.admission.strangers import Strangers
from intersession.gateway.door import STOPPING, TOO_MUCH, Door
from intersession.gateway.http.debugging import DoorAccess, token_in
from intersession.gateway.http.page import HEADERS, page, wants_page
from intersession.gateway.http.websocket import Scope, WebSocketShell
from intersession.web.access import ACCESS
from intersession.web.cookies import HEADER, Halves, cookie_of, halves_in
from intersession.web.files import API, LOGIN, LOGOUT, file_at, is_static
from intersession.web.stopping import ended_well
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.plain_json import JsonMapping

OPEN_PATHS: Final = frozenset({"/healthz", "/openapi.json", "/readyz"})
"""What needs no token: whether the gateway lives and takes callers, and what it offers."""

CREDENTIAL: Final = "intersession_credential"
"""Where a request's state has who is in."""

DOOR: Final = "intersession_door"
"""Where it has the gateway that it came to: the routes are those of all gateways of a process."""

HOLD: Final = "intersession_hold"
"""Where it has what its credential holds by it."""

MISDIRECTED: Final = 421

AFTER: Final = "intersession-after"
"""The header of a request that is to be answered by a host that has read up to a position; 0 asks for the first one."""

POSITION: Final = b"intersession-position"
"""The header of its answer that says up to where the host has read by then."""

_EVERY_ANSWER: Final = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
_BEARER: Final = b"bearer "
_DIGITS: Final = 18


class Answer(NamedTuple):
    """An answer without a route, as it goes over the wire."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        """Its headers."""
        length = ("content-length", str(len(self.body)))
        return [(name.encode(), value.encode()) for name, value in (*self.headers, length)]


class Refusal(NamedTuple):
    """A request that reaches no route: a status, a kind for programs, a message for people."""

    status: int
    kind: str
    message: str
    headers: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> Answer:
        """Return the refusal as a program reads it."""
        body = msgspec.json.encode({"ok": False, "error": {"type": self.kind, "message": self.message}})
        return Answer(self.status, (("content-type", "application/json"), *self.headers), body)


_UNAUTHORIZED: Final = Refusal(401, "unauthorized", "Unauthorized", (("www-authenticate", "Bearer"),))


class Shield:
    """The ASGI application that judges requests, and passes them to the routes, a mounted application, or a connection."""

    def __init__(self, door: Door, routes: ASGIApp, mounts: Mapping[str, ASGIApp]) -> None:
        self.door = self._door = door
        self._strangers = Strangers(door.limits.strangers)
        self._routes = routes
        self._mounts = dict(mounts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or one connection."""
        match scope["type"]:
            case "http":
                await self._http(scope, receive, send)
            case "websocket":
                await self._websocket(scope, receive, send)
            case _:
                await _lifespan(receive, send)

    # --- HTTP

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope["headers"])
        refusal = self._place(scope, headers)
        if refusal is None and (found := self._of_browser(scope, headers)) is not None:
            await _answer(send, found)
            return
        if refusal is None and _path(scope) in {LOGIN, LOGOUT} and scope["method"] == "POST":
            await _answer(send, await self._through_login(scope, headers, receive))
            return
        hold: Hold | None = None
        if refusal is None and _path(scope) not in OPEN_PATHS:
            judged = self._token(scope, headers)
            if isinstance(judged, Refusal):
                refusal = judged
            elif (hold := self._door.open.take(judged)) is None:
                refusal = Refusal(429, "busy", TOO_MUCH, (("retry-after", "5"), ("connection", "close")))
            else:
                access = DoorAccess(self._door, judged, hold)
                scope.setdefault("state", {}).update({CREDENTIAL: judged, HOLD: hold, ACCESS: access})
        try:
            await self._judged(scope, headers, refusal, receive, send)
        finally:
            if hold is not None:
                hold.release()

    async def _judged(
        self, scope: Scope, headers: Headers, refusal: Refusal | None, receive: Receive, send: Send
    ) -> None:
        """Answer a request that is refused, or read its body and serve it."""
        if refusal is None:
            refusal = await self._reached(headers)
        if refusal is None and scope["method"] in _WITH_BODY:
            body = await self._body(headers, receive)
            if isinstance(body, Refusal):
                refusal = body
            else:
                receive = _replayed(body, receive)
        if refusal is not None:
            await _answer(send, self._in_its_form(scope, headers, refusal))
            return
        scope.setdefault("state", {})[DOOR] = self._door
        await ended_well(
            self._application(scope), scope, receive, self._guarded(send, positions=AFTER in headers)
        )

    async def _reached(self, headers: Headers) -> Refusal | None:
        """Wait for the position that a request names, since another host has answered with it (DOOR-3)."""
        after = _one(headers, AFTER)
        if after is None:
            return None
        if not (after.isascii() and after.isdigit()) or len(after) > _DIGITS:
            return Refusal(400, "invalid_request_error", f"{AFTER}: no position, give one that was answered")
        try:
            await self._door.reach(int(after))
        except ToolRefused as refused:
            status = 503 if refused.code == "unavailable" else 400
            kind = "unavailable" if refused.code == "unavailable" else "invalid_request_error"
            return Refusal(status, kind, refused.error)
        return None

    def _guarded(self, send: Send, *, positions: bool) -> Send:
        """Return a way to send that adds what every answer carries, where it says nothing else; to a client with `positions` its own."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _ in message.get("headers", [])}
                more = [one for one in _EVERY_ANSWER if one[0] not in names]
                if positions:
                    more.append((POSITION, str(self._door.position).encode()))
                message = {**message, "headers": [*message.get("headers", []), *more]}
            await send(message)

        return guarded

    def _of_browser(self, scope: Scope, headers: Headers) -> Answer | None:
        """Return what a browser gets without a token: the debugger's page and its files, which show nothing by themselves."""
        path = _path(scope)
        if not self._door.settings.control_ui.enabled or scope["method"] not in {"GET", "HEAD"}:
            return None
        found = file_at(path, encodings=_one(headers, "accept-encoding"))
        if found is None or not (is_static(path) or wants_page(scope["method"], _one(headers, "accept"))):
            return None
        return Answer(*found)

    async def _through_login(self, scope: Scope, headers: Headers, receive: Receive) -> Answer:
        """Let a browser in that has the token, or let it go again: it gets a cookie that no script reads, and a word for its page."""
        said = (("content-type", "application/json"), ("cache-control", "no-store"))
        if not self._door.settings.control_ui.enabled:
            return Refusal(404, "not_found", "gateway.controlUi.enabled is off").as_json()
        if _one(headers, HEADER.decode()) is None:
            return Refusal(
                403, "forbidden", f"{HEADER.decode()}: missing, a page of the debugger sends it"
            ).as_json()
        body = await self._body(headers, receive)
        if isinstance(body, Refusal):
            return body.as_json()
        secure = (_one(headers, "origin") or "").startswith("https://")
        if _path(scope) == LOGOUT:
            if (left := halves_in(scope["headers"])) is not None:
                self._door.credentials.forget(left.digest)
            return Answer(200, (*said, ("set-cookie", cookie_of(None, secure=secure))), b'{"ok":true}')
        judged = self._known(scope, headers, token_in(body))
        if isinstance(judged, Refusal):
            return judged.as_json()
        halves = Halves.new()
        self._door.credentials.keep(halves.digest, judged)
        given = msgspec.json.encode({"ok": True, "page": halves.page})
        return Answer(200, (*said, ("set-cookie", cookie_of(halves.cookie, secure=secure))), given)

    def _wants_page(self, scope: Scope, headers: Headers) -> bool:
        return self._door.settings.control_ui.enabled and wants_page(scope["method"], _one(headers, "accept"))

    def _in_its_form(self, scope: Scope, headers: Headers, refusal: Refusal) -> Answer:
        """Return a refusal in the requester's form: a page for a browser, JSON for a program."""
        if not self._wants_page(scope, headers):
            return refusal.as_json()
        # The host of a request that is refused for its host goes into no page.
        address = "" if refusal.status == MISDIRECTED else _address(scope, headers)
        return Answer(refusal.status, (*HEADERS, *refusal.headers), page(address, refused=refusal.message))

    def _application(self, scope: Scope) -> ASGIApp:
        path = _path(scope)
        for prefix, application in self._mounts.items():
            if path == prefix or path.startswith(f"{prefix}/"):
                return application
        return self._routes

    def _place(self, scope: Scope, headers: Headers) -> Refusal | None:
        """Judge where a request thinks it goes, and which page sent it."""
        settings = self._door.settings
        host = _one(headers, "host")
        own = urlsplit(settings.advertise or "").hostname
        allowed_hosts = settings.allowed_hosts if own is None else (*settings.allowed_hosts, own)
        if not host_allowed(host, bound=settings.host, allowed=allowed_hosts):
            return Refusal(
                MISDIRECTED, "misdirected", "host: not this gateway's, list it in gateway.allowedHosts"
            )
        allowed = settings.control_ui.allowed_origins
        if any(
            not origin_allowed(origin, host=host, scheme=scope.get("scheme", "http"), allowed=allowed)
            for origin in headers.getall("origin", [])
        ):
            what = "origin: not allowed, list it in gateway.controlUi.allowedOrigins"
            return Refusal(403, "forbidden", what)
        return None

    def _token(self, scope: Scope, headers: Headers) -> Credential | Refusal:
        given = (_one(headers, "authorization") or "").encode("latin-1")
        if given.lower().startswith(_BEARER):
            return self._known(scope, headers, given[len(_BEARER) :].strip())
        # A login is for the debugger's own questions alone: no other route can be reached by what a browser sends of itself.
        if _path(scope).startswith(API) and self._door.settings.control_ui.enabled:
            halves = halves_in(scope["headers"])
            found = None if halves is None else self._door.credentials.of_ticket(halves.digest)
            if found is not None:
                return found
        return _UNAUTHORIZED

    def _known(self, scope: Scope, headers: Headers, token: bytes) -> Credential | Refusal:
        """Return whose token it is; a wrong one is counted against the address that it came from."""
        missing = _UNAUTHORIZED
        if not token:
            return missing
        credential = self._door.credentials.match(token)
        if credential is None:
            address = self._door.client_of(scope)
            wait = self._door.attempts.wait_for(address)
            if wait > 0:
                message = "Too many failed authentication attempts. Please try again later."
                return Refusal(429, "rate_limited", message, (("retry-after", str(int(wait) + 1)),))
            self._door.attempts.failed(address)
            agent = printable(_one(headers, "user-agent") or "")
            self._door.logger.warning("refused a request from %s: wrong token (%s)", address, agent)
            return missing
        return credential

    async def _body(self, headers: Headers, receive: Receive) -> bytes | Refusal:
        """Read a body of the right type, within the limits of size and time."""
        kind = (_one(headers, "content-type") or "").partition(";")[0].strip().lower()
        closing = (("connection", "close"),)
        if kind != "application/json":
            return Refusal(415, "invalid_request_error", "content-type: send application/json", closing)
        if self._door.draining:
            return Refusal(503, "unavailable", STOPPING, (("retry-after", "5"), *closing))
        too_large = Refusal(
            413, "invalid_request_error", f"larger than {self._door.limits.body_bytes} bytes", closing
        )
        length = _one(headers, "content-length")
        if length is not None and length.isdigit() and int(length[:_DIGITS]) > self._door.limits.body_bytes:
            return too_large
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._door.limits.body_s):
                while True:
                    message: JsonMapping = await receive()
                    if message["type"] != "http.request":
                        return Refusal(400, "invalid_request_error", "the request was cut off", closing)
                    chunks.append(message.get("body", b""))
                    size += len(chunks[-1])
                    if size > self._door.limits.body_bytes:
                        return too_large
                    if not message.get("more_body", False):
                        return b"".join(chunks)
        except TimeoutError:
            return Refusal(408, "invalid_request_error", "the body took too long", closing)

    # --- connections

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._place(scope, Headers(scope["headers"]))
        if refusal is None and self._door.draining:
            refusal = Refusal(503, "unavailable", STOPPING)
        if refusal is None:
            await WebSocketShell(self._door, self._strangers, scope, receive, send).run()
            return
        await receive()
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            await send({"type": "websocket.close", "code": 1008, "reason": refusal.message})
            return
        answer = refusal.as_json()
        start: WebSocketResponseStartEvent = {
            "type": "websocket.http.response.start",
            "status": answer.status,
            "headers": answer.raw_headers,
        }
        body: WebSocketResponseBodyEvent = {
            "type": "websocket.http.response.body",
            "body": answer.body,
            "more_body": False,
        }
        await send(start)
        await send(body)


async def _lifespan(receive: Any, send: Any) -> None:  # litestar's own types of both are of requests alone
    """Answer the lifespan protocol: the system's owner starts and stops it."""
    while (await receive())["type"] == "lifespan.startup":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})


def _one(headers: Headers, name: str) -> str | None:
    """Return the header of this name; None if there is none, or more than one."""
    found = headers.getall(name, [])
    return found[0] if len(found) == 1 else None


def _path(scope: Scope) -> str:
    """Return the path below where the gateway is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return (path.removeprefix(root) if root else path) or "/"


def _address(scope: Scope, headers: Headers) -> str:
    """Return the gateway's address as a request has it."""
    return f"{scope.get('scheme', 'http')}://{_one(headers, 'host') or ''}{scope.get('root_path', '')}"


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a way to receive a body that was read already, and then what comes after it."""
    left = [body]

    async def again() -> HTTPReceiveMessage | WebSocketReceiveMessage:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return again


async def _answer(send: Send, answer: Answer) -> None:
    start: HTTPResponseStartEvent = {
        "type": "http.response.start",
        "status": answer.status,
        "headers": answer.raw_headers,
    }
    body: HTTPResponseBodyEvent = {"type": "http.response.body", "body": answer.body, "more_body": False}
    await send(start)
    await send(body)
