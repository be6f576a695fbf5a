"""Commands beside a gateway prove that they know its token instead of sending it, and so does the gateway (C1)."""

import fcntl
import json
import os
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from intersession import SessionSystem, ToolRefused, echo
from intersession.gateway.admission.proof import Handshake, token_digest
from intersession.gateway.protocol.client import GatewayClient
from intersession.gateway.protocol.line import Line
from support.doors.command_line import ran
from support.doors.gateway_live import CONNECT, GATEWAY, TOKEN, WAIT, WRITER, LiveGateway, WireClient
from support.doors.tls import TlsProxy
from support.loopback import free_port
from support.running import QUIET, SEES_ALL, merged
from support.soaking import until

CONFIG = merged(SEES_ALL, QUIET, GATEWAY)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveGateway]:
    path = tmp_path_factory.mktemp("proof") / "log.db"
    with (
        SessionSystem(path, agents={"main": echo(), "ops": echo()}, config=CONFIG) as system,
        LiveGateway(system) as live,
    ):
        yield live


Imposter = Callable[[ServerConnection, list[str]], None]


@contextmanager
def listening(imposter: Imposter) -> Generator[tuple[str, list[str]]]:
    """Listen as somebody who would like to have the token; yields the address, and all frames that were heard."""
    heard: list[str] = []

    def handle(opened: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            imposter(opened, heard)

    with serve(handle, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.socket.getsockname()[1]}", heard
        finally:
            server.shutdown()
            thread.join(WAIT)


def claims_to_be_the_gateway(opened: ServerConnection, heard: list[str]) -> None:
    opened.send(
        json.dumps({"type": "event", "event": "connect.challenge", "payload": {"nonce": "n", "ts": 1}})
    )
    for frame in opened:
        heard.append(str(frame))
        answer = {"type": "hello-ok", "auth": {"proof": json.loads(frame)["params"]["auth"]["proof"]}}
        opened.send(json.dumps({"type": "res", "id": json.loads(frame)["id"], "ok": True, "payload": answer}))


def passing_on(live: LiveGateway) -> Imposter:
    def passes_on(opened: ServerConnection, heard: list[str]) -> None:
        with connect(live.address.replace("http", "ws", 1), proxy=None) as gateway:
            opened.send(gateway.recv())
            for frame in opened:
                heard.append(str(frame))
                gateway.send(frame)
                opened.send(gateway.recv())

    return passes_on


@pytest.mark.parametrize(("token", "may"), [(TOKEN, True), (WRITER, False)])
def test_who_knows_a_token_is_let_in_with_its_rights(gateway: LiveGateway, token: str, may: bool) -> None:
    with GatewayClient(gateway.address, token) as client:
        client.call("health")
        if may:
            client.call("config.get")
        else:
            with pytest.raises(ToolRefused, match="the operator's"):
                client.call("config.get")


def test_who_knows_no_token_is_not(gateway: LiveGateway) -> None:
    with pytest.raises(ToolRefused, match="token mismatch") as refused:
        GatewayClient(gateway.address, "guessed")

    assert refused.value.code == "forbidden"


def test_a_listener_that_only_claims_to_be_the_gateway_hears_neither_token_nor_message() -> None:
    with (
        listening(claims_to_be_the_gateway) as (address, heard),
        pytest.raises(ToolRefused, match="did not prove"),
    ):
        GatewayClient(address, TOKEN)

    assert len(heard) == 1
    assert TOKEN not in heard[0]


def goes_at_once(opened: ServerConnection, heard: list[str]) -> None:
    """Go as a gateway does that stops between a connection and its proof."""
    heard.append("came")
    opened.close()


def test_a_gateway_that_went_before_it_proved_anything_is_away_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with listening(goes_at_once) as (address, heard):
        with pytest.raises(ToolRefused, match="closed the connection") as refused:
            GatewayClient(address, TOKEN)
        line = Line(lambda: [address, f"http://127.0.0.1:{free_port()}"], TOKEN)
        line.open()
        until(lambda: len(heard) > 3)
        line.close()

    assert refused.value.code == "unavailable"
    assert not line.is_connected
    told = [one.getMessage() for one in caplog.records if one.name == "intersession.line"]
    assert len(told) == len({*told}) >= 2  # of each address once, though they are tried in turn


def test_a_listener_between_both_gets_nowhere_by_passing_on_what_it_hears(gateway: LiveGateway) -> None:
    with (
        listening(passing_on(gateway)) as (address, heard),
        pytest.raises(ToolRefused, match="token mismatch"),
    ):
        GatewayClient(address, TOKEN)

    assert len(heard) == 1
    assert TOKEN not in heard[0]


def test_a_proof_is_good_for_its_own_connection_alone(gateway: LiveGateway) -> None:
    with gateway.socket() as first, gateway.socket() as second:
        nonce = WireClient(first).challenge()["payload"]["nonce"]
        handshake = Handshake(challenge=nonce, nonce="mine", server=f"127.0.0.1 {gateway.port}")
        auth = {"proof": handshake.proof(token_digest(TOKEN.encode()), "client"), "nonce": "mine"}
        again = WireClient(second)
        again.challenge()
        refused = again.request("connect", CONNECT | {"auth": auth})
        taken = WireClient(first).request("connect", CONNECT | {"auth": auth})

    assert refused["error"]["details"]["code"] == "AUTH_TOKEN_MISMATCH"
    said = taken["payload"]["auth"]["proof"]
    assert handshake.proves(token_digest(TOKEN.encode()), "gateway", said)
    assert said != auth["proof"]


def test_a_proof_through_a_proxy_is_none(gateway: LiveGateway) -> None:
    with gateway.socket(additional_headers={"x-forwarded-for": "192.0.2.7"}) as opened:
        client = WireClient(opened)
        nonce = client.challenge()["payload"]["nonce"]
        handshake = Handshake(challenge=nonce, nonce="mine", server=f"127.0.0.1 {gateway.port}")
        auth = {"proof": handshake.proof(token_digest(TOKEN.encode()), "client"), "nonce": "mine"}
        refused = client.request("connect", CONNECT | {"auth": auth})

    assert refused["error"]["details"]["code"] == "AUTH_TOKEN_MISSING"


# --- the commands

SEND = ("send", "the message", "--agent", "main", "--timeout", "0", "--json")


def lock(path: Path, address: str, *, held: bool) -> int:
    file = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    os.pwrite(file, msgspec.json.encode({"pid": os.getpid(), "epoch": 1, "gateway": address}), 0)
    if held:
        fcntl.flock(file, fcntl.LOCK_EX)
    return file


@pytest.mark.parametrize(
    "command",
    [SEND, ("import", "openclaw", ".", "--json"), ("mcp", "--as-session", "main")],
    ids=lambda command: command[0],
)
def test_commands_say_nothing_to_an_address_that_a_dead_writer_left(
    tmp_path: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERSESSION_GATEWAY_TOKEN", TOKEN)
    with socket.create_server(("127.0.0.1", 0)) as imposter:
        imposter.setblocking(False)
        address = f"http://127.0.0.1:{imposter.getsockname()[1]}"
        os.close(lock(tmp_path / "log.db", address, held=False))
        ran(*command, "--store", str(tmp_path / "log.db"))
        with pytest.raises(BlockingIOError):
            imposter.accept()


@pytest.mark.parametrize(
    "command", [SEND, ("import", "openclaw", ".", "--json")], ids=lambda command: command[0]
)
def test_commands_give_no_token_to_a_listener_that_has_the_lock(
    tmp_path: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERSESSION_GATEWAY_TOKEN", TOKEN)
    SessionSystem(tmp_path / "log.db").close()
    with listening(claims_to_be_the_gateway) as (address, heard):
        held = lock(tmp_path / "log.db", address, held=True)
        done: Any = ran(*command, "--store", str(tmp_path / "log.db"))
        os.close(held)

    assert (done.exit_code, done.json["code"]) == (1, "forbidden")
    assert "did not prove" in done.json["error"]
    assert TOKEN not in "".join(heard)
    assert "the message" not in "".join(heard)


def test_a_client_that_can_not_speak_tls_says_what_to_do(gateway: LiveGateway, tmp_path: Path) -> None:
    proxy = TlsProxy(gateway.port, tmp_path)
    with proxy.running(), pytest.raises(ToolRefused, match="SSL_CERT_FILE names") as untrusted:
        GatewayClient(proxy.address, TOKEN)
    with pytest.raises(ToolRefused, match="give its http:// address") as plain:
        GatewayClient(gateway.address.replace("http", "https"), TOKEN)

    assert (untrusted.value.code, plain.value.code) == ("unavailable", "unavailable")


@pytest.mark.clause("STBY-6")
def test_to_an_announced_address_the_token_is_proven_by_the_name_that_is_advertised_and_not_sent(
    gateway: LiveGateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log names a gateway behind TLS: whoever can write it could name another one, with a certificate as good."""
    proxy = TlsProxy(gateway.port, tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(proxy.certificate))
    system = gateway.door.system
    with proxy.running():
        with pytest.raises(ToolRefused, match="token mismatch"):
            GatewayClient(proxy.address, TOKEN, announced=True)
        try:
            system.reload(merged(CONFIG, {"gateway": {"advertise": proxy.address}}))
            with GatewayClient(proxy.address, TOKEN, announced=True) as client:
                client.call("config.get")
            with GatewayClient(gateway.address, TOKEN, announced=True) as client:
                client.call("health")
            host = {"host": proxy.address.replace("https://localhost", "agents.internal")}
            with gateway.http() as http:
                misdirected = http.post("/tools/invoke", json={"tool": "sessions_list"}, headers=host)
            system.reload(merged(CONFIG, {"gateway": {"advertise": "https://agents.internal"}}))
            with gateway.http() as http:
                found = http.post("/tools/invoke", json={"tool": "sessions_list"}, headers=host)
        finally:
            system.reload(CONFIG)

    assert TOKEN.encode() not in proxy.heard
    assert (misdirected.status_code, found.status_code) == (421, 200)
