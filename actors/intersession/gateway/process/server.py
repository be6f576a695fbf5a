"""Runs the gateway as a process: uvicorn, its address in the log's lock, signals, and an end within the grace time."""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from typing import Final, cast

import msgspec
import uvicorn
from litestar.types import ASGIApp

from intersession.gateway.admission.credentials import Credentials
from intersession.gateway.admission.limits import Limits
from intersession.gateway.http.application import asgi_application
from intersession.gateway.process.mcp_mount import MCP_PATH, mcp_mount
from intersession.gateway.process.uvicorn_protocols import ServerConfig
from intersession_actors.assembly.system.system import SessionSystem
from intersession_events.basics.errors import LogError
from intersession_events.stores.hosts.announcing import announced, this_host
from intersession_events.stores.hosts.host import Host
from intersession_events.stores.portable.log import PortableLog

logger = logging.getLogger("intersession.gateway")

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
SHARE_FOR_RUNS: Final = 0.7
"""How much of the grace runs under way get; the rest is for closing."""

_AGAIN_S: Final = 0.02

Ready = Callable[[str], None]
"""Hears the gateway's address once it answers."""


class Server(uvicorn.Server):
    """Uvicorn as the gateway needs it. `answers` is set once it listens."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        super().__init__(
            ServerConfig(
                app,
                limits,
                ws_per_message_deflate=False,
                lifespan="off",
                access_log=False,
                log_config=None,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=1,
            )
        )
        self.answers = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        self.answers.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals to us: uvicorn would raise them again at the end, and the exit code would not be 0."""
        yield


def run(
    system: SessionSystem,
    *,
    port: int | None = None,
    listening: socket.socket | None = None,
    ready: Ready = lambda _address: None,
    also: Callable[[], Coroutine[object, object, object]] | None = None,
    limits: Limits | None = None,
    patience_s: float = 0.0,
) -> None:
    """Serve a system until a signal comes, then close it. Blocks; must run in the main thread.

    `listening` is an address that was taken before; without one it is waited for `patience_s` seconds, where the writer before
    still has it. `also` is a coroutine function that runs beside it. The first SIGTERM or SIGINT refuses new work and gives runs under way `runs.shutdownGraceSeconds`; the second
    ends the process at once, which loses nothing that was acknowledged.

    Raises:
        OSError: the address can't be listened on.
        ConfigError: no token is set.
        WriterSuperseded: another process has taken the log over.
    """
    if listening is None:
        settings = system.config.gateway
        listening = listen(settings.host, settings.port if port is None else port, patience_s=patience_s)
    asyncio.run(_run(system, listening=listening, ready=ready, also=also, limits=limits or Limits()))


async def _run(
    system: SessionSystem,
    *,
    listening: socket.socket,
    ready: Ready,
    also: Callable[[], Coroutine[object, object, object]] | None,
    limits: Limits,
) -> None:
    mounted = contextlib.AsyncExitStack()
    credentials = Credentials(lambda: system.config.gateway.auth)
    mcp = mcp_mount(system, credentials)
    app = asgi_application(
        system, limits=limits, mounts={} if mcp is None else {MCP_PATH: mcp}, credentials=credentials
    )
    server = Server(app, limits)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    grace = system.config.runs.shutdown_grace_seconds
    for number in SIGNALS:
        loop.add_signal_handler(number, _signalled, stopping, grace)
    superseded: list[LogError] = []

    def end(error: LogError) -> None:
        superseded.append(error)
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(stopping.set)

    system.log.on_superseded(end)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    beside = asyncio.create_task(also()) if also is not None else None
    address = address_of(listening)
    try:
        if mcp is not None:
            await mounted.enter_async_context(mcp.running())
        await server.answers.wait()
        if system.is_follower:
            mounted.enter_context(_as_a_door(system, address))
        else:
            system.log.announce_gateway(address, advertised=system.config.gateway.advertise)
        ready(address)
        waiting = asyncio.create_task(stopping.wait())
        await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
    finally:
        if beside is not None:
            beside.cancel()
        app.door.drain()
        logger.info("stopping: no new work, runs under way get %g s", grace * SHARE_FOR_RUNS)
        try:
            if not system.is_follower:
                system.log.announce_gateway(None)
        except Exception as error:  # noqa: BLE001 - stopping goes on
            logger.warning("the address could not be taken from the lock's file: %s", error)
        # Requests that wait for a run are still answered while it ends; new ones are refused.
        await system.aclose(grace * SHARE_FOR_RUNS)
        server.should_exit = True
        await serving
        await mounted.aclose()
        logger.info("stopped")
    if superseded:
        raise superseded[0]


def _as_a_door(system: SessionSystem, address: str) -> contextlib.AbstractContextManager[None]:
    """Announce a host that follows the log, with how far it has come, in a block (HOSTS-1)."""
    log = cast("PortableLog", system.log)
    host = this_host("door", address=system.config.gateway.advertise or address)

    def now() -> Host:
        followed = log.followed
        return msgspec.structs.replace(host, position=followed, behind=max(log.head() - followed, 0))

    return announced(log.hosts, now)


def _signalled(stopping: asyncio.Event, grace: float) -> None:
    if stopping.is_set():
        _leave(128 + signal.SIGTERM)
    stopping.set()
    # Whatever does not stop in its time is left behind: the log says what was open, and the next start goes on.
    watchdog = threading.Timer(max(grace, 1.0), _leave, (0,))
    watchdog.daemon = True
    watchdog.start()


def _leave(code: int) -> None:
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def listen(host: str, port: int, *, patience_s: float = 0.0) -> socket.socket:
    """Bind an address; port 0 is any free one. One that is in use is tried again for `patience_s` seconds.

    Raises:
        OSError: it can't be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    until = time.monotonic() + patience_s
    while True:
        try:
            listening = socket.create_server((host, port), family=family, backlog=128)
            break
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= until:
                raise
            time.sleep(_AGAIN_S)
    # What is accepted has it from here; asyncio only sets it where the protocol of the socket is spelt out. Without it the
    # end of an answer waits for the other side to acknowledge its beginning: 40 ms each.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listening.setblocking(False)
    return listening


def address_of(listening: socket.socket) -> str:
    """Return the URL under which a gateway is reached from this machine."""
    host, port = map(str, listening.getsockname()[:2])
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    shown = f"[{reachable}]" if ":" in reachable else reachable
    return f"http://{shown}:{port}"
