"""Every door of a running system behind one question: who asks, which tool, which arguments; the answer is bytes.

A door that can't carry a call raises `Unsayable`. To add a door: a class with `name` and `ask`, and a line in `open_doors`.
"""

import asyncio
import functools
import json
import re
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote_from_bytes

import httpx
import msgspec

from intersession import As, SessionSystem
from intersession.gateway.admission.credentials import Credentials
from intersession.gateway.process.mcp_mount import MCP_PATH, mcp_mount
from intersession.mcp.http import SESSION_HEADER, SESSION_PARAMETER
from intersession.mcp.stdio import Wire, serve_stdio
from intersession_actors.calls.tools.registry import TOOLS
from intersession_actors.rules.config.host import Credential, GatewayAuth
from intersession_actors.rules.errors import REFUSAL_CODES, RefusalCode, status_of
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.postgres.log import PostgresLog
from support.doors.command_line import ran
from support.doors.following import DOOR, door
from support.doors.gateway_live import LiveGateway, WireClient
from support.doors.mcp_clients import piped
from support.running import WAIT

Arguments = Mapping[str, Any]


class Unsayable(Exception):
    """This door can't carry this call; the message says why."""


class NoRequest(Unsayable):
    """What came was no request at all to this door, and it said so."""


class Door(Protocol):
    """A way to the tools. `ask` returns the answer's JSON without white space, in the order it came in."""

    name: str

    def ask(self, requester: str | None, tool: str, args: Arguments) -> bytes:
        """Ask as a session, or as the operator (None)."""
        ...


def compact(text: bytes | str | msgspec.Raw) -> bytes:
    """Return JSON text without white space, otherwise byte for byte as it is."""
    given = text.encode() if isinstance(text, str) else bytes(text)
    return msgspec.json.format(given, indent=-1)


def refusal(code: str, error: str) -> bytes:
    """Return a tool's refusal, from a door that says it in its own shape."""
    assert code in REFUSAL_CODES, code
    known: RefusalCode = code
    return msgspec.json.encode({"status": status_of(known), "code": code, "error": error})


