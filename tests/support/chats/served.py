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
        self.edits: list[str] = []
        """The texts that messages were given later."""
        self.refused_calls = 0
        self.calls = 0
        self.moments = 0
        """How much has happened: each call is a moment, and what else a test counts by `moment`."""
        self.limit: tuple[int, Trouble] | None = None
        """Each so manieth call is told to come later, and what it is told."""
        self._trouble: Trouble | None = None
        self._at_work: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),), daemon=True)
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

    def moment(self) -> None:
        """Note that something has happened."""
        with self.changed:
            self.moments += 1
            self.changed.notify_all()

    def until(self, true: Callable[[], object]) -> None:
        """Wait until something is so."""
        with self.changed:
            assert self.changed.wait_for(true, 3 * WAIT), (self.shown, self.__dict__)

    def show(self, chat: str, text: str) -> None:
        """Note what the bot says."""
        with self.changed:
            self.shown.append((chat, text))
            self.changed.notify_all()

    def edit(self, number: int, text: str) -> None:
        """Note that the bot gives one of its messages, counted from 0, another text."""
        with self.changed:
            self.shown[number] = (self.shown[number][0], text)
            self.edits.append(text)
            self.changed.notify_all()

    # --- its life

    def __enter__(self) -> Self:
        self._thread.start()
        self._at_work.result(WAIT)
        return self

    def __exit__(self, *_: object) -> None:
        """End with nothing left: connections, tasks and threads are over once this returns."""
        loop, over = self._at_work.result(WAIT)
        self.let_go()
        loop.call_soon_threadsafe(over.set)
        self._thread.join(WAIT)
        assert not self._thread.is_alive()

    def let_go(self) -> None:
        """Let all go on that the service holds up; it ends."""

    def do(self, work: Coroutine[Any, Any, Any]) -> "Future[Any]":
        """Have something done on the loop of the service."""
        return asyncio.run_coroutine_threadsafe(work, self._at_work.result(WAIT)[0])

    async def _serve(self) -> None:
        over = asyncio.Event()
        app = web.Application(middlewares=[self._in_trouble])
        app.add_routes(self.routes())
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.port = int(runner.addresses[0][1])
            self._at_work.set_result((asyncio.get_running_loop(), over))
            await over.wait()
        finally:
            await runner.cleanup()

    @web.middleware
    async def _in_trouble(self, request: web.Request, handler: Any) -> web.StreamResponse:
        with self.changed:
            self.moments += 1
            self.calls += 1
            trouble = self._trouble
            if trouble is None and self.limit is not None and request.method != "GET":
                trouble = self.limit[1] if self.calls % self.limit[0] == 0 else None
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
