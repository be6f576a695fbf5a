"""A gateway on a free port of this machine, served from a thread: real sockets, real clients."""

import asyncio
import functools
import json
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import httpx
from litestar.types import ASGIApp
from websockets.sync.client import ClientConnection, connect

from intersession import SessionSystem
from intersession.gateway.admission.credentials import Credentials
from intersession.gateway.admission.limits import Limits
from intersession.gateway.door import Door
from intersession.gateway.http.application import asgi_application
from intersession.gateway.process.mcp_mount import MCP_PATH, mcp_mount
from intersession.gateway.process.server import Server, address_of, listen
from intersession.gateway.protocol.line import Line
from intersession.gateway.protocol.tools_there import ToolsThere
from support.doors.prompt_server import PromptServer

TOKEN = "the-operators-own-token"
READER = "a-token-that-reads"
WRITER = "a-token-for-ops"

GATEWAY: dict[str, Any] = {
    "gateway": {
        "port": 0,
        "auth": {
            "token": TOKEN,
            "credentials": [
                {"name": "reader", "token": READER, "actAs": ["agent:main:*"]},
                {
                    "name": "ops",
                    "token": WRITER,
                    "actAs": ["agent:ops:*"],
                    "scopes": ["operator.read", "operator.write"],
                },
            ],
        },
    }
}
"""A configuration with the operator's token, one that reads main's sessions, and one that writes as those of ops."""

WAIT = 20.0


class _Server(PromptServer, Server):
    """The gateway's server, for many short lives."""


@contextmanager
def there(address: str, token: str = TOKEN) -> Generator[ToolsThere]:
    """Lend the tools of sessions at an address, whether somebody is there already or not."""
    line = Line(lambda: (address,), token)
    try:
        line.open()
        yield ToolsThere(line)
    finally:
        line.close()


class LiveGateway:
    """Serves a system until the block ends."""

    def __init__(
        self,
        system: SessionSystem,
        *,
        limits: Limits | None = None,
        mounts: Mapping[str, ASGIApp] | None = None,
        credentials: Credentials | None = None,
        port: int = 0,
    ) -> None:
        self._port = port
        self._limits = limits or Limits()
        self._app = asgi_application(system, limits=self._limits, mounts=mounts, credentials=credentials)
        self._ready = threading.Event()
        self._stop: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self.address = ""

    @property
    def door(self) -> Door:
        return self._app.door

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @contextmanager
    def tools_there(self, token: str = TOKEN) -> Generator[ToolsThere]:
        """Lend the tools of sessions here, as a process beside the gateway has them."""
        with there(self.address, token) as tools:
            yield tools

    def http(self, token: str | None = TOKEN, **options: Any) -> httpx.Client:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx.Client(
            base_url=self.address,
            headers=headers,
            timeout=WAIT,
            trust_env=False,
            verify=False,  # noqa: S501 - there is no TLS here, and loading certificates takes its time
            **options,
        )

    def invoke(
        self, tool: str, args: Mapping[str, Any] | None = None, *, token: str = TOKEN, **fields: Any
    ) -> httpx.Response:
        with self.http(token) as client:
            return client.post("/tools/invoke", json={"tool": tool, "args": args or {}, **fields})

    @contextmanager
    def socket(self, **options: Any) -> Generator[ClientConnection]:
        """Open a connection and leave the handshake to the test."""
        url = self.address.replace("http", "ws", 1)
        with connect(url, proxy=None, open_timeout=WAIT, max_size=None, **options) as opened:
            yield opened

    @contextmanager
    def client(self, token: str = TOKEN, **connect_params: Any) -> Generator["WireClient"]:
        """Open a connection and let it in. It reads all that comes: else it could not say goodbye in the end."""
        with self.socket(max_queue=None) as opened:
            client = WireClient(opened)
            client.challenge()
            client.hello = client.connect(token, **connect_params)["payload"]
            yield client

    async def _serve(self) -> None:
        listening = listen("127.0.0.1", self._port)
        server = _Server(self._app, self._limits)
        loop = self.loop = asyncio.get_running_loop()
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        await server.answers.wait()
        self.address = address_of(listening)

        self._stop = functools.partial(loop.call_soon_threadsafe, server.end)
        self._ready.set()
        await serving

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(WAIT):
            raise TimeoutError("the gateway did not start")
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive():
            self._stop()
        self._thread.join(WAIT)


