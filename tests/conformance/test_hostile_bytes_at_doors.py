"""Bytes that are no request, at every door that reads bytes: refused as such, and the next one is served (X5)."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import msgspec
import pytest
from websockets.exceptions import ConnectionClosed

from intersession import SessionSystem
from intersession.gateway.process.mcp_mount import MCP_PATH
from intersession.mcp.stdio import serve_stdio
from support.doors.every import INITIALIZE
from support.doors.gateway_live import CONNECT, GATEWAY, READER, TOKEN, LiveGateway, WireClient, with_mcp
from support.doors.mcp_clients import piped
from support.hostile import given, row_id, rows
from support.running import WAIT

BODIES = [row for row in rows("N") if row["field"] in {"request body", "request bytes"}]
LARGEST = 8 << 20
MCP = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def body_of(row: dict[str, Any]) -> bytes:
    value = given(row)
    return value if isinstance(value, bytes) else str(value).encode()


def pushed(client: WireClient, body: bytes) -> None:
    """Send a frame and wait for what comes of it."""
    client.opened.send(body)
    client.receive()


@pytest.fixture(scope="module")
def system() -> Iterator[SessionSystem]:
    with SessionSystem(":memory:", config=GATEWAY) as made:
        yield made


@pytest.fixture(scope="module")
def gateway(system: SessionSystem) -> Iterator[LiveGateway]:
    with with_mcp(system) as live:
        yield live


@pytest.mark.clause("X5", "X7")
@pytest.mark.parametrize("row", BODIES, ids=row_id)
def test_a_frame_that_is_no_request_is_refused(gateway: LiveGateway, row: dict[str, Any]) -> None:
    body = body_of(row)
    with gateway.client() as client:
        if len(body) > LARGEST:
            with pytest.raises(ConnectionClosed) as closed:
                pushed(client, body)
            assert closed.value.rcvd is None or closed.value.rcvd.code == 1009
        else:
            client.opened.send(body)
            refused = client.answer("invalid")
            assert refused["error"]["code"] == "INVALID_REQUEST"
            assert client.request("health")["ok"]
    with gateway.client() as another:
        assert another.request("health")["ok"]


@pytest.mark.clause("X5", "X7")
@pytest.mark.parametrize("row", BODIES, ids=row_id)
def test_a_body_that_is_no_message_is_refused_by_mcp(gateway: LiveGateway, row: dict[str, Any]) -> None:
    body = body_of(row)
    with gateway.http() as client:
        with suppress(httpx.WriteError, httpx.ReadError):  # closed on a body that goes on and on
            refused = client.post(MCP_PATH, content=body, headers=MCP)
            assert refused.status_code == (413 if len(body) > LARGEST else 400)
        served = client.post(MCP_PATH, content=INITIALIZE, headers=MCP)

    assert served.status_code == 200


@pytest.mark.clause("X5", "X7")
@pytest.mark.parametrize("row", BODIES, ids=row_id)
def test_a_line_that_is_no_message_is_refused_by_mcp(system: SessionSystem, row: dict[str, Any]) -> None:
    wire, asked, answers = piped()

    def serving() -> None:
        with wire.source, wire.sink:
            serve_stdio(system, "agent:main:main", wire)

    thread = threading.Thread(target=serving, daemon=True)
    thread.start()
    with answers:
        with asked:
            asked.write(body_of(row) + b"\n")
            refused = msgspec.json.decode(answers.readline())
            asked.write(INITIALIZE + b"\n")
            served = msgspec.json.decode(answers.readline())
        thread.join(WAIT)

    assert refused["id"] is None
    assert refused["error"]["code"] in {-32700, -32600}
    assert served["result"]["serverInfo"]["name"] == "intersession"


@pytest.mark.clause("X5", "X10")
@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({"authorization": "Bearer tökën".encode()}, "", 401),  # G01
        ({"authorization": b"Bearer"}, "", 401),  # G02
        ({"authorization": f"Basic {TOKEN}".encode()}, "", 401),  # G04
        ({"authorization": b""}, f"?token={TOKEN}", 401),  # G05
        ({"origin": b"null"}, "", 403),  # G07
        ({"origin": b"http://localhost.evil.example"}, "", 403),  # G08
        ({"origin": b"http://127.0.0.1:9999"}, "", 403),  # G10
        ({"host": b"evil.example"}, "", 421),  # G11
        ({"content-type": b"text/plain"}, "", 415),  # G22
        (
            {"intersession-session": b"agent:victim:main"},
            "",
            200,
        ),  # K37: let in, and told that there is no such session
        ({}, "", 200),
    ],
)
def test_who_may_not_come_in_may_not_by_mcp_either(
    gateway: LiveGateway, headers: dict[str, bytes], query: str, status: int
) -> None:
    all_headers = httpx.Headers(MCP)
    for name, value in headers.items():
        all_headers[name] = value.decode("latin-1")

    with gateway.http() as client:
        answer = client.post(MCP_PATH + query, content=LIST, headers=all_headers)

    assert answer.status_code == status
    assert ("sessions_list" in answer.text) == (headers == {})
    if "intersession-session" in headers:
        assert "session not visible: agent:victim:main" in answer.text


LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'


@pytest.mark.clause("PROV-2", "VIS-6", "X5")
def test_what_a_client_says_of_itself_gives_it_nothing(gateway: LiveGateway) -> None:
    """P16."""
    said = {**CONNECT["client"], "id": "acp", "mode": "owner"}
    send = {"name": "sessions_send", "args": {"agentId": "main", "message": "hi", "timeoutSeconds": 0}}
    with gateway.socket() as opened:
        client = WireClient(opened)
        client.challenge()
        hello = client.connect(READER, client=said)
        refused = client.request("tools.invoke", send)

    assert hello["ok"]
    assert refused["error"]["message"] == "missing scope: operator.write"
