"""Runs the web debugger on a read-only log, for `intersession debug`: on loopback, for a browser on this machine."""

import asyncio
import contextlib
import signal
import socket
import time
from collections.abc import Callable

from intersession.gateway.admission import Limits
from intersession.gateway.process.server import Server, address_of
from intersession.web import Alone, Deed
from intersession_actors.service import Reader


def debug_alone(
    reader: Reader,
    listening: socket.socket,
    *,
    ready: Callable[[str, str], None],
    fork: Deed | None = None,
) -> None:
    """Serve the debugger until a signal comes. `ready` hears its address, and the word that lets in once. Blocks.

    `fork` calls the methods of forks; without it, none are made here.
    """
    asyncio.run(_served(Alone(reader, monotonic=time.monotonic, fork=fork), listening, ready))


async def _served(app: Alone, listening: socket.socket, ready: Callable[[str, str], None]) -> None:
    server = Server(app, Limits())
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(ValueError, RuntimeError):  # a test serves from another thread
            loop.add_signal_handler(number, stopping.set)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    await server.answers.wait()
    ready(address_of(listening), app.word or "")
    waiting = asyncio.create_task(stopping.wait())
    await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    app.ending = True
    server.should_exit = True
    await serving