def as_json(value: Any) -> bytes:
    """Return a value as the text of a request; what UTF-8 has no bytes for is escaped, as JSON allows."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


# --- in the same process


class InPython:
    """`system.tools(key).call`."""

    name = "python"

    def __init__(self, system: SessionSystem) -> None:
        self._system = system

    def ask(self, requester: str | None, tool: str, args: Arguments) -> bytes:
        return msgspec.json.encode(self._system.tools(requester).call(tool, args))


class InCoroutine:
    """`await system.tools(key).acall`."""

    name = "coroutine"

    def __init__(self, system: SessionSystem) -> None:
        self._system = system

    def ask(self, requester: str | None, tool: str, args: Arguments) -> bytes:
        return msgspec.json.encode(asyncio.run(self._system.tools(requester).acall(tool, args)))


class ToActor:
    """`system.ref.ask(As(key, SessionsList(…)))`."""

    name = "pykka"

    def __init__(self, system: SessionSystem) -> None:
        self._ref = system.ref

    def ask(self, requester: str | None, tool: str, args: Arguments) -> bytes:
        kind = TOOLS[tool].arguments
        names = {field.encode_name: field.name for field in msgspec.structs.fields(kind)}
        try:
            call = kind(**{names[name]: value for name, value in args.items()})
        except (KeyError, TypeError):
            raise Unsayable("Python makes no such message") from None
        return msgspec.json.encode(self._ref.ask(As(requester, call), timeout=WAIT))


# --- the command line


class OnCommandLine:
    """`intersession sessions|history|send … --json --as KEY`; beside the gateway, which it asks where it has to write."""

    name = "command line"

    _OPTIONS: Mapping[str, Mapping[str, tuple[str, type | tuple[type, ...]]]] = {
        "sessions_list": {
            "kinds": ("--kind", list),
            "limit": ("--limit", int),
            "activeMinutes": ("--active-minutes", (int, float)),
            "messageLimit": ("--messages", int),
            "search": ("--search", str),
            "label": ("--label", str),
            "agentId": ("--agent", str),
            "asOf": ("--as-of", (int, str)),
            "cursor": ("--cursor", str),
        },
        "sessions_history": {
            "sessionKey": ("", str),
            "limit": ("--limit", int),
            "includeTools": ("--tools", bool),
            "asOf": ("--as-of", (int, str)),
            "before": ("--before", str),
        },
        "sessions_send": {
            "message": ("", str),
            "sessionKey": ("--to", str),
            "label": ("--label", str),
            "agentId": ("--agent", str),
            "timeoutSeconds": ("--timeout", (int, float)),
            "idempotencyKey": ("--idempotency-key", str),
        },
    }
    _COMMANDS: Mapping[str, str] = {
        "sessions_list": "sessions",
        "sessions_history": "history",
        "sessions_send": "send",
    }

    def __init__(self, store: str, config: Path) -> None:
        self._common = (f"--store={store}", f"--config={config}", "--json")

    def ask(self, requester: str | None, tool: str, args: Arguments) -> bytes:
        done = ran(*self.tokens(requester, tool, args))
        assert "Traceback" not in done.err, done.err
        if done.exit_code == 2:
            raise Unsayable(f"wrong usage: {done.json['error']}")
        # What `send` tells beside the tool's answer.
        answer = {name: value for name, value in done.json.items() if name not in _BESIDE}
        return msgspec.json.encode(answer)

    def tokens(self, requester: str | None, tool: str, args: Arguments) -> list[str]:
        """Return the call as it is typed."""
        if tool not in self._COMMANDS:
            raise Unsayable("there is no such command")
        options, named = self._OPTIONS[tool], [*self._common]
        if tool == "sessions_send":
            named.append("--no-follow")
        if requester is not None:
            named.append(f"--as={requester}")
        behind: list[str] = []
        for name, value in args.items():
            option, kind = options.get(name, ("", ()))
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                raise Unsayable(f"{name}: there is no such option, or it takes no such value")
            if name == "asOf" and isinstance(value, str) and value.isdigit():
                raise Unsayable("asOf: digits are a position")
            behind += [str(value)] if not option else []
            named += _typed(option, value) if option else []
        if not behind and tool != "sessions_list":
            raise Unsayable("it has to be typed")
        tokens = [self._COMMANDS[tool], *named, "--", *behind] if behind else [self._COMMANDS[tool], *named]
        if any("\0" in token or not _is_unicode(token) for token in tokens):
            raise Unsayable("no argument of a process has a NUL or a lone surrogate")
        return tokens


_BESIDE = {"exchange", "beats", "pending"}


def _typed(option: str, value: Any) -> list[str]:
    match value:
        case True:
            return [option]
        case False:
            return []
        case list():
            return [f"{option}={each}" for each in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return [f"{option}={value}"]


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- over the network


class _Result(msgspec.Struct):
    content: list[dict[str, str]]
    details: msgspec.Raw


class _Invoked(msgspec.Struct):
    ok: bool
    result: _Result | None = None
    error: dict[str, str] | None = None


class OverHttp:
    """`POST /tools/invoke`. A 400 of a tool, and a refusal of the gateway, are given back as the tool says them."""

    name = "HTTP"

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def ask(self, requester: str | None, tool: str, args: Arguments) -> bytes:
        body = b'{"tool":%b,"args":%b' % (as_json(tool), as_json(args))
        body += b"}" if requester is None else b',"sessionKey":%b}' % as_json(requester)
        response = self._client.post("/tools/invoke", content=body, headers=_JSON)
        invoked = msgspec.json.decode(response.content, type=_Invoked)
        if invoked.result is None:
            error = invoked.error or {}
            if "code" not in error:
                raise NoRequest(f"{response.status_code}: {error['message']}")
            return refusal(error["code"], error["message"])
        details, (content,) = compact(invoked.result.details), invoked.result.content
        assert compact(content["text"]) == details == bytes(invoked.result.details)
        return details


class _Frame(msgspec.Struct):
    id: str = ""
    ok: bool = False
    payload: msgspec.Raw = msgspec.Raw()
    error: dict[str, Any] = {}


class OverWebSocket:
    """`tools.invoke` over the gateway's WebSocket."""

    name = "WebSocket"

    def __init__(self, client: WireClient) -> None:
        self._client = client
        self._numbers = iter(range(1, 1 << 31))

    def ask(self, requester: str | None, tool: str, args: Arguments) -> bytes:
        params = b'{"name":%b,"args":%b' % (as_json(tool), as_json(args))
        params += b"}" if requester is None else b',"sessionKey":%b}' % as_json(requester)
        return self._answer("tools.invoke", params)

    def call(self, method: str, params: Arguments) -> bytes:
        """Call a method; the first answer, where there are two."""
        return self._answer(method, as_json(params))

    def _answer(self, method: str, params: bytes) -> bytes:
        frame = self._request(method, params)
        if frame.ok:
            return bytes(frame.payload)
        if "details" not in frame.error:
            raise NoRequest(frame.error["message"])
        return refusal(frame.error["details"]["code"], frame.error["message"])

    def _request(self, method: str, params: bytes) -> _Frame:
        number = f"d{next(self._numbers)}"
        text = b'{"type":"req","id":"%b","method":"%b","params":%b}' % (
            number.encode(),
            method.encode(),
            params,
        )
        self._client.opened.send(text.decode())
        while True:
            frame = msgspec.json.decode(self._client.opened.recv(timeout=WAIT), type=_Frame)
            if frame.id in {number, "invalid"}:
                return frame


