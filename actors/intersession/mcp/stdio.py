"""MCP over standard input and output: one JSON-RPC message a line, and nothing else on the wire."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import BinaryIO, Final, NamedTuple

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import from_json

from intersession.mcp.server import MOST_BYTES, HasTools, Seat, mcp_server
from intersession_actors.running.host.own_threads import off_loop
from intersession_events.basics.plain_json import JsonObject

_AHEAD: Final = 16
"""Lines that are read before the first of them is taken."""

_CHUNK: Final = 65_536
_LAST_ANSWERS_S: Final = 1.0
"""How long what was asked may still be answered once the client has closed its end, as `printf … | intersession mcp` does."""

_NO_MESSAGE: Final = ErrorData(code=INVALID_REQUEST, message="Invalid request: one JSON-RPC message a line")


class Wire(NamedTuple):
    """The source and target of messages. A read of `source` returns what is there, and waits only if nothing is."""

    source: BinaryIO
    sink: BinaryIO


@contextmanager
def claimed_wire() -> Generator[Wire]:
    """Reserve standard input and output for the protocol, for the time of a block.

    Whatever else prints, an agent or a child process, prints to standard error; whatever else reads, reads nothing.
    The SDK does so too while it serves; here it holds from before the agents' modules are imported.
    """
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        # Not closed: a thread may still wait in a read of it, and the number must not become another file's. Not
        # buffered: that thread would hold the buffer's lock, on which the interpreter fails when it ends.
        raw = os.fdopen(source, "rb", buffering=0, closefd=False)
        yield Wire(raw, os.fdopen(sink, "wb", closefd=False))
    finally:
        sys.stdout.flush()
        os.dup2(source, 0)
        os.dup2(sink, 1)


def serve_stdio(system: HasTools, key: str, wire: Wire, *, most_bytes: int = MOST_BYTES) -> None:
    """Serve a session's tools until the client closes its end, or SIGTERM. Blocks."""
    tools = system.tools(key)
    asyncio.run(serve(mcp_server(lambda _: Seat(tools, tools.names)), wire, most_bytes=most_bytes))


async def serve(server: Server[JsonObject], wire: Wire, *, most_bytes: int = MOST_BYTES) -> None:
    """Run a server on a wire until the client closes its end, or SIGTERM."""
    async with stdio_streams(wire, most_bytes=most_bytes) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def stdio_streams(
    wire: Wire, *, most_bytes: int = MOST_BYTES
) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
    """Open the two streams that the SDK's server runs on.

    The SDK's own transport passes over what it can't parse; here it is answered. Its wait for a line can't be
    interrupted; here it is a thread's that nobody waits for.
    """
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    lines = _Lines(wire.source, most_bytes)
    unanswered = _Unanswered()

    async def take() -> None:
        async with to_server, outgoing.clone() as refusals:
            async for line in lines:
                match parsed(line):
                    case ErrorData() as error:
                        refused = JSONRPCError(jsonrpc="2.0", id=None, error=error)
                        await refusals.send(SessionMessage(refused))
                    case message:
                        unanswered.asked(message)
                        await to_server.send(SessionMessage(message))
            with anyio.move_on_after(_LAST_ANSWERS_S):
                await unanswered.none.wait()

    async def put() -> None:
        async with from_server:
            async for sent in from_server:
                text = sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
                with suppress(OSError):  # a client that reads no more has gone, or is about to
                    await off_loop(_write, wire.sink, text + b"\n")
                unanswered.answered(sent.message)

    with lines.reading():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take)
            tasks.start_soon(put)
            yield incoming, outgoing
            tasks.cancel_scope.cancel()


def parsed(line: bytes | None) -> JSONRPCMessage | ErrorData:
    """Return the message of a line, or the error that answers an invalid one (None: a line that was too long)."""
    if line is None:
        return ErrorData(code=INVALID_REQUEST, message="Request too large")
    try:
        given = from_json(line)
    except ValueError:
        return ErrorData(code=PARSE_ERROR, message="Parse error")
    try:
        message = jsonrpc_message_adapter.validate_python(given, by_name=False)
    except ValidationError:
        return _NO_MESSAGE
    # A request with an invalid id would pass for a notification, and its sender would wait for ever.
    return _NO_MESSAGE if isinstance(message, JSONRPCNotification) and "id" in given else message


class _Unanswered:
    """The requests that wait for an answer."""

    def __init__(self) -> None:
        self._ids: set[RequestId] = set()
        self.none = asyncio.Event()
        self.none.set()

    def asked(self, message: JSONRPCMessage) -> None:
        """Count a request."""
        if isinstance(message, JSONRPCRequest):
            self._ids.add(message.id)
            self.none.clear()

    def answered(self, message: JSONRPCMessage) -> None:
        """Strike it out; its answer is on the wire."""
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._ids.discard(message.id)
        if not self._ids:
            self.none.set()


class _Lines:
    """The lines of a source, read in a thread; None is one that was too long. They end at its end, or at SIGTERM."""

    def __init__(self, source: BinaryIO, most_bytes: int) -> None:
        self._source = source
        self._most_bytes = most_bytes
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[tuple[bytes | None] | None] = asyncio.Queue()
        self._ahead = threading.Semaphore(_AHEAD)

    @contextmanager
    def reading(self) -> Generator[None]:
        """Read while the block lasts."""
        threading.Thread(target=self._read, name="mcp-stdin", daemon=True).start()
        with _on_sigterm(self._loop, lambda: self._queue.put_nowait(None)):
            yield

    async def __aiter__(self) -> AsyncGenerator[bytes | None]:
        while (item := await self._queue.get()) is not None:
            self._ahead.release()
            (line,) = item
            if line is None or line.strip():
                yield line

    def _read(self) -> None:
        # RuntimeError: the loop has ended before. OSError, ValueError: the source is gone, which is an end too.
        with suppress(RuntimeError):
            with suppress(OSError, ValueError):
                for line in _split(self._source, self._most_bytes):
                    self._ahead.acquire()
                    self._loop.call_soon_threadsafe(self._queue.put_nowait, (line,))
            self._loop.call_soon_threadsafe(self._queue.put_nowait, None)


def _split(source: BinaryIO, most_bytes: int) -> Iterator[bytes | None]:
    """Yield the lines of a source without keeping more of one than may be; None stands for a longer one."""
    line, too_long = bytearray(), False
    while chunk := source.read(_CHUNK):
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            line += piece
            yield None if too_long or len(line) > most_bytes else bytes(line)
            line, too_long = bytearray(), False
        line += rest
        if len(line) > most_bytes:
            line, too_long = bytearray(), True
    if line or too_long:
        yield None if too_long else bytes(line)


def _write(sink: BinaryIO, text: bytes) -> None:
    sink.write(text)
    sink.flush()


@contextmanager
def _on_sigterm(loop: asyncio.AbstractEventLoop, stop: Callable[[], object]) -> Generator[None]:
    """Stop in order when asked to; only the main thread hears."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop.add_signal_handler(signal.SIGTERM, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
