"""The HTTP routes: `POST /tools/invoke` as the original has it, committed events, liveness, and their description."""

import asyncio
from typing import Annotated, Final

import msgspec
from litestar import Litestar, MediaType, Request, Response, get, post
from litestar.datastructures import State
from litestar.exceptions import ClientException, HTTPException
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.params import HeaderParameter, JSONBody, QueryParameter
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin
from litestar.response import Stream
from litestar.types import ASGIApp

from intersession.gateway.admission import Credential, all_scopes, needed_scope
from intersession.gateway.door import Door
from intersession.gateway.http.event_stream import event_stream
from intersession.gateway.http.shield import CREDENTIAL, HOLD
from intersession.gateway.metrics import CONTENT_TYPE
from intersession_actors.errors import RefusalCode, ToolRefused
from intersession_actors.gate import KeyText
from intersession_events.machine import installed_version
from intersession_events.plain_json import JsonObject, JsonValue, is_list, is_object

_KINDS: Final[dict[RefusalCode, tuple[int, str]]] = {
    "invalid_request": (400, "invalid_request_error"),
    "invalid_key": (400, "invalid_request_error"),
    "not_visible": (403, "not_visible"),
    "unavailable": (503, "unavailable"),
    "internal": (500, "internal"),
}
_BAD_ARGUMENTS: Final = frozenset({"invalid_request", "too_large"})
"""Refusals of a tool that the original throws for its caller, and so answers with 400."""


class InvokeBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What `POST /tools/invoke` takes. `sessionKey` is the session that the call is made as; without it the operator.

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


