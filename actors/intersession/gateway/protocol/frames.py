"""The frames of the WebSocket protocol, version 3: requests in, responses and events out. JSON, one object a frame."""

from typing import Annotated, Final, Literal

import msgspec

from intersession_actors.rules.errors import RefusalCode, ToolRefused
from intersession_events.basics.plain_json import JsonObject

PROTOCOL: Final = 3

ErrorCode = Literal["INVALID_REQUEST", "UNAVAILABLE", "AGENT_TIMEOUT", "NOT_PAIRED", "NOT_LINKED"]
Frame = JsonObject

_UNAVAILABLE: Final[frozenset[RefusalCode]] = frozenset({"busy", "unavailable", "unreadable", "internal"})
_RETRYABLE: Final[frozenset[RefusalCode]] = frozenset({"busy", "unavailable"})

NAME: Final = 256
"""The longest id or method of a request."""

Word = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME)]


class BadFrame(ValueError):
    """The frame is not a request. `request_id` is its id, if it has one."""

    def __init__(self, what: str, request_id: str | None = None) -> None:
        super().__init__(what)
        self.request_id = request_id


class Request(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag="req"
):
    """A method and its parameters; the answer has the same id. It is called once the host has read up to `after` (DOOR-3)."""

    id: Word
    method: Word
    params: JsonObject | None = None
    after: Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)] | None = None


class _Named(msgspec.Struct, frozen=True):
    """The part of a bad frame that an answer needs."""

    id: Word


_REQUESTS: Final = msgspec.json.Decoder(Request)
_NAMED: Final = msgspec.json.Decoder(_Named)


def read_request(data: str | bytes) -> Request:
    """Return a frame as a request.

    Raises:
        BadFrame: it is not a request.
    """
    try:
        return _REQUESTS.decode(data)
    except (ValueError, RecursionError) as error:
        raise BadFrame(_said(error), _request_id(data)) from None


def response(request_id: str, payload: object) -> Frame:
    """Return the answer to a request."""
    return {"type": "res", "id": request_id, "ok": True, "payload": payload}


def error_response(request_id: str, error: Frame, payload: object = None) -> Frame:
    """Return the refusal of a request."""
    frame: Frame = {"type": "res", "id": request_id, "ok": False, "error": error}
    return frame if payload is None else frame | {"payload": payload}


def error_shape(
    code: ErrorCode,
    message: str,
    *,
    details: object = None,
    retryable: bool = False,
    retry_after_ms: int | None = None,
) -> Frame:
    """Return the content of a refusal."""
    shape: Frame = {"code": code, "message": message or code}
    if details is not None:
        shape["details"] = details
    if retryable:
        shape["retryable"] = True
    if retry_after_ms is not None:
        shape["retryAfterMs"] = retry_after_ms
    return shape


def refusal_shape(refused: ToolRefused) -> Frame:
    """Return a tool's refusal in this protocol's form; its own code is in the details."""
    return error_shape(
        "UNAVAILABLE" if refused.code in _UNAVAILABLE else "INVALID_REQUEST",
        refused.error,
        details={"code": refused.code, "status": refused.status},
        retryable=refused.code in _RETRYABLE,
    )


def event(name: str, payload: object, seq: int | None = None) -> Frame:
    """Return an event."""
    frame: Frame = {"type": "event", "event": name, "payload": payload}
    return frame if seq is None else frame | {"seq": seq}


def encoded(frame: Frame) -> str:
    """Return a frame as bytes."""
    return msgspec.json.encode(frame).decode()


def _request_id(data: str | bytes) -> str | None:
    try:
        return _NAMED.decode(data).id
    except (ValueError, RecursionError):
        return None


def _said(error: Exception) -> str:
    if isinstance(error, msgspec.ValidationError):
        return str(error).replace("`", "")
    return "nested too deep" if isinstance(error, RecursionError) else "no JSON"
