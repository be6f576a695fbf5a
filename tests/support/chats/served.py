"""A web server on a thread of its own, for a chat service of a test."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Self

from aiohttp import web

from support.running import WAIT


class Trouble:
    """What a service answers instead of its work: a status and headers, so many times (None: until it is changed)."""

    def __init__(self, status: int, times: int | None, headers: dict[str, str], body: Any) -> None:
        self.status = status
        self.times = times
        self.headers = headers
        self.body = body


class Served:
    """Base of the services. `changed` is notified by whatever happens; tests wait by `until`."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.shown: list[tuple[str, str]] = []
        """What people see of the bot: chat and text."""
        self.refused_calls = 0
        self._trouble: Trouble | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runner: web.AppRunner | None = None
        self.port = 0

    def routes(self) -> list[web.RouteDef]:
        """Return what the service answers."""
        raise NotImplementedError

    # --- for tests

    def away(
        self,
        status: int = 502,
        times: int | None = None,
        *,
        headers: dict[str, str] | None = None,
        body: Any = None,
    ) -> None:
        """Answer each call so from now on."""
        with self.changed:
            self._trouble = Trouble(status, times, headers or {}, body)

    def back(self) -> None:
        """Work again."""
        with self.changed:
            self._trouble = None

    def until(self, true: Callable[[], object]) -> None:
        """Wait until something is so."""
        with self.changed:
            assert self.changed.wait_for(true, 3 * WAIT), (self.shown, self.__dict__)

    def show(self, chat: str, text: str) -> None:
        """Note what the bot says."""
        with self.changed:
            self.shown.append((chat, text))
            self.changed.notify_all()

    # --- its life

    def __enter__(self) -> Self:
        self._thread.start()
        self.do(self._begin()).result(WAIT)
        return self

    def __exit__(self, *_: object) -> None:
        if self._runner is not None:
            self.do(self._runner.cleanup()).result(WAIT)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT)
        self._loop.close()

    def do(self, work: Coroutine[Any, Any, Any]) -> "Future[Any]":
        """Have something done on the loop of the service."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _begin(self) -> None:
        app = web.Application(middlewares=[self._in_trouble])
        app.add_routes(self.routes())
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = int(self._runner.addresses[0][1])

    @web.middleware
    async def _in_trouble(self, request: web.Request, handler: Any) -> web.StreamResponse:
        with self.changed:
            trouble = self._trouble
            if trouble is not None:
                self.refused_calls += 1
                if trouble.times is not None:
                    trouble.times -= 1
                    if trouble.times == 0:
                        self._trouble = None
                self.changed.notify_all()
        if trouble is not None:
            if trouble.body is not None:
                return web.json_response(trouble.body, status=trouble.status, headers=trouble.headers)
            return web.Response(status=trouble.status, headers=trouble.headers, text="<html>away</html>")
        answer: web.StreamResponse = await handler(request)
        return answer