class AtAnotherHost(OverWebSocket):
    """The same at a host that follows the log, and hands on to its writer what it can't answer."""

    name = "another host"


def admitted(auth: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `gateway.auth` of a configuration with a door among its credentials."""
    return {**auth, "credentials": [*auth.get("credentials", ()), DOOR]}


def admitting_a_door(auth: Callable[[], GatewayAuth]) -> Callable[[], GatewayAuth]:
    """Return the settings in force with a door among the credentials; the same ones as long as they are."""

    @functools.lru_cache(1)
    def with_it(given: GatewayAuth) -> GatewayAuth:
        known = Credential(
            name=DOOR["name"], token=DOOR["token"], act_as=("*",), scopes=("door", "operator.admin")
        )
        return msgspec.structs.replace(given, credentials=(*given.credentials, known))

    return lambda: with_it(auth())


# --- MCP


class _Called(msgspec.Struct):
    content: list[dict[str, Any]]
    structuredContent: msgspec.Raw  # noqa: N815 - the protocol's name
    isError: bool = False  # noqa: N815


class _Message(msgspec.Struct):
    id: int | None = None
    result: msgspec.Raw = msgspec.Raw()
    error: dict[str, Any] | None = None


def _call(number: int, tool: str, args: Arguments) -> bytes:
    head = f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":'.encode()
    return head + as_json(tool) + b',"arguments":' + as_json(args) + b"}}"


def _called(text: bytes | str) -> bytes:
    message = msgspec.json.decode(text, type=_Message)
    if not message.result:
        raise NoRequest(f"protocol error: {(message.error or {})['message']}")
    called = msgspec.json.decode(message.result, type=_Called)
    (content,) = called.content
    answer = content["text"].encode()
    # What the SDK's models make of the same answer on its way out is compared as it is.
    assert compact(called.structuredContent) == answer
    said = msgspec.json.decode(answer).get("status")
    assert called.isError == (said in {"error", "forbidden"})
    return bytes(answer)


LONGEST_CLAIM = 8192


class McpOverHttp:
    """`tools/call` over streamable HTTP, at the gateway's `/mcp`."""

    name = "MCP over HTTP"

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def ask(self, requester: str | None, tool: str, args: Arguments) -> bytes:
        headers = _JSON | {"accept": "application/json, text/event-stream"}
        url = MCP_PATH
        if requester is not None and len(requester) > LONGEST_CLAIM:
            raise Unsayable("no head of a request is that long")
        if requester is not None and re.fullmatch(r"[!-~]+", requester):
            headers |= {SESSION_HEADER: requester}
        elif requester is not None:
            # What can't be in a header can be in the URL.
            url += f"?{SESSION_PARAMETER}={quote_from_bytes(requester.encode(errors='surrogatepass'))}"
        response = self._client.post(url, content=_call(1, tool, args), headers=headers)
        if response.headers["content-type"].startswith("application/json"):
            return _called(response.content)
        lines = [line for line in response.content.split(b"\r\n") if line.startswith(b"data: ")]
        return _called(lines[-1].removeprefix(b"data: "))


class McpOverPipes:
    """`tools/call` on standard input and output: of a process that has the log, or of one that passes on to its gateway."""

    def __init__(self, name: str, serve: Callable[[str, Wire], None]) -> None:
        self.name = name
        self._serve = serve
        self._clients: dict[str, _PipeClient] = {}

    def ask(self, requester: str | None, tool: str, args: Arguments) -> bytes:
        if requester is None:
            raise Unsayable("the client is a session")
        client = self._clients.get(requester)
        if client is None:
            client = self._clients[requester] = _PipeClient(self._serve, requester)
        return client.ask(tool, args)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


class _PipeClient:
    """A client's two ends of a wire to a server in a thread."""

    def __init__(self, serve: Callable[[str, Wire], None], key: str) -> None:
        wire, self._to, self._from = piped()

        def serving() -> None:
            with wire.source, wire.sink:
                serve(key, wire)

        self._thread = threading.Thread(target=serving, daemon=True)
        self._thread.start()
        self._number = 0
        self._line(INITIALIZE)
        self._to.write(INITIALIZED + b"\n")

    def ask(self, tool: str, args: Arguments) -> bytes:
        self._number += 1
        return _called(self._line(_call(self._number, tool, args)))

    def close(self) -> None:
        self._to.close()
        self._thread.join(WAIT)
        self._from.close()

    def _line(self, text: bytes) -> bytes:
        self._to.write(text + b"\n")
        return self._from.readline()


_JSON = {"content-type": "application/json"}
INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
).encode()
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


