"""`POST /tools/invoke` as the original has it, and what it refuses before anything is parsed."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from intersession import ConfigError, MissingExtra, SessionSystem, echo
from intersession.gateway import app
from intersession.gateway.admission.attempts import FailedAttempts
from intersession.gateway.admission.limits import Limits
from intersession_actors.running.host.extras import imported
from support.doors.gateway_live import GATEWAY, READER, TOKEN, WAIT, WRITER, LiveGateway
from support.hostile import given, row_id, rows
from support.running import SEES_ALL, merged

OPEN = {"gateway": {"tools": {"allow": ["sessions_send", "sessions_spawn"]}}}
SHORT = Limits(check_s=0.02, keep_alive_s=0.05)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveGateway]:
    path = tmp_path_factory.mktemp("gateway") / "log.db"
    config = merged(SEES_ALL, GATEWAY, OPEN)
    agents = {"main": echo("main:"), "ops": echo("ops:")}
    with (
        SessionSystem(path, agents=agents, config=config) as system,
        LiveGateway(system, limits=SHORT) as live,
    ):
        for agent in agents:
            call = {"message": "hello", "agentId": agent, "idempotencyKey": f"first-{agent}"}
            run = system.gateway.call("agent", call)
            assert system.gateway.call("agent.wait", {"runId": run["runId"]})["status"] == "ok"
        yield live


def refused(response: httpx.Response) -> tuple[int, str]:
    body = response.json()
    assert body["ok"] is False
    return response.status_code, body["error"]["type"]


def forgive(gateway: LiveGateway) -> None:
    """Let earlier failures not be the point of this test."""
    gateway.door.attempts = FailedAttempts(time.monotonic)


def raw(gateway: LiveGateway, request: bytes) -> bytes:
    """Return the head of the answer to bytes that no client would send."""
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=WAIT) as opened:
        opened.sendall(request)
        return opened.recv(4096)


def test_a_tools_answer_comes_as_details_and_as_text(gateway: LiveGateway) -> None:
    response = gateway.invoke("sessions_list", {"limit": 5})

    body = response.json()
    assert response.status_code == 200
    assert body["ok"] is True
    assert body["result"]["details"]["count"] == 2
    (block,) = body["result"]["content"]
    assert block["type"] == "text"
    assert json.loads(block["text"]) == body["result"]["details"]


@pytest.mark.clause("VIS-6")
def test_the_operators_token_acts_as_the_session_it_names(gateway: LiveGateway) -> None:
    own = gateway.invoke("sessions_list", sessionKey="agent:ops:main").json()["result"]["details"]
    ours = gateway.invoke("sessions_list").json()["result"]["details"]

    assert {row["key"] for row in own["sessions"]} == {"agent:main:main", "main"}
    assert {row["key"] for row in ours["sessions"]} == {"main", "agent:ops:main"}


@pytest.mark.clause("VIS-6", "HIST-6")
def test_a_credential_acts_as_no_session_but_its_own(gateway: LiveGateway) -> None:
    key = "agent:ops:main"
    arguments = {"sessionKey": "main"}

    allowed = gateway.invoke("sessions_history", arguments, token=WRITER, sessionKey=key)
    claimed = gateway.invoke("sessions_history", arguments, token=WRITER, sessionKey="agent:main:main")
    absent = gateway.invoke("sessions_history", arguments, token=WRITER, sessionKey="agent:main:nowhere")
    nobody = gateway.invoke("sessions_history", arguments, token=WRITER)

    assert allowed.json()["result"]["details"]["sessionKey"] == "main"
    assert refused(claimed) == (403, "not_visible")
    assert claimed.json()["error"]["message"] == "session not visible: agent:main:main"
    assert absent.json()["error"]["message"] == "session not visible: agent:main:nowhere"
    assert refused(nobody) == (400, "invalid_request_error")


def test_a_credential_without_the_scope_starts_nothing(gateway: LiveGateway) -> None:
    message = {"sessionKey": "agent:ops:main", "message": "hi"}

    response = gateway.invoke("sessions_send", message, token=READER, sessionKey="agent:main:main")

    assert refused(response) == (403, "forbidden")


def test_a_send_over_http_waits_for_its_answer(gateway: LiveGateway) -> None:
    arguments = {"sessionKey": "agent:ops:main", "message": "over the wire", "timeoutSeconds": WAIT}

    response = gateway.invoke("sessions_send", arguments, sessionKey="agent:main:main")

    details = response.json()["result"]["details"]
    assert (details["status"], details["reply"]) == ("ok", "ops:over the wire")


def test_send_and_spawn_are_not_given_over_http_unless_allowed(tmp_path: Path) -> None:
    with (
        SessionSystem(tmp_path / "log.db", agents={"main": echo()}, config=GATEWAY) as system,
        LiveGateway(system) as live,
    ):
        for tool in ("sessions_send", "sessions_spawn", "cron"):
            assert refused(live.invoke(tool)) == (404, "not_found")
        for denied in ("sessions_list", "Sessions_*", "group:sessions"):
            system.reload(merged(GATEWAY, {"gateway": {"tools": {"deny": [denied]}}}))
            assert refused(live.invoke("sessions_list")) == (404, "not_found")
            with live.client() as client:
                error = client.request("tools.invoke", {"name": "sessions_list"})["error"]
            assert error["message"] == "name: sessions_list is not given here (gateway.tools.deny)"
        system.reload(merged(GATEWAY, {"gateway": {"tools": {"deny": ["sessions_*"]}}}))
        assert live.invoke("agents_list").status_code == 200


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"tool": "sessions_list", "extra": 1}', "invalid_request_error"),
        (b'{"args": {}}', "invalid_request_error"),
        (b'{"tool": " "}', "invalid_request_error"),
        (b'{"tool": 5}', "invalid_request_error"),
        (b'{"tool": "sessions_list", "args": []}', "invalid_request_error"),
        (b'{"tool": "sessions_list", "sessionKey": "agent:main:\\u0000"}', "invalid_request_error"),
        (b'{"tool": "sessions_list", "args": {"limit": "many"}}', "tool_error"),
        (b'{"tool": "sessions_history"}', "tool_error"),
        (b"", "invalid_request_error"),
        (b"[" * 100_000, "invalid_request_error"),
    ],
)
def test_what_is_no_call_is_refused(gateway: LiveGateway, body: bytes, kind: str) -> None:
    with gateway.http() as client:
        response = client.post("/tools/invoke", content=body, headers={"content-type": "application/json"})

    assert refused(response) == (400, kind)


@pytest.mark.clause("X5")
@pytest.mark.parametrize("row", [row for row in rows("N") if row["field"].startswith("request")], ids=row_id)
def test_hostile_bytes_are_refused_as_such(gateway: LiveGateway, row: dict[str, Any]) -> None:
    value = given(row)
    body = value if isinstance(value, bytes) else str(value).encode()

    with gateway.http() as client:
        try:
            response = client.post(
                "/tools/invoke", content=body, headers={"content-type": "application/json"}
            )
        except (httpx.WriteError, httpx.ReadError):
            assert len(body) > 8 << 20  # the connection was closed on a body that went on and on
            return

    assert response.status_code == (413 if len(body) > 8 << 20 else 400)


@pytest.mark.clause("X5")
@pytest.mark.parametrize("row", [row for row in rows("N") if row["field"] == "timeoutSeconds"], ids=row_id)
def test_hostile_timeouts_are_refused_as_such(gateway: LiveGateway, row: dict[str, Any]) -> None:
    message = {"sessionKey": "agent:ops:main", "message": "hi", "timeoutSeconds": given(row)}
    body = json.dumps({"tool": "sessions_send", "args": message})

    with gateway.http() as client:
        response = client.post("/tools/invoke", content=body, headers={"content-type": "application/json"})

    assert refused(response)[0] == 400


@pytest.mark.clause("X5", "X10")
@pytest.mark.parametrize(
    "header",
    [
        "Bearer tökën".encode(),  # G01
        b"Bearer ",  # G02
        b"Bearer",
        f"Basic {TOKEN}".encode(),  # G04
        TOKEN.encode(),
        f"Bearer {TOKEN}x".encode(),
        f"Bearer {TOKEN[:-1]}".encode(),
    ],
)
def test_what_is_not_the_token_lets_nobody_in(gateway: LiveGateway, header: bytes) -> None:
    forgive(gateway)

    answer = raw(
        gateway, b"GET /events HTTP/1.1\r\nhost: localhost\r\nauthorization: " + header + b"\r\n\r\n"
    )

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"\r\nwww-authenticate: Bearer\r\n" in answer


def test_the_scheme_is_read_in_any_case(gateway: LiveGateway) -> None:
    with gateway.http(None) as client:
        response = client.post(
            "/tools/invoke", json={"tool": "agents_list"}, headers={"authorization": f"bearer {TOKEN}"}
        )

    assert response.status_code == 200


@pytest.mark.clause("X5")
def test_a_token_in_the_address_lets_nobody_in(gateway: LiveGateway) -> None:
    with gateway.http(None) as client:
        response = client.post(f"/tools/invoke?token={TOKEN}", json={"tool": "agents_list"})  # G05

    assert refused(response) == (401, "unauthorized")


@pytest.mark.clause("X5")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),  # G11
        ({"host": "localhost.evil.example"}, 421),
        ({"host": "127.0.0.1@evil.example"}, 421),
        ({"host": ""}, 421),
        ({"origin": "null"}, 403),  # G07
        ({"origin": "http://localhost.evil.example"}, 403),  # G08
        ({"origin": "http://127.0.0.1:9999"}, 403),  # G10
        ({"host": "localhost", "origin": "http://localhost"}, 200),
        ({"host": "[::1]:80"}, 200),
    ],
)
def test_only_this_host_and_its_own_pages_are_served(
    gateway: LiveGateway, headers: dict[str, str], status: int
) -> None:
    with gateway.http() as client:
        response = client.post("/tools/invoke", json={"tool": "agents_list"}, headers=headers)

    assert response.status_code == status


@pytest.mark.clause("X5")
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_what_a_form_can_send_is_no_call(gateway: LiveGateway, kind: str) -> None:
    with gateway.http() as client:  # G22
        response = client.post(
            "/tools/invoke", content=b'{"tool": "agents_list"}', headers={"content-type": kind}
        )

    assert refused(response)[0] == 415


@pytest.mark.clause("X5")
def test_a_body_that_takes_too_long_is_given_up(gateway: LiveGateway) -> None:
    head = (  # G19
        f"POST /tools/invoke HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n"
        "content-type: application/json\r\ncontent-length: 50\r\n\r\n{"
    )

    with LiveGateway(gateway.door.system, limits=Limits(body_s=0.2)) as impatient:
        answer = raw(impatient, head.encode())

    assert answer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.clause("X5")
def test_a_length_that_is_too_large_is_refused_before_the_body(gateway: LiveGateway) -> None:
    head = (  # N20
        f"POST /tools/invoke HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n"
        f"content-type: application/json\r\ncontent-length: {64 << 20}\r\n\r\n"
    )

    answer = raw(gateway, head.encode())

    assert answer.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_only_post_calls_a_tool(gateway: LiveGateway, method: str) -> None:
    with gateway.http() as client:
        content = {"content": b"{}", "headers": {"content-type": "application/json"}}
        response = client.request(method, "/tools/invoke", **(content if method in {"PUT", "PATCH"} else {}))  # type: ignore[arg-type]

    assert refused(response) == (405, "method_not_allowed")
    assert "POST" in response.headers["allow"]


def test_liveness_and_the_description_need_no_token(gateway: LiveGateway) -> None:
    with gateway.http(None) as client:
        assert client.get("/healthz").json() == {"ok": True}
        document = client.get("/openapi.json").json()
        assert client.get("/events").status_code == 401

    own = {path for path in document["paths"] if not path.startswith("/debug/api/")}
    assert own == {"/tools/invoke", "/events", "/metrics", "/healthz", "/readyz"}
    assert TOKEN not in json.dumps(document)


@pytest.mark.clause("HOSTS-4")
def test_a_gateway_that_stops_or_can_t_read_its_log_is_not_ready(tmp_path: Path) -> None:
    with (
        SessionSystem(tmp_path / "log.db", agents={"main": echo()}, config=GATEWAY) as system,
        LiveGateway(system) as live,
        live.http(None) as client,
    ):
        well = client.get("/readyz")
        live.door.draining = True
        stopping = client.get("/readyz")
        live.door.draining = False
        system.log.close()
        away, alive = client.get("/readyz"), client.get("/healthz")

    assert [(one.status_code, one.json()) for one in (well, stopping, away)] == [
        (200, {"ready": True}),
        (503, {"ready": False}),
        (503, {"ready": False}),
    ]
    assert alive.status_code == 200


@pytest.mark.clause("X10")
def test_an_address_has_ten_wrong_tokens_a_minute(tmp_path: Path) -> None:
    with (
        SessionSystem(tmp_path / "log.db", agents={"main": echo()}, config=GATEWAY) as system,
        LiveGateway(system) as live,
    ):
        answers = [live.invoke("agents_list", token="wrong") for _ in range(12)]
        right = live.invoke("agents_list")
        again = live.invoke("agents_list", token="wrong")

    assert [answer.status_code for answer in answers] == [401] * 10 + [429] * 2
    assert 0 < int(answers[-1].headers["retry-after"]) <= 61
    assert (right.status_code, again.status_code) == (200, 429)  # C4


@pytest.mark.clause("X10")
def test_a_trusted_proxys_clients_have_ten_wrong_tokens_each(tmp_path: Path) -> None:
    config = merged(GATEWAY, {"gateway": {"trustedProxies": ["127.0.0.0/8", "10.0.0.1"]}})
    with (
        SessionSystem(tmp_path / "log.db", agents={"main": echo()}, config=config) as system,
        LiveGateway(system) as live,
        live.http("wrong") as http,
    ):

        def through(proxy: str) -> int:
            return http.get("/events", headers={"x-forwarded-for": proxy}).status_code

        one = [through("192.0.2.1") for _ in range(11)]
        made_up = [through(f"198.51.100.{number}, 192.0.2.1, 10.0.0.1") for number in range(2)]
        other = through("192.0.2.2")
        itself = http.get("/events").status_code

    assert one == [401] * 10 + [429]
    assert made_up == [429] * 2
    assert (other, itself) == (401, 401)  # C4


@pytest.mark.clause("X10")
def test_what_somebody_says_who_is_no_trusted_proxy_changes_nothing(tmp_path: Path) -> None:
    with (
        SessionSystem(tmp_path / "log.db", agents={"main": echo()}, config=GATEWAY) as system,
        LiveGateway(system) as live,
        live.http("wrong") as http,
    ):
        answers = [
            http.get("/events", headers={"x-forwarded-for": f"192.0.2.{number}"}).status_code
            for number in range(11)
        ]

    assert answers == [401] * 10 + [429]


@pytest.mark.clause("X5", "X10")
def test_a_new_token_counts_at_once(tmp_path: Path) -> None:
    with (
        SessionSystem(tmp_path / "log.db", agents={"main": echo()}, config=GATEWAY) as system,
        LiveGateway(system) as live,
    ):
        assert live.invoke("agents_list").status_code == 200
        system.reload(merged(GATEWAY, {"gateway": {"auth": {"token": "rotated"}}}))  # G20
        assert live.invoke("agents_list").status_code == 401
        assert live.invoke("agents_list", token="rotated").status_code == 200


@pytest.mark.clause("X5", "X11")
def test_what_a_stranger_writes_stays_one_line_of_the_log(
    gateway: LiveGateway, caplog: pytest.LogCaptureFixture
) -> None:
    forgive(gateway)
    secret = "a-canary-that-is-no-token"
    with gateway.http(secret) as client:  # G23
        client.get("/events", headers={"user-agent": "a\t2026-01-01 INFO owner approved " + "x" * 400})

    (record,) = [record for record in caplog.records if record.name == "intersession.gateway"]
    said = record.getMessage()
    assert "\\t" in said
    assert "\t" not in said
    assert len(said) < 350
    assert secret not in caplog.text


def test_a_gateway_without_a_token_does_not_start(tmp_path: Path) -> None:
    with SessionSystem(tmp_path / "log.db", agents={"main": echo()}) as system:
        with pytest.raises(ConfigError, match=r"gateway\.auth\.token: is missing"):
            app(system)
        assert app(system, GATEWAY) is not None


def test_a_missing_extra_is_named() -> None:
    with pytest.raises(MissingExtra, match=r"intersession\[gateway\]"):
        imported("intersession.gateway.not_there", what="the gateway", library="litestar", extra="gateway")
