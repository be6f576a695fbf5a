"""Shared by routes of server-sent events: their description, and their first position."""

from collections.abc import AsyncIterator
from typing import Annotated, Final

from litestar import Response
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import HeaderParameter, QueryParameter
from litestar.response import Stream

from intersession.web.answers import declared, failed

EVENT_STREAM: Final = "text/event-stream"

_AT_ONCE: Final = {"x-accel-buffering": "no"}
"""Has nginx, and proxies that are asked likewise, hand each event through at once, and not once there are some kilobytes."""

LastEventId = Annotated[
    str | None,
    HeaderParameter(name="Last-Event-ID", description="Go on behind this position; wins over `after`."),
]
After = Annotated[
    int | None,
    QueryParameter(ge=0, description="Begin behind this position; without it, with what comes."),
]


def streamed(description: str) -> dict[int, ResponseSpec]:
    """Return the description of such a route's answers."""
    sent = ResponseSpec(
        data_container=str,
        description=f"Server-sent events: {description}",
        media_type=EVENT_STREAM,
        generate_examples=False,
    )
    return {200: sent, **declared(400, 401, 403, 421, 429)}


def stream_of(events: AsyncIterator[bytes]) -> Stream:
    """Return server-sent events as a response."""
    return Stream(events, media_type=EVENT_STREAM, headers=_AT_ONCE)


def begun_behind(last_event_id: str | None, after: int | None) -> int | Response[object] | None:
    """Return the position that a stream begins after, None for the head; or the response that refuses it."""
    if last_event_id is None:
        return after
    if not (last_event_id.isascii() and last_event_id.isdigit()):
        return failed(400, "invalid_request_error", "Last-Event-ID: no position, give the id of an event")
    return int(last_event_id[:18])