class ErrorShape(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`type` for programs, `message` for people, `code` a tool's own refusal code."""

    type: str
    message: str
    code: str | None = None


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing was done."""

    ok: bool
    error: ErrorShape


class Alive(msgspec.Struct, frozen=True, kw_only=True):
    """The process lives."""

    ok: bool


def _declared(*statuses: int) -> dict[int, ResponseSpec]:
    return {
        status: ResponseSpec(data_container=Failed, description=_SAID[status], generate_examples=False)
        for status in statuses
    }


_SAID: Final = {
    400: "The request, or the tool's arguments, are wrong.",
    401: "No valid bearer token.",
    403: "The credential or the page may not do this.",
    404: "There is no such tool here.",
    405: "Not with this method.",
    408: "The body took too long.",
    413: "The body is too large.",
    415: "The body is no application/json.",
    421: "The Host header names somebody else.",
    429: "A wrong token after too many from this address, or too much is open for this credential.",
    503: "The gateway is stopping.",
}


@post(
    "/tools/invoke",
    status_code=200,
    operation_id="invokeTool",
    responses={
        200: ResponseSpec(data_container=Invoked, description="The tool answered.", generate_examples=False),
        **_declared(400, 401, 403, 404, 408, 413, 415, 421, 429, 503),
    },
    raises=[],
)
async def invoke_tool(
    data: JSONBody[InvokeBody], request: Request[object, object, State], state: State
) -> Response[object]:
    """Call a session tool."""
    door: Door = state.door
    credential: Credential = request.scope["state"][CREDENTIAL]
    tool = data.tool.strip()
    if not tool:
        return _failed(400, "invalid_request_error", "tools.invoke requires body.tool")
    scope = needed_scope(tool)
    if scope not in all_scopes(credential.scopes):
        return _failed(403, "forbidden", f"missing scope: {scope}")
    if not door.tool_is_given(tool):
        return _failed(
            404, "not_found", f"Tool not available: {tool} (gateway.tools.allow gives tools to HTTP)"
        )
    try:
        # As it was typed: what is white space to Python is not to a key, and an empty claim is not the operator's.
        details = await door.invoke(credential, tool, data.args, data.session_key)
    except ToolRefused as refused:
        status, kind = _KINDS.get(refused.code, (400, "invalid_request_error"))
        return _failed(status, kind, refused.error, refused.code)
    if details is None:
        return _failed(404, "not_found", f"Tool not available: {tool}")
    if details.get("code") in _BAD_ARGUMENTS and details.get("status") == "error" and "runId" not in details:
        return _failed(400, "tool_error", str(details.get("error")), str(details["code"]))
    text = msgspec.json.format(msgspec.json.encode(details), indent=2).decode()
    result = ToolResult(content=[TextContent(type="text", text=text)], details=details)
    return Response(Invoked(ok=True, result=result), status_code=200)


@get(
    "/events",
    operation_id="followEvents",
    media_type="text/event-stream",
    responses={
        200: ResponseSpec(
            data_container=str,
            description="Server-sent events: id is the position in the log, event the topic, data the event as JSON.",
            media_type="text/event-stream",
            generate_examples=False,
        ),
        **_declared(400, 401, 403, 421, 429),
    },
    raises=[],
)
async def follow_events(
    request: Request[object, object, State],
    state: State,
    last_event_id: Annotated[
        str | None,
        HeaderParameter(name="Last-Event-ID", description="Go on behind this position; wins over `after`."),
    ] = None,
    after: Annotated[
        int | None,
        QueryParameter(ge=0, description="Begin behind this position; without it, with what comes."),
    ] = None,
) -> Response[object] | Stream:
    """Follow what is committed, from any position on."""
    door: Door = state.door
    credential: Credential = request.scope["state"][CREDENTIAL]
    if "operator.read" not in all_scopes(credential.scopes):
        return _failed(403, "forbidden", "missing scope: operator.read")
    head = door.system.log.head()
    if last_event_id is not None and not (last_event_id.isascii() and last_event_id.isdigit()):
        return _failed(400, "invalid_request_error", "Last-Event-ID: no position, give the id of an event")
    position = head if after is None else after
    if last_event_id is not None:
        position = int(last_event_id[:18])
    if position > head:
        return _failed(
            400, "invalid_request_error", f"position {position} is beyond the end of the log, {head}"
        )
    return Stream(
        event_stream(door, credential, request.scope["state"][HOLD], position), media_type="text/event-stream"
    )


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
        **_declared(401, 403, 404, 421, 429),
    },
    raises=[],
)
async def scrape_metrics(request: Request[object, object, State], state: State) -> Response[object]:
    """Say how many of what there were, and how everything stands."""
    door: Door = state.door
    credential: Credential = request.scope["state"][CREDENTIAL]
    access = door.settings.metrics
    if access == "off":
        return _failed(404, "not_found", "gateway.metrics is off")
    if "operator.read" not in all_scopes(credential.scopes):
        return _failed(403, "forbidden", "missing scope: operator.read")
    if access == "operator" and not credential.caller.is_operator:
        return _failed(
            403, "forbidden", 'metrics are of all sessions; gateway.metrics: "read" lets this token in'
        )
    text = await asyncio.to_thread(door.metrics.text)
    return Response(text, media_type=CONTENT_TYPE, status_code=200)


@get("/healthz", operation_id="isAlive", responses=_declared(403, 421), security=[{}])
async def is_alive() -> Alive:
    """Say that the process lives; needs no token."""
    return Alive(ok=True)


class Application(Litestar):
    """Litestar without what it does for pydantic and attrs: the routes know neither, and their import costs a tenth of a start."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]


def routes(door: Door) -> ASGIApp:
    """Return the application of all HTTP routes."""
    return Application(
        route_handlers=[invoke_tool, follow_events, scrape_metrics, is_alive],
        state=State({"door": door}),
        exception_handlers={
            HTTPException: _http_error,
            UnicodeDecodeError: _bad_json,
            RecursionError: _bad_json,
            Exception: _fault,
        },
        openapi_config=OpenAPIConfig(
            title="Intersession gateway",
            version=installed_version(),
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


def _failed(status: int, kind: str, message: str, code: str | None = None) -> Response[object]:
    failed = Failed(ok=False, error=ErrorShape(type=kind, message=message, code=code))
    return Response(failed, status_code=status, media_type=MediaType.JSON)


def _http_error(request: Request[object, object, State], error: HTTPException) -> Response[object]:
    """Answer what the framework refused in the one shape of errors."""
    del request
    if isinstance(error, ClientException) and error.status_code == 400:  # noqa: PLR2004
        return _failed(400, "invalid_request_error", _words(error))
    kinds = {404: "not_found", 405: "method_not_allowed"}
    response = _failed(error.status_code, kinds.get(error.status_code, "error"), error.detail)
    for name, value in (error.headers or {}).items():
        response.set_header(name, value)
    return response


def _words(error: HTTPException) -> str:
    extra: JsonValue = error.extra
    details = [str(each.get("message", "")) for each in extra if is_object(each)] if is_list(extra) else []
    return "; ".join(filter(None, details)).replace("`", "") or "the body is no JSON of the right shape"


def _bad_json(request: Request[object, object, State], error: Exception) -> Response[object]:
    del request, error
    return _failed(400, "invalid_request_error", "the body is no JSON")


def _fault(request: Request[object, object, State], error: Exception) -> Response[object]:
    """Answer a fault of ours: its words stay in the process's own log."""
    door: Door = request.app.state.door
    refused = door.known(error, request.url.path)
    status, kind = _KINDS.get(refused.code, (500, "internal"))
    return _failed(status, kind, refused.error)
