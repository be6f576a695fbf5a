"""A reverse proxy that puts what is behind it below a path, as `proxy_pass` of nginx does."""

import asyncio
import contextlib
import threading
from collections.abc import Generator
from contextlib import contextmanager

PREFIX = "/agents/night"
_HEAD_END = b"\r\n\r\n"


class Proxy:
    """Takes a prefix from each path, as `proxy_pass` of nginx does, and hands all else through; one request a connection."""

    def __init__(self, target: int) -> None:
        self._target = target
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.outside: list[str] = []
        """Paths that were asked for beside the prefix: nothing of the debugger's may be."""

    async def serve(self, ready: threading.Event, stop: asyncio.Event) -> None:
        def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._one(reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        server = await asyncio.start_server(begin, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        async with server:
            await stop.wait()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(_HEAD_END)
            method, path, version = head.split(b"\r\n", 1)[0].split(b" ")
            if not path.startswith(PREFIX.encode()):
                self.outside.append(path.decode())
                writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                return
            lines = [
                line
                for line in head[: -len(_HEAD_END)].split(b"\r\n")[1:]
                if not line.lower().startswith(b"connection:")
            ]
            stripped = path[len(PREFIX) :] or b"/"
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            asked = [b" ".join((method, stripped, version)), *lines, b"connection: close"]
            back.write(b"\r\n".join(asked) + _HEAD_END)
            sending = asyncio.create_task(_carry(reader, back))
            try:
                await _carry(there, writer)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
                back.transport.abort()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the browser, or the gateway, has gone
        finally:
            await _closed(writer)


async def _closed(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, TimeoutError):
        await asyncio.wait_for(writer.drain(), 1)
    writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def _carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while part := await source.read(65_536):
        target.write(part)
        await target.drain()


@contextmanager
def proxied(target: int) -> Generator[Proxy]:
    proxy, ready = Proxy(target), threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    def run() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(proxy.serve(ready, stop))
            loop.run_until_complete(asyncio.sleep(0))
        finally:
            loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
