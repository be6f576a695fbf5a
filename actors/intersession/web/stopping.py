"""Ends answers in progress when the server stops: streams end, waiting callers are told, and no answer is cut off."""

import asyncio
import signal
from typing import Any, Final

import msgspec
from litestar.types import ASGIApp, Message, Receive, Send

STOPPING: Final = "the server is stopping, try again after its restart"

_HANDLED: Final = (signal.SIGTERM, signal.SIGINT)


def server_stops() -> bool:
    """Whether the server around us was told to stop by a signal, without telling us.

    uvicorn, in a process of a host's, waits for answers under way before it tells an application that it stops. A stream
    would keep it waiting for ever. What a signal is handed to is the server, and the server knows.
    """
    owners = (getattr(signal.getsignal(number), "__self__", None) for number in _HANDLED)
    return any(getattr(owner, "should_exit", None) is True for owner in owners)


async def ended_well(app: ASGIApp, scope: Any, receive: Receive, send: Send) -> None:  # a scope of any kind
    """Serve a request; if the server gives it up, end its answer, or send one if none was begun.

    A server whose time for stopping is over cancels what is under way, and takes an answer without an end for a fault.
    """
    begun = ended = False

    async def noted(message: Message) -> None:
        nonlocal begun, ended
        begun = begun or message["type"] == "http.response.start"
        await send(message)
        ended = message["type"] == "http.response.body" and not message.get("more_body", False)

    try:
        await app(scope, receive, noted)
    except asyncio.CancelledError:
        if ended:
            return
        if not begun:
            await _refuse(send)
        else:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _refuse(send: Send) -> None:
    said = msgspec.json.encode({"ok": False, "error": {"type": "unavailable", "message": STOPPING}})
    await send(
        {
            "type": "http.response.start",
            "status": 503,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(said)).encode()),
                (b"connection", b"close"),
            ],
        }
    )
    await send({"type": "http.response.body", "body": said, "more_body": False})
