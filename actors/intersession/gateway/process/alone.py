"""Runs the web debugger on a read-only log, for `intersession debug`: on loopback, for a browser on this machine."""

import asyncio
import contextlib
import signal
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from intersession.gateway.admission.limits import Limits
from intersession.gateway.process.server import Server, address_of
from intersession.web.alone import Alone, Coming, Deed
from intersession_actors.calls.service.reader import Reader
from intersession_actors.running.host.own_threads import off_loop

Progress = Callable[[int, int | None], None]
"""Hears how much is done, and of how much, where that is known."""


Opens = Callable[[Progress], AbstractContextManager[tuple[Reader, Deed | None]]]
"""Opens a log, in a thread of its own, and says meanwhile how far it has come; closed where the server ends."""


def debug_alone(
    opens: Opens, listening: socket.socket, *, ready: Callable[[str, str], None], what: str | None = None
) -> None:
    """Serve the debugger until a signal comes. `ready` gets its address, and the word that admits a browser once. Blocks.

    That is said as soon as the log is there, or `opens` has begun to say how far it is: then the page shows that `what` comes.
    """
    asyncio.run(
        _served(
            Alone(monotonic=time.monotonic, coming=Coming(what=what or "the log")), opens, listening, ready
        )
    )


async def _served(
    app: Alone, opens: Opens, listening: socket.socket, ready: Callable[[str, str], None]
) -> None:
    server = Server(app, Limits())
    loop, stopping, begun = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(ValueError, RuntimeError):  # a test serves from another thread
            loop.add_signal_handler(number, stopping.set)

    def progress(done: int, total: int | None) -> None:
        app.coming = msgspec.structs.replace(app.coming, done=done, total=total)
        loop.call_soon_threadsafe(begun.set)

    with contextlib.ExitStack() as held:

        def opened() -> None:
            reader, fork = held.enter_context(opens(progress))
            app.opened(reader, fork)

        serving = asyncio.create_task(server.serve(sockets=[listening]))
        opening = asyncio.create_task(off_loop(opened))
        await server.answers.wait()
        waiting = [asyncio.create_task(event.wait()) for event in (begun, stopping)]
        await asyncio.wait({opening, *waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not opening.done() or opening.exception() is None:
            ready(address_of(listening), app.word or "")
            done, _ = await asyncio.wait({serving, opening, waiting[1]}, return_when=asyncio.FIRST_COMPLETED)
            if opening in done and opening.exception() is None:
                await asyncio.wait({serving, waiting[1]}, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        app.ending = True
        server.should_exit = True
        await serving
        await opening
