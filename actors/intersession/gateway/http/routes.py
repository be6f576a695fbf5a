"""The HTTP routes: `POST /tools/invoke` as the original has it, committed events, liveness, and their description."""

from functools import cache
from typing import Annotated, Final

import msgspec
from litestar import MediaType, Request, Response, get, post
from litestar.datastructures import State
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.params import JSONBody
from litestar.response import Stream
from litestar.types import ASGIApp

from intersession.gateway.admission.credentials import Credential
from intersession.gateway.admission.scopes import all_scopes, needed_scope
from intersession.gateway.admission.shares import Hold
from intersession.gateway.door import Door
from intersession.gateway.http.deeds import do
from intersession.gateway.http.event_stream import event_stream, shown
from intersession.gateway.http.shield import CREDENTIAL, DOOR, HOLD
from intersession.gateway.metrics import CONTENT_TYPE
from intersession.web.answers import HANDLERS, Application, declared, failed, refusal_response
from intersession.web.questions.table import routes as web_routes
from intersession.web.streams import EVENT_STREAM, After, LastEventId, begun_behind, stream_of, streamed
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import KeyText
from intersession_actors.running.host.own_threads import off_loop
from intersession_events.basics.errors import LogError
from intersession_events.basics.machine import VERSION
from intersession_events.basics.plain_json import JsonObject
from intersession_events.log.log import HostLog
from intersession_events.stores.portable.log import PortableLog

_BAD_ARGUMENTS: Final = frozenset({"invalid_request", "too_large"})
"""Refusals of a tool that the original throws for its caller, and so answers with 400."""


class InvokeBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The body of `POST /tools/invoke`. `sessionKey` is the session that the call acts as; without it the operator.

    `action` and `dryRun` are the original's; no tool here has a use for them.
    """

    tool: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    args: JsonObject = msgspec.field(default_factory=JsonObject)
    session_key: KeyText | None = None
    action: Annotated[str, msgspec.Meta(max_length=128)] | None = None
    dry_run: bool | None = None


class TextContent(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's JSON as text."""

    type: str
    text: str


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's answer: as an object, and as the text a model would read."""

    content: list[TextContent]
    details: JsonObject


class Invoked(msgspec.Struct, frozen=True, kw_only=True):
    """The tool answered; `details.status` may still be `error`, `forbidden` or `timeout`."""

    ok: bool
    result: ToolResult


class Alive(msgspec.Struct, frozen=True, kw_only=True):
    """The process lives."""

    ok: bool


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """Whether new callers should come here."""

    ready: bool


@post(
    "/tools/invoke",
    status_code=200,
    operation_id="invokeTool",
    responses={
        200: ResponseSpec(data_container=Invoked, description="The tool answered.", generate_examples=False),
        **declared(400, 401, 403, 404, 408, 413, 415, 421, 429, 503),
    },
    raises=[],
)
async def invoke_tool(
    data: JSONBody[InvokeBody], request: Request[object, object, State]
) -> Response[object]:
    """Call a session tool."""
    door: Door = request.scope["state"][DOOR]
    credential: Credential = request.scope["state"][CREDENTIAL]
    tool = data.tool.strip()
    if not tool:
        return failed(400, "invalid_request_error", "tools.invoke requires body.tool")
    scope = needed_scope(tool)
    if scope not in all_scopes(credential.scopes):
        return failed(403, "forbidden", f"missing scope: {scope}")
    if not door.tool_is_given(tool):
        return failed(
            404, "not_found", f"Tool not available: {tool} (gateway.tools.allow gives tools to HTTP)"
        )
    try:
        # As it was typed: what is white space to Python is not to a key, and an empty claim is not the operator's.
        details = await door.invoke(credential, tool, data.args, data.session_key)
    except ToolRefused as refused:
        return refusal_response(refused)
    if details is None:
        return failed(404, "not_found", f"Tool not available: {tool}")
    if details.get("code") in _BAD_ARGUMENTS and details.get("status") == "error" and "runId" not in details:
        return failed(400, "tool_error", str(details.get("error")), str(details["code"]))
    text = msgspec.json.format(msgspec.json.encode(details), indent=2).decode()
    result = ToolResult(content=[TextContent(type="text", text=text)], details=details)
    return Response(Invoked(ok=True, result=result), status_code=200)


