"""Clients that are slow, silent, too many or too large: each is cut off in its time, and nobody else waits for it."""

import contextlib
import gzip
import json
import select
import socket
import struct
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from websockets.client import ClientProtocol
from websockets.exceptions import ConnectionClosed
from websockets.frames import Opcode
from websockets.uri import parse_uri

from intersession import SessionSystem, echo
from intersession.gateway.admission.limits import Limits
from support.doors.gateway_live import CONNECT, GATEWAY, TOKEN, WAIT, LiveGateway, WireClient
from support.paths import DOCS
from support.running import SEES_ALL, merged

Serve = Callable[[Limits], LiveGateway]
AUTHORIZED = f"authorization: Bearer {TOKEN}\r\n"


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionSystem]:
    path = tmp_path_factory.mktemp("slow") / "log.db"
    with SessionSystem(path, agents={"main": echo()}, config=merged(SEES_ALL, GATEWAY)) as made:
        yield made


@pytest.fixture
def serve(system: SessionSystem) -> Iterator[Serve]:
    with contextlib.ExitStack() as stack:
        yield lambda limits: stack.enter_context(LiveGateway(system, limits=limits))


@contextlib.contextmanager
def plain(live: LiveGateway) -> Generator[socket.socket]:
    """Open a connection of bytes, with small buffers."""
    with socket.socket() as opened:
        for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            opened.setsockopt(socket.SOL_SOCKET, buffer, 32 * 1024)
        opened.settimeout(WAIT)
        opened.connect(("127.0.0.1", live.port))
        yield opened