# --- all of them

NAMES = (
    "python",
    "coroutine",
    "pykka",
    "command line",
    "HTTP",
    "WebSocket",
    "MCP over HTTP",
    "MCP over pipes",
    "MCP passed on",
    "another host",
)


@contextmanager
def open_doors(
    system: SessionSystem, config: Mapping[str, Any], folder: Path, wanted: tuple[str, ...] = NAMES
) -> Generator[dict[str, Door]]:
    """Open doors of a system that has a log in a file and a gateway's token in its configuration."""
    with ExitStack() as stack:
        doors = {door.name: door for door in _doors(system, config, folder, wanted, stack)}
        yield {name: doors[name] for name in wanted}


def _doors(
    system: SessionSystem, config: Mapping[str, Any], folder: Path, wanted: tuple[str, ...], stack: ExitStack
) -> Iterator[Door]:
    yield InPython(system)
    yield InCoroutine(system)
    if "pykka" in wanted:
        yield ToActor(system)
    if set(wanted) <= {"python", "coroutine", "pykka"}:
        return
    credentials = Credentials(admitting_a_door(lambda: system.config.gateway.auth))
    mount = mcp_mount(system, credentials)
    assert mount is not None
    live = stack.enter_context(LiveGateway(system, mounts={MCP_PATH: mount}, credentials=credentials))
    log = system.log
    assert isinstance(log, PortableLog)
    log.announce_gateway(live.address)
    file = folder / "config.json5"
    file.write_text(json.dumps(config))
    yield OnCommandLine(log._url if isinstance(log, PostgresLog) else log.path, file)
    http = stack.enter_context(live.http())
    yield OverHttp(http)
    yield McpOverHttp(http)
    if "WebSocket" in wanted:
        yield OverWebSocket(stack.enter_context(live.client()))
    if "another host" in wanted:
        door_config = {
            **config,
            "gateway": {**config["gateway"], "auth": admitted(config["gateway"]["auth"])},
        }
        url = log._url if isinstance(log, PostgresLog) else log.path
        front = stack.enter_context(door(url, door_config, clock=system.service.clock))
        yield AtAnotherHost(stack.enter_context(front.live.client()))
    there = stack.enter_context(live.tools_there())
    for name, serve in (
        ("MCP over pipes", lambda key, wire: serve_stdio(system, key, wire)),
        ("MCP passed on", lambda key, wire: serve_stdio(there, key, wire)),
    ):
        piped = McpOverPipes(name, serve)
        stack.callback(piped.close)
        yield piped