@get(
    "/events",
    operation_id="followEvents",
    media_type=EVENT_STREAM,
    responses=streamed("id is the position in the log, event the topic, data the event as JSON."),
    raises=[],
)
async def follow_events(
    request: Request[object, object, State],
    last_event_id: LastEventId = None,
    after: After = None,
) -> Response[object] | Stream:
    """Follow what is committed, from any position on."""
    door: Door = request.scope["state"][DOOR]
    credential: Credential = request.scope["state"][CREDENTIAL]
    if "operator.read" not in all_scopes(credential.scopes):
        return failed(403, "forbidden", "missing scope: operator.read")
    head = door.system.log.head()
    behind = begun_behind(last_event_id, after)
    if isinstance(behind, Response):
        return behind
    position = head if behind is None else behind
    if position > head:
        return failed(
            400, "invalid_request_error", f"position {position} is beyond the end of the log, {head}"
        )
    hold: Hold = request.scope["state"][HOLD]
    return stream_of(event_stream(door, credential, hold, position, shown))


@get(
    "/metrics",
    operation_id="scrapeMetrics",
    media_type="text/plain",
    responses={
        200: ResponseSpec(
            data_container=str,
            description="Counters and gauges in Prometheus' text format.",
            media_type="text/plain",
            generate_examples=False,
        ),
        **declared(401, 403, 404, 421, 429),
    },
    raises=[],
)
async def scrape_metrics(request: Request[object, object, State]) -> Response[object]:
    """Return counts of events, and the present state of the system."""
    door: Door = request.scope["state"][DOOR]
    credential: Credential = request.scope["state"][CREDENTIAL]
    access = door.settings.metrics
    if access == "off":
        return failed(404, "not_found", "gateway.metrics is off")
    if "operator.read" not in all_scopes(credential.scopes):
        return failed(403, "forbidden", "missing scope: operator.read")
    if access == "operator" and not credential.caller.is_operator:
        return failed(
            403, "forbidden", 'metrics are of all sessions; gateway.metrics: "read" lets this token in'
        )
    text = await off_loop(door.metrics.text)
    return Response(text, media_type=CONTENT_TYPE, status_code=200)


@get("/healthz", operation_id="isAlive", responses=declared(403, 421), security=[{}])
async def is_alive() -> Alive:
    """Say that the process lives; needs no token."""
    return Alive(ok=True)


@get(
    "/readyz",
    operation_id="isReady",
    responses={
        200: ResponseSpec(data_container=Ready, description="New callers may come.", generate_examples=False),
        503: ResponseSpec(
            data_container=Ready, description="It stops, or can't read its log.", generate_examples=False
        ),
        **declared(403, 421),
    },
    security=[{}],
    raises=[],
)
async def is_ready(request: Request[object, object, State]) -> Response[Ready]:
    """Say whether a load balancer should send callers here (HOSTS-4): it is not stopping, and reads its log; needs no token."""
    door: Door = request.scope["state"][DOOR]
    ready = not door.draining
    try:
        await off_loop(_read, door.system.log)
    except LogError:
        ready = False
    return Response(Ready(ready=ready), status_code=200 if ready else 503)


def _read(log: HostLog) -> None:
    """Read from a log, and look whether its store is the one that was opened."""
    log.check()
    if isinstance(log, PortableLog):
        log.look()
    log.head()


@cache
def routes() -> ASGIApp:
    """Return the application of all HTTP routes. It has no state of a gateway, and is made once: that takes longer than a start."""
    return Application(
        route_handlers=[invoke_tool, follow_events, scrape_metrics, is_alive, is_ready, do, *web_routes()],
        exception_handlers={**HANDLERS, Exception: _fault},
        openapi_config=OpenAPIConfig(
            title="Intersession gateway",
            version=VERSION,
            description="Session tools for AI agents over HTTP. The WebSocket protocol is on the same port.",
            components=Components(
                security_schemes={
                    "bearer": SecurityScheme(type="http", scheme="bearer", description="The token.")
                }
            ),
            security=[{"bearer": []}],
            path="/openapi.json",
            render_plugins=[JsonRenderPlugin(path="/", media_type=MediaType.JSON)],
        ),
        logging_config=None,
        debug=False,
    )


def _fault(request: Request[object, object, State], error: Exception) -> Response[object]:
    """Answer a fault of ours: its words stay in the process's own log."""
    door: Door = request.scope["state"][DOOR]
    refused = door.known(error, request.url.path)
    return refusal_response(refused)
