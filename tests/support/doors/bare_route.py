"""A route of Litestar's that takes JSON and gives JSON, on the server that the gateway runs on: what a call costs without us."""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from litestar import Litestar, post
from litestar.params import JSONBody

from intersession.gateway.admission.limits import Limits
from intersession.gateway.process.server import Server, address_of, listen
from support.doors.prompt_server import PromptServer

WAIT = 20.0


class _Server(PromptServer, Server):
    """The gateway's server, for a short life."""


@post("/tools/invoke", status_code=200)
async def invoke(data: JSONBody[dict[str, Any]]) -> dict[str, Any]:
    """Give back what it was given."""
    return {"ok": True, "result": data}


@contextmanager
def bare_route() -> Generator[str]:
    """Serve it from a thread while the block lasts; yields its address."""
    listening = listen("127.0.0.1", 0)
    ready = threading.Event()
    loops: list[tuple[asyncio.AbstractEventLoop, _Server]] = []

    async def serve() -> None:
        server = _Server(Litestar([invoke], logging_config=None, openapi_config=None), Limits())
        loops.append((asyncio.get_running_loop(), server))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        await server.answers.wait()
        ready.set()
        await serving

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    if not ready.wait(WAIT):
        raise TimeoutError("the bare route did not start")
    try:
        yield f"{address_of(listening)}/tools/invoke"
    finally:
        loop, server = loops[0]
        loop.call_soon_threadsafe(server.end)
        thread.join(WAIT)
