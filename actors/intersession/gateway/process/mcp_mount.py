"""The session tools over MCP beside the gateway's own routes, where the extra `mcp` is installed."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from litestar.types import Receive, Scope, Send

from intersession.gateway.admission.credentials import Credentials
from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.running.host.extras import imported, is_installed
from intersession_actors.running.host.own_threads import off_loop

MCP_PATH: Final = "/mcp"


class McpMount:
    """The application to mount at `MCP_PATH`. It serves inside `running()`.

    The MCP SDK takes most of a second and some 26 MB to import, and most gateways are never asked: the first request imports it.
    Nobody gets as far as here without a token.
    """

    def __init__(self, system: SessionSystem, credentials: Credentials) -> None:
        self._system = system
        self._credentials = credentials
        self._making: asyncio.Task[Any] | None = None  # its class is in what may be missing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if self._making is None:
            self._making = asyncio.create_task(self._made())
        making = self._making
        try:
            # A client that goes away cancels nothing of the others.
            application = await asyncio.shield(making)
        except Exception:
            if self._making is making:
                self._making = None  # the next request tries again
            raise
        await application(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Serve until the block ends; once only."""
        try:
            yield
        finally:
            if self._making is not None:
                application = await self._making
                async with application.running():
                    pass  # that ends it

    async def _made(self) -> Any:  # its class is in what may be missing
        mcp = await off_loop(
            imported, "intersession.mcp.http", what="MCP over HTTP", library="mcp", extra="mcp"
        )

        async def check(token: str) -> object:
            found = self._credentials.match(token.encode(errors="surrogatepass"))
            return None if found is None else mcp.McpCaller(caller=found.caller, scopes=found.scopes)

        # Host and Origin are judged before anything is mounted.
        return mcp.mcp_app(self._system, check=check, path=MCP_PATH, allowed_hosts=None)


def mcp_is_installed() -> bool:
    """Whether the extra `mcp` is installed. Imports nothing."""
    return is_installed("mcp")


def mcp_mount(system: SessionSystem, credentials: Credentials) -> McpMount | None:
    """Return the application to mount at `MCP_PATH`; None without the extra."""
    return McpMount(system, credentials) if mcp_is_installed() else None