class WireClient:
    """Speaks the protocol, frame by frame; events that come between answers are kept."""

    def __init__(self, opened: ClientConnection) -> None:
        self.opened = opened
        self.hello: dict[str, Any] = {}
        self.events: list[dict[str, Any]] = []
        self._early: list[dict[str, Any]] = []
        self._number = 0

    def send(self, frame: Any) -> None:
        self.opened.send(json.dumps(frame))

    def receive(self) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(self.opened.recv(timeout=WAIT))
        return frame

    def challenge(self) -> dict[str, Any]:
        frame = self.receive()
        assert frame["event"] == "connect.challenge"
        return frame

    def connect(self, token: str | None = TOKEN, **params: Any) -> dict[str, Any]:
        auth = {} if token is None else {"auth": {"token": token}}
        return self.request("connect", {**CONNECT, **auth, **params})

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> str:
        self._number += 1
        request_id = f"r{self._number}"
        frame: dict[str, Any] = {"type": "req", "id": request_id, "method": method}
        self.send(frame if params is None else frame | {"params": params})
        return request_id

    def answer(self, request_id: str) -> dict[str, Any]:
        """Return the next answer to a request; what comes before it, to others, is kept for who asks for it."""
        for frame in self._early:
            if frame["id"] == request_id:
                self._early.remove(frame)
                return frame
        until = time.monotonic() + WAIT
        while time.monotonic() < until:
            frame = self.receive()
            if frame["type"] == "event":
                self.events.append(frame)
            elif frame["id"] == request_id:
                return frame
            else:
                self._early.append(frame)
        raise TimeoutError(f"no answer to {request_id} came: {self.events}")

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self.answer(self.ask(method, params))

    def event(self, name: str, where: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        """Return the first event that is meant, of those that came and those that will."""
        for frame in self.events:
            if frame["event"] == name and where(frame["payload"]):
                return frame
        until = time.monotonic() + WAIT
        while time.monotonic() < until:
            frame = self.receive()
            self.events.append(frame)
            if frame.get("event") == name and where(frame["payload"]):
                return frame
        raise TimeoutError(f"no {name} came: {self.events}")


CONNECT: dict[str, Any] = {
    "minProtocol": 3,
    "maxProtocol": 3,
    "client": {"id": "gateway-client", "version": "2026.3.2", "platform": "linux", "mode": "backend"},
    "role": "operator",
    "scopes": ["operator.admin"],
    "caps": [],
}
"""What the original's backend client says of itself."""


def with_mcp(system: SessionSystem) -> LiveGateway:
    """Return a gateway with its MCP, as `intersession serve` has it."""
    credentials = Credentials(lambda: system.config.gateway.auth)
    mcp = mcp_mount(system, credentials)
    assert mcp is not None
    return LiveGateway(system, mounts={MCP_PATH: mcp}, credentials=credentials)


def credential(name: str, token: str, reach: str, *scopes: str) -> dict[str, Any]:
    """Return the settings of a credential that acts as some sessions."""
    return {"name": name, "token": token, "actAs": [reach], "scopes": list(scopes)}


def newest(gateway: LiveGateway, kind: str = "exchange") -> str:
    """Return the id of the newest exchange, spawn or run, as pages have it."""
    with gateway.http() as client:
        found: str = client.get("/debug/api/runs", params={"kind": kind}).json()["runs"][0]["id"]
    return found
