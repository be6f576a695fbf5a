"""Error responses over HTTP: one JSON shape, shared by the gateway's routes and the web debugger's."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from litestar import Litestar, MediaType, Request, Response
from litestar.datastructures import State
from litestar.exceptions import ClientException, HTTPException
from litestar.openapi.datastructures import ResponseSpec
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin

from intersession_actors.rules.errors import RefusalCode, ToolRefused
from intersession_events.basics.plain_json import JsonValue, is_list, is_object

_KINDS: Final[dict[RefusalCode, tuple[int, str]]] = {
    "invalid_request": (400, "invalid_request_error"),
    "invalid_key": (400, "invalid_request_error"),
    "not_visible": (403, "not_visible"),
    "forbidden": (403, "forbidden"),
    "unavailable": (503, "unavailable"),
    "unreadable": (500, "unreadable"),
    "internal": (500, "internal"),
}


class ErrorShape(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`type` for programs, `message` for people, `code` a tool's own refusal code."""

    type: str
    message: str
    code: str | None = None


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """A failure: nothing was changed."""

    ok: bool
    error: ErrorShape


_SAID: Final = {
    400: "The request, or the tool's arguments, are wrong.",
    401: "No valid bearer token, and of a browser's login not both halves.",
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


def declared(*statuses: int) -> dict[int, ResponseSpec]:
    """Return the description of statuses for a route."""
    return {
        status: ResponseSpec(data_container=Failed, description=_SAID[status], generate_examples=False)
        for status in statuses
    }


def failed(status: int, kind: str, message: str, code: str | None = None) -> Response[object]:
    """Return an error response."""
    shape = Failed(ok=False, error=ErrorShape(type=kind, message=message, code=code))
    return Response(shape, status_code=status, media_type=MediaType.JSON)


def refusal_response(refused: ToolRefused) -> Response[object]:
    """Return the response for a refusal."""
    status, kind = _KINDS.get(refused.code, (400, "invalid_request_error"))
    return failed(status, kind, refused.error, refused.code)


def _http_error(request: Request[object, object, State], error: HTTPException) -> Response[object]:
    """Answer the framework's own refusals in the one form of errors."""
    del request
    if isinstance(error, ClientException) and error.status_code == HTTPStatus.BAD_REQUEST:
        return failed(400, "invalid_request_error", _words(error))
    kinds = {404: "not_found", 405: "method_not_allowed"}
    response = failed(error.status_code, kinds.get(error.status_code, "error"), error.detail)
    for name, value in (error.headers or {}).items():
        response.set_header(name, value)
    return response


def _words(error: HTTPException) -> str:
    extra: JsonValue = error.extra
    details = [str(each.get("message", "")) for each in extra if is_object(each)] if is_list(extra) else []
    missing = error.detail if error.detail.startswith("Missing required") else ""
    return (
        "; ".join(filter(None, details)).replace("`", "")
        or missing
        or "the body is no JSON of the right shape"
    )


def _bad_json(request: Request[object, object, State], error: Exception) -> Response[object]:
    del request, error
    return failed(400, "invalid_request_error", "the body is no JSON")


HANDLERS: Final[Mapping[int | type[Exception], Any]] = {  # a handler for each, of its own kind of exception
    HTTPException: _http_error,
    UnicodeDecodeError: _bad_json,
    RecursionError: _bad_json,
}
"""What to do with what the framework raises."""


class Application(Litestar):
    """Litestar without its support for pydantic and attrs: the routes use neither, and their import costs a tenth of a start."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]
