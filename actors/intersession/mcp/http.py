"""MCP over streamable HTTP: an ASGI app for the gateway to mount, closed to requests without a token of ours."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, cast

import msgspec
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from intersession.mcp.server import MOST_BYTES, READING, Seat, mcp_server
from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.calls.service.callers import Caller
from intersession_actors.calls.service.resolve import claimed_session
from intersession_actors.rules.config.host import OperatorScope
from intersession_actors.rules.config.tools import names_tool
from intersession_actors.rules.gate.values import invalid

logger = logging.getLogger("intersession.mcp")

SESSION_HEADER: Final = "Intersession-Session"
"""The request header that says which session the client is: a key in any form, or a session id."""

SESSION_PARAMETER: Final = "session"
"""The same in the URL's query, for clients that can't be given a header."""

_GLOB: Final = frozenset("*?[")
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


class McpCaller(msgspec.Struct, frozen=True, kw_only=True):
    """The credential of a bearer token (VIS-6).

    A caller that reaches every session and claims none is the operator. `operator.read` is enough for the tools that
    change nothing; the others need `operator.write`. `audience` is whom the token was issued for, where somebody else
    issued it: it must be this server's `resource`. None is for a secret of the host's own.
    """

    caller: Caller
    scopes: frozenset[OperatorScope] = frozenset({"operator.read"})
    audience: str | None = None

    def may_use(self, tool: str) -> bool:
        """Whether its scopes suffice for a tool."""
        if tool in READING:
            return bool(self.scopes)
        return not self.scopes.isdisjoint({"operator.write", "operator.admin"})


TokenCheck = Callable[[str], Awaitable[McpCaller | None]]
"""Says whom a bearer token stands for, None for nobody. It is asked for every request."""


class McpApp:
    """The ASGI app. It serves inside `running`; if that is never entered, from its first request to the end of the loop."""

    def __init__(
        self, routes: Sequence[Route], middleware: Sequence[Middleware], manager: StreamableHTTPSessionManager
    ) -> None:
        self._app = Starlette(routes=routes, middleware=middleware, lifespan=lambda _: self.running())
        self._manager = manager
        self._serving = asyncio.Event()
        self._ending = asyncio.Event()
        self._kept: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            if self._ending.is_set():
                await PlainTextResponse("The server is stopping", 503)(scope, receive, send)
                return
            await self._started()
        await self._app(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Serve until the block ends; once only. For the lifespan of an app that this one is mounted in."""
        kept = await self._started()
        try:
            yield
        finally:
            self._ending.set()
            await kept

    async def _started(self) -> asyncio.Task[None]:
        if self._kept is None:
            self._kept = asyncio.create_task(self._keep())
        await self._serving.wait()
        return self._kept

    async def _keep(self) -> None:
        async with self._manager.run():
            self._serving.set()
            await self._ending.wait()


def mcp_app(
    system: SessionSystem,
    *,
    check: TokenCheck,
    path: str = "/mcp",
    resource: str | None = None,
    issuers: Sequence[str] = (),
    allowed_hosts: Sequence[str] | None = (),
    allowed_origins: Sequence[str] = (),
    most_bytes: int = MOST_BYTES,
) -> McpApp:
    """Return an ASGI app that serves the tools at `path`.

    Nothing is kept between requests, so a client never has to begin anew after a restart. A token goes no further than
    `check`: it is not kept, and nothing that is called from here is given it. `resource` is the URL of this server, as
    tokens of others name it; with `issuers`, the app says under `/.well-known/oauth-protected-resource` who issues such
    tokens. A request's `Host` and `Origin` must be the loopback's or among those allowed (`name:*` for any port);
    `allowed_hosts=None` leaves both to whoever mounts this.
    """
    manager = StreamableHTTPSessionManager(
        mcp_server(lambda request: _seat(system, request)),
        stateless=True,
        security_settings=None if allowed_hosts is None else _only_from(allowed_hosts, allowed_origins),
        max_request_body_size=most_bytes,
    )
    url = None if resource is None else AnyHttpUrl(resource)
    issued = url is not None and bool(issuers)
    metadata_url = build_resource_metadata_url(url) if url is not None and issued else None
    guarded = RequireAuthMiddleware(StreamableHTTPASGIApp(manager), [], metadata_url)
    # The server says nothing of its own accord, so there is no stream to GET, and no session to DELETE.
    routes = [Route(path, endpoint=guarded, methods=["POST"])]
    if url is not None and issued:
        routes += create_protected_resource_routes(url, [AnyHttpUrl(each) for each in issuers])
    backend = BearerAuthBackend(_Verifier(check, resource), resource_server_url=url)
    return McpApp(routes, [Middleware(AuthenticationMiddleware, backend=backend)], manager)


class _Verifier(TokenVerifier):
    """Asks the gateway's check, and passes on the result without the token."""

    def __init__(self, check: TokenCheck, resource: str | None) -> None:
        self._check = check
        self._resource = resource

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whom the token stands for. The SDK compares whom it was issued for with this server's URL."""
        caller = await self._check(token)
        if caller is None:
            return None
        if caller.audience is not None and self._resource is None:
            logger.warning("a token for %r was refused: this server has no URL of its own", caller.audience)
            return None
        return AccessToken(
            token="",
            client_id=caller.caller.name,
            scopes=list(caller.scopes),
            resource=self._resource if caller.audience is None else caller.audience,
            claims={"caller": caller},
        )


def _only_from(hosts: Sequence[str], origins: Sequence[str]) -> TransportSecuritySettings:
    """Return the check that keeps a web page from speaking to a server on the viewer's machine."""
    here = [*_LOOPBACK, *(f"{host}:*" for host in _LOOPBACK)]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*here, *hosts],
        allowed_origins=[*(f"http://{host}" for host in here), *origins],
    )


def _seat(system: SessionSystem, request: Request) -> Seat:
    """Return the caller of a request. Reads views.

    Raises:
        ToolRefused: it claims a session that its caller may not be (`not_visible`, as for one that is not there), or
            none where it must.
    """
    user = cast("AuthenticatedUser", request.user)
    known: McpCaller = (user.access_token.claims or {})["caller"]
    claim = _claim(request)
    if claim is None:
        claim = _only_session(known.caller)
    if claim is not None:
        key = claimed_session(
            system.service, known.caller, claim, field=SESSION_HEADER, what="mcp", arguments={}
        )
        caller = known.caller
        tools = system.tools(
            str(key), credential=caller.credential, of_agent=caller.of_agent, within=caller.within
        )
    elif known.caller.is_operator:
        tools = system.tools(None, name=known.caller.name)
    else:
        raise invalid(SESSION_HEADER, "required, say in this header which session you are")
    denied = system.config.gateway.tools.deny
    return Seat(
        tools, tuple(name for name in tools.names if known.may_use(name) and not names_tool(denied, name))
    )


def _claim(request: Request) -> str | None:
    claims = {*request.headers.getlist(SESSION_HEADER), *request.query_params.getlist(SESSION_PARAMETER)}
    if len(claims) > 1:
        raise invalid(SESSION_HEADER, "several sessions are named, name one")
    return next(iter(claims), None)


def _only_session(caller: Caller) -> str | None:
    """Return the session of a caller that may be no other one."""
    if len(caller.act_as) == 1 and _GLOB.isdisjoint(caller.act_as[0]):
        return caller.act_as[0]
    return None