def rest(opened: socket.socket) -> bytes:
    """Return what still comes before the connection is cut; it fails if nobody cuts it."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while part := opened.recv(65536):
            found += part
    return found


def head(text: str, *, host: str = "localhost", length: int | None = None) -> bytes:
    body = "" if length is None else f"content-type: application/json\r\ncontent-length: {length}\r\n"
    return f"{text} HTTP/1.1\r\nhost: {host}\r\n{body}".encode()


def answered(live: LiveGateway) -> bool:
    return live.invoke("agents_list").status_code == 200


# --- HTTP


@pytest.mark.clause("L6")
@pytest.mark.parametrize("begun", [b"", b"GET /healthz HTTP/1.1\r\nhost: loc"])
def test_a_head_that_does_not_come_to_its_end_is_cut(serve: Serve, begun: bytes) -> None:
    live = serve(Limits(head_s=0.1))

    with plain(live) as opened:
        opened.sendall(begun)
        assert rest(opened) == b""
    assert answered(live)


@pytest.mark.clause("L6")
def test_so_is_the_second_head_of_a_connection(serve: Serve) -> None:
    live = serve(Limits(head_s=0.1))

    with plain(live) as opened:
        opened.sendall(head("GET /healthz") + b"\r\n")
        assert opened.recv(65536).startswith(b"HTTP/1.1 200 ")
        opened.sendall(b"GET /hea")
        assert b"HTTP/" not in rest(opened)


@pytest.mark.clause("L6", "X10")
@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("POST /tools/invoke", b"401"),
        ("GET /events", b"401"),
        ("GET /healthz", b"200"),
        ("GET /none", b"401"),
    ],
)
def test_a_stranger_holds_no_connection_with_a_body_that_nobody_reads(
    serve: Serve, request_line: str, status: bytes
) -> None:
    live = serve(Limits(head_s=0.1))

    with plain(live) as opened:
        opened.sendall(head(request_line, length=10**9) + b"\r\n")
        assert opened.recv(65536).startswith(b"HTTP/1.1 " + status)
        with contextlib.suppress(ConnectionError):
            opened.sendall(b"{")
        rest(opened)


@pytest.mark.clause("L6")
def test_a_body_that_was_answered_and_came_whole_leaves_its_connection_open(serve: Serve) -> None:
    live = serve(Limits(head_s=WAIT))

    with plain(live) as opened:
        for _ in range(2):
            opened.sendall(head("POST /tools/invoke", length=2) + b"\r\n")
            said = b""
            while not said.endswith(b"}}"):
                said += opened.recv(65536)
            assert said.startswith(b"HTTP/1.1 401 ")
            opened.sendall(b"{}")


@pytest.mark.clause("L6")
def test_a_body_that_comes_byte_by_byte_is_given_up(serve: Serve) -> None:
    live = serve(Limits(body_s=0.2))

    with plain(live) as opened:
        opened.sendall(head("POST /tools/invoke", length=10**6) + AUTHORIZED.encode() + b"\r\n")
        while not select.select([opened], [], [], 0.01)[0]:
            opened.sendall(b" ")
        assert rest(opened).startswith(b"HTTP/1.1 408 ")


@pytest.mark.clause("L6")
def test_who_does_not_read_an_answer_is_cut_off(serve: Serve) -> None:
    live = serve(Limits(stall_s=0.1))

    with plain(live) as opened:
        opened.sendall((head("GET /openapi.json") + b"\r\n") * 1000)
        cut_off = select.poll()
        cut_off.register(opened, 0)  # neither to read nor to write: only the end
        assert cut_off.poll(WAIT * 1000)
    assert answered(live)


@pytest.mark.clause("L6", "X10")
def test_who_is_silent_gives_way_when_there_is_no_room(serve: Serve) -> None:
    live = serve(Limits(connections=3, head_s=WAIT))

    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(plain(live)) for _ in range(20)]
        assert answered(live)
        assert rest(silent[0]) == b""


@pytest.mark.clause("L6")
def test_there_is_room_for_so_many_and_the_next_is_told_so(serve: Serve) -> None:
    live = serve(Limits(connections=2, reserve=0))

    with live.client() as one, live.client() as other:
        with plain(live) as opened:
            with contextlib.suppress(ConnectionError):
                opened.sendall(head("GET /healthz") + b"\r\n")
            assert rest(opened).startswith(b"HTTP/1.1 503 ")
        assert one.request("health")["ok"]
        assert other.request("health")["ok"]


@pytest.mark.clause("X5")
@pytest.mark.parametrize(
    "headers",
    [
        b"x: " + b"y" * 200_000 + b"\r\n",
        b"".join(b"x-%d: y\r\n" % number for number in range(20_000)),
        b"content-length: 1\r\ncontent-length: 2\r\n",
        b"content-length: -1\r\n",
        b"content-length: 1e3\r\n",
        b"content-length: " + b"9" * 5000 + b"\r\n",
        b"transfer-encoding: chunked\r\ncontent-length: 5\r\n",
        b"transfer-encoding: gzip, chunked\r\n",
        b"bad header\r\n",
        b"x: \x00\r\n",
    ],
)
def test_a_head_that_is_too_large_or_ambiguous_is_refused(serve: Serve, headers: bytes) -> None:
    live = serve(Limits(head_s=WAIT, body_s=0.2))

    with plain(live) as opened:
        with contextlib.suppress(ConnectionError):
            opened.sendall(
                head("POST /tools/invoke") + AUTHORIZED.encode() + b"content-type: application/json\r\n"
            )
            opened.sendall(headers + b"\r\n")
        said = rest(opened) if b"chunked\r\ncontent" not in headers else opened.recv(65536)

    assert said[:13] in {b"HTTP/1.1 400 ", b"HTTP/1.1 413 ", b"HTTP/1.1 501 ", b"HTTP/1.1 408 ", b""}, said


DEEP = "[" * 200_000 + "]" * 200_000
TOOLS = [
    "sessions_list",
    "sessions_history",
    "sessions_search",
    "agents_list",
    "sessions_send",
    "sessions_spawn",
]


@pytest.mark.clause("X5", "X7")
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    "value",
    [DEEP, "9" * 5000, "-1e400", "1" + "0" * 400 + ".5", '"\\ud800"', '{"a":' * 900 + "1" + "}" * 900],
)
def test_what_is_too_deep_or_too_large_a_number_is_refused_by_every_tool(
    shared: LiveGateway, tool: str, value: str
) -> None:
    body = f'{{"tool": "{tool}", "args": {{"limit": {value}}}}}'

    with shared.http() as client:
        response = client.post("/tools/invoke", content=body, headers={"content-type": "application/json"})
    with shared.client() as wire:
        wire.opened.send(
            f'{{"type":"req","id":"1","method":"tools.invoke","params":{{"name":"{tool}","args":{{"limit":{value}}}}}}}'
        )
        frame = wire.receive()

    assert response.status_code in {400, 404}
    if frame["ok"]:
        assert (frame["payload"]["status"], frame["payload"]["code"]) == ("error", "invalid_request")
    else:
        assert frame["error"]["code"] == "INVALID_REQUEST"


@pytest.mark.clause("X5")
def test_nothing_is_unpacked(shared: LiveGateway) -> None:
    body = gzip.compress(b" " * (64 << 20) + b'{"tool": "agents_list"}')
    headers = {"content-type": "application/json", "content-encoding": "gzip"}

    with shared.http() as client:
        response = client.post("/tools/invoke", content=body, headers=headers)

    assert response.status_code == 400


@pytest.fixture(scope="module")
def shared(system: SessionSystem) -> Iterator[LiveGateway]:
    with LiveGateway(system, limits=Limits(handshake_s=WAIT)) as live:
        yield live


# --- WebSocket


class RawWire:
    """A connection whose frames a test makes itself; nothing is read unless it is asked for."""

    def __init__(self, opened: socket.socket, address: str) -> None:
        self.opened = opened
        self.protocol = ClientProtocol(parse_uri(address.replace("http", "ws", 1)))
        self.protocol.send_request(self.protocol.connect())
        opened.sendall(b"".join(self.protocol.data_to_send()))
        answer = b""
        while b"connect.challenge" not in answer:
            answer += opened.recv(65536)

    def send(self, opcode: Opcode, data: bytes, *, fin: bool = True) -> None:
        self.opened.sendall(frame(opcode, data, fin=fin))

    def closed(self) -> int:
        """Return the code that the gateway closes with."""
        said = rest(self.opened)
        begin = said.rindex(b"\x88")
        return int.from_bytes(said[begin + 2 : begin + 4])


def frame(opcode: Opcode, data: bytes, *, fin: bool = True, rsv: int = 0) -> bytes:
    """Return a frame as a client sends it, masked with zeros; also one that no client would send."""
    first = (0x80 if fin else 0) | rsv | opcode
    length = (
        struct.pack("!BB", first, 0x80 | len(data))
        if len(data) < 126
        else struct.pack("!BBH", first, 0xFE, len(data))
    )
    return length + bytes(4) + data


@contextlib.contextmanager
def raw_wire(live: LiveGateway) -> Generator[RawWire]:
    with plain(live) as opened:
        yield RawWire(opened, live.address)


@pytest.mark.ci
@pytest.mark.clause("X8", "L6")
def test_pings_whose_answers_are_not_read_are_not_read_either(shared: LiveGateway) -> None:
    ping = frame(Opcode.PING, b"x" * 125)
    pings, sent, much = ping * 1000, 0, 32 << 20

    with raw_wire(shared) as wire:
        connect = {
            "type": "req",
            "id": "1",
            "method": "connect",
            "params": {**CONNECT, "auth": {"token": TOKEN}},
        }
        wire.send(Opcode.TEXT, json.dumps(connect).encode())
        assert b"hello-ok" in wire.opened.recv(65536)
        wire.opened.setblocking(False)
        while sent < much and select.select([], [wire.opened], [], 0.5)[1]:
            sent += wire.opened.send(pings[sent % len(ping) :])

    assert sent < much, "the answers went into memory"
    assert answered(shared)


@pytest.mark.clause("X8", "L6")
def test_a_stranger_has_no_use_for_many_pings(shared: LiveGateway) -> None:
    with raw_wire(shared) as wire:
        with contextlib.suppress(ConnectionError):
            wire.opened.sendall(frame(Opcode.PING, b"x") * (32 + 1))
        assert wire.closed() == 1008


@pytest.mark.clause("X8")
def test_a_frame_of_endless_empty_parts_is_too_much(shared: LiveGateway) -> None:
    with raw_wire(shared) as wire:
        wire.send(Opcode.TEXT, b"", fin=False)
        with contextlib.suppress(ConnectionError):
            wire.opened.sendall(frame(Opcode.CONT, b"", fin=False) * (10_000 + 10))
        assert wire.closed() == 1009


@pytest.mark.clause("X8")
@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(Opcode.TEXT, b"\xff\xfe"), 1007),
        (frame(Opcode.TEXT, b"\xe2\x82", fin=False) + frame(Opcode.CONT, b"("), 1007),
        (frame(Opcode.TEXT, b"x", rsv=0x40), 1002),
        (frame(Opcode.CONT, b"x"), 1002),
        (frame(Opcode.TEXT, b"x", fin=False) + frame(Opcode.TEXT, b"x"), 1002),
        (frame(Opcode.PING, b"x" * 126), 1002),
        (frame(Opcode.PING, b"x", fin=False), 1002),
        (b"\x83\x80\0\0\0\0", 1002),
        (b"\x81\x01x", 1002),
        (b"\x81\xff" + b"\x7f" + b"\xff" * 7 + b"\0\0\0\0", 1009),
        (frame(Opcode.TEXT, b"x" * 40_000, fin=False) + frame(Opcode.CONT, b"x" * 40_000), 1009),
    ],
)
def test_bytes_that_are_no_frames_end_the_connection_without_a_trace(
    shared: LiveGateway, caplog: pytest.LogCaptureFixture, sent: bytes, code: int
) -> None:
    with raw_wire(shared) as wire:
        wire.opened.sendall(sent)
        assert wire.closed() == code

    assert "Traceback" not in caplog.text
    assert [record for record in caplog.records if record.exc_info] == []


@pytest.mark.clause("X8")
def test_compression_is_not_taken_up(shared: LiveGateway) -> None:
    with shared.socket(compression="deflate") as opened:
        assert opened.response is not None
        assert "sec-websocket-extensions" not in opened.response.headers


@pytest.mark.clause("L6", "X10")
def test_who_does_not_say_who_they_are_gives_way_to_who_does(serve: Serve) -> None:
    live = serve(Limits(strangers=2, handshake_s=WAIT))

    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(live.socket()) for _ in range(3)]
        with live.client() as client:
            assert client.request("health")["ok"]
        WireClient(silent[0]).challenge()
        with pytest.raises(ConnectionClosed) as closed:
            silent[0].recv(timeout=WAIT)

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1013


@pytest.mark.clause("X11")
def test_a_token_in_the_address_of_a_connection_is_not_logged(
    shared: LiveGateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    url = shared.address.replace("http", "ws", 1)
    with socket.create_connection(("127.0.0.1", shared.port), timeout=WAIT) as opened:
        RawWire(opened, f"{url}/?token=a-canary").send(Opcode.TEXT, json.dumps({"id": "a-canary"}).encode())
        while b"invalid request frame" not in opened.recv(65536):
            pass

    said: list[Any] = [record.getMessage() for record in caplog.records if record.name != "websockets.client"]
    assert "a-canary" not in "\n".join(said)


def test_the_limits_are_the_ones_that_the_reference_names() -> None:
    limits = Limits()
    page = (DOCS / "reference" / "gateway.md").read_text(encoding="utf-8")

    for field in ("head_s", "body_s", "stall_s", "handshake_s"):
        assert f"{getattr(limits, field):g} s" in page
    assert f"{limits.connections} connections" in page
    assert f"{limits.strangers} " in page
