"""A server that ends as soon as nothing is open any more; uvicorn's own looks ten times a second, and sleeps once more."""

import asyncio
import contextlib
import socket

import uvicorn

PATIENCE_S = 0.005


class PromptServer(uvicorn.Server):
    """To be mixed into a server of a test. `end` is for its loop's thread."""

    def end(self) -> None:
        """Have it end."""
        self.should_exit = True
        self._asked.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._asked = asyncio.Event()
        await super().startup(sockets)

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._asked.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for listening in sockets or []:
            listening.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._all_gone(), self.config.timeout_graceful_shutdown)
        for task in self.server_state.tasks:
            task.cancel()
        await self.lifespan.shutdown()

    async def _all_gone(self) -> None:
        while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - they tell nobody
            await asyncio.sleep(PATIENCE_S)
        for server in self.servers:
            await server.wait_closed()
