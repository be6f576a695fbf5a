"""`intersession serve` as a process: the original's configurations, an endpoint that is scripted, signals, restarts."""

import gc
import json
import signal
import socket
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from intersession import ConfigError, SessionSystem, load_config
from intersession.gateway.process.serve import given_config, with_token
from intersession.gateway.process.server import listen
from intersession_actors.outside.agents.configured import configured_agents
from intersession_events.stores.sqlite.writer_lock import holder_of
from support.doors.command_line import ran
from support.doors.gateway_live import CONNECT, WAIT, LiveGateway, WireClient
from support.doors.scripted_endpoint import Endpoint
from support.doors.served_gateway import CONFIGS, ForkedGateway, Served, config_for, token_of


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Any]:
    running: list[Served] = []

    def start(*arguments: object, fresh: bool = False) -> Served:
        gateway = Served if fresh else ForkedGateway
        served = gateway("--store", tmp_path / "log.db", *arguments)
        running.append(served)
        return served

    yield start
    for served in running:
        if served.child.poll() is None:
            served.child.kill()
            served.child.communicate(timeout=WAIT)


@pytest.mark.clause("CFG-1")
@pytest.mark.parametrize("name", ["base", "global", "restricted"])
def test_every_configuration_that_the_original_ran_with_makes_a_gateway(name: str, tmp_path: Path) -> None:
    given = given_config(CONFIGS / f"{name}.json")
    made = configured_agents(load_config(given).config)

    with (
        SessionSystem(tmp_path / "log.db", agents=made.agents, config=given) as system,
        LiveGateway(system) as live,
    ):
        listed = live.invoke("sessions_list", token=given["gateway"]["auth"]["token"])

    assert listed.json()["result"]["details"]["count"] == 0
    assert "main" in made.agents
    assert made.notices == ()


@pytest.mark.clause("CFG-1", "L7", "X11")
def test_it_serves_until_it_is_told_to_stop_and_keeps_its_secrets(tmp_path: Path, started: Any) -> None:
    path = CONFIGS / "base.json"
    served = started("--config", path, fresh=True)

    listed = served.invoke(token_of(path), "sessions_list", {})
    wrong = served.invoke("a-canary", "sessions_list", {})
    holder = holder_of(str(tmp_path / "log.db"))
    served.signal(signal.SIGINT)
    code, said = served.end()
    after = holder_of(str(tmp_path / "log.db"))

    assert (listed.status_code, wrong.status_code) == (200, 401)
    assert served.agents == "main, ops, research"
    assert holder is not None
    assert (holder.pid, holder.gateway) == (served.child.pid, served.address)
    assert code == 0
    assert after is not None
    assert after.gateway is None
    assert not [secret for secret in (token_of(path), "dummy-key", "a-canary") if secret in said]


@pytest.mark.clause("GATE-1", "L7")
def test_an_agents_run_asks_its_configured_model(
    tmp_path: Path, endpoint: ThreadingHTTPServer, started: Any
) -> None:
    path = config_for(tmp_path, endpoint)
    served = started("--config", path)
    message = {"sessionKey": "agent:research:main", "message": "what is new?", "timeoutSeconds": WAIT}

    answer = served.invoke(token_of(path), "sessions_send", message, sessionKey="agent:main:main")

    details = answer.json()["result"]["details"]
    assert details["status"] == "ok"
    assert details["reply"].startswith("model says: ")
    assert "what is new?" in details["reply"]
    said = ran(
        "send", "and now?", "--agent", "ops", "--config", path, "--store", tmp_path / "log.db", "--json"
    )
    refused = ran("send", "and now?", "--agent", "ops", "--store", tmp_path / "log.db", "--json")
    assert said.json["status"] == "ok", said
    assert "and now?" in said.json["reply"]
    assert (refused.exit_code, refused.json["code"]) == (1, "forbidden")
    asked = Endpoint.asked[0]
    assert (asked["path"], asked["model"], asked["key"]) == (
        "/v1/chat/completions",
        "fake-1",
        "Bearer dummy-key",
    )


@pytest.mark.ci
@pytest.mark.clause("L7", "GATE-3", "O7")
def test_a_run_that_is_cut_off_goes_on_after_the_restart(
    tmp_path: Path, endpoint: ThreadingHTTPServer, started: Any
) -> None:
    path = config_for(tmp_path, endpoint)
    given = json.loads(path.read_text(encoding="utf-8")) | {"runs": {"shutdownGraceSeconds": 1}}
    path.write_text(json.dumps(given), encoding="utf-8")
    served = started("--config", path)
    run_id = agent(served.address, token_of(path), "hold on", "k1")["runId"]
    assert Endpoint.reached.wait(WAIT)

    served.signal()
    code, _ = served.end()
    Endpoint.go_on.set()
    again = started("--config", path)
    waited = wait(again.address, token_of(path), run_id)

    assert code == 0
    assert waited["status"] == "ok"
    assert len(Endpoint.asked) == 2


@pytest.mark.nightly
@pytest.mark.clause("L7", "GATE-3")
def test_a_hundred_open_runs_are_left_in_time_and_gone_on_with(
    tmp_path: Path, endpoint: ThreadingHTTPServer, started: Any
) -> None:
    path = config_for(tmp_path, endpoint)
    given = json.loads(path.read_text(encoding="utf-8")) | {"runs": {"shutdownGraceSeconds": 2}}
    path.write_text(json.dumps(given), encoding="utf-8")
    token = token_of(path)
    served = started("--config", path)
    with wire(served.address, token) as client:
        runs = [
            client.request("agent", begun("hold on", f"k{number}", f"agent:main:direct:{number}"))["payload"]
            for number in range(100)
        ]
        assert Endpoint.reached.wait(WAIT)
        began = time.monotonic()
        served.signal()
        assert client.event("shutdown")
        refused = client.request("agent", begun("too late", "k100", "agent:main:direct:100"))
        code, said = served.end()
        took = time.monotonic() - began
    Endpoint.go_on.set()
    again = started("--config", path)
    with wire(again.address, token) as client:
        ends = Counter(
            client.request("agent.wait", {"runId": run["runId"], "timeoutMs": 20_000})["payload"]["status"]
            for run in runs
        )

    assert {run["status"] for run in runs} == {"accepted"}
    assert (refused["ok"], refused["error"]["details"]["code"]) == (False, "unavailable")
    assert (code, "Traceback" in said) == (0, False)
    assert took < WAIT, "the grace is two seconds; this bound is for a machine that is busy"
    assert ends == {"ok": 100}


@pytest.mark.clause("L7")
def test_a_second_signal_ends_it_at_once(tmp_path: Path, endpoint: ThreadingHTTPServer, started: Any) -> None:
    path = config_for(tmp_path, endpoint)
    given = json.loads(path.read_text(encoding="utf-8")) | {"runs": {"shutdownGraceSeconds": 600}}
    path.write_text(json.dumps(given), encoding="utf-8")
    served = started("--config", path)
    agent(served.address, token_of(path), "hold on", "k1")
    assert Endpoint.reached.wait(WAIT)

    served.signal()
    refused = httpx.Client(trust_env=False, verify=False)  # noqa: S501 - there is no TLS here
    with refused:
        while True:
            response = refused.post(
                f"{served.address}/tools/invoke",
                json={"tool": "agents_list"},
                headers={"authorization": f"Bearer {token_of(path)}"},
            )
            if response.status_code == 503:
                break
    served.signal()
    code, _ = served.end()

    assert code == 128 + signal.SIGTERM


@pytest.mark.clause("X10", "CFG-4")
def test_a_changed_configuration_is_taken_and_a_bad_one_is_not(
    tmp_path: Path, endpoint: ThreadingHTTPServer, started: Any
) -> None:
    path = config_for(tmp_path, endpoint)
    old = token_of(path)
    served = started("--config", path)
    changed = json.loads(path.read_text(encoding="utf-8"))
    changed["gateway"]["auth"]["token"] = "rotated"
    with connect(served.address.replace("http", "ws", 1), proxy=None) as opened:
        client = WireClient(opened)
        client.challenge()
        assert client.connect(old)["ok"]
        path.write_text(json.dumps(changed), encoding="utf-8")
        with pytest.raises(ConnectionClosed, match="credential revoked"):
            client.event("nothing has this name")
    answers = [served.invoke(token, "agents_list", {}).status_code for token in ("rotated", old)]
    path.write_text("{ this is no configuration", encoding="utf-8")
    while (error := status(served.address, "rotated")["configError"]) is None:
        pass

    assert answers == [200, 401]
    assert "openclaw.json" in error
    assert served.invoke("rotated", "agents_list", {}).status_code == 200


def test_it_does_not_start_without_a_token(tmp_path: Path) -> None:
    missing = ran("serve", "--store", tmp_path / "log.db", "--port", "0")

    assert missing.exit_code == 1
    assert "gateway.auth.token" in missing.err


def test_the_token_may_come_from_the_environment(tmp_path: Path) -> None:
    outside = {"INTERSESSION_GATEWAY_TOKEN": "from-outside"}
    path = tmp_path / "own.json"
    path.write_text('{"gateway": {"auth": {"token": "own"}}}', encoding="utf-8")

    assert given_config(None, outside)["gateway"]["auth"]["token"] == "from-outside"
    assert given_config(path, outside)["gateway"]["auth"]["token"] == "own"
    assert with_token(load_config({}).config, outside).gateway.auth.token == "from-outside"
    assert given_config(None, {}) == {}


@pytest.mark.clause("KEY-9")
@pytest.mark.parametrize(
    ("models", "said"),
    [
        ({}, "models.providers.fake is not configured"),
        ({"fake": {"baseUrl": "http://127.0.0.1:1", "api": "google-generative-ai"}}, "is not spoken here"),
    ],
)
def test_an_agent_without_an_endpoint_is_named(models: dict[str, Any], said: str) -> None:
    config = {"agents": {"defaults": {"model": "fake/one"}}, "models": {"providers": models}}

    made = configured_agents(load_config(config).config)

    assert made.agents == {}
    assert said in made.notices[0]


def test_a_provider_without_an_address_is_refused() -> None:
    config = {"agents": {"defaults": {"model": "fake/one"}}, "models": {"providers": {"fake": {}}}}

    with pytest.raises(ConfigError, match=r"models\.providers\.fake\.baseUrl"):
        configured_agents(load_config(config).config)


@contextmanager
def wire(address: str, token: str) -> Generator[WireClient]:
    with connect(address.replace("http", "ws", 1), proxy=None) as opened:
        client = WireClient(opened)
        client.challenge()
        assert client.request("connect", {**CONNECT, "auth": {"token": token}})["ok"]
        yield client


def begun(message: str, key: str, session: str) -> dict[str, Any]:
    return {"message": message, "idempotencyKey": key, "sessionKey": session}


def ask(address: str, token: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    with connect(address.replace("http", "ws", 1), proxy=None) as opened:
        client = WireClient(opened)
        client.challenge()
        assert client.request("connect", {**CONNECT, "auth": {"token": token}})["ok"]
        answer: dict[str, Any] = client.request(method, params)["payload"]
        return answer


def agent(address: str, token: str, message: str, key: str) -> dict[str, Any]:
    return ask(address, token, "agent", {"message": message, "idempotencyKey": key})


def wait(address: str, token: str, run_id: str) -> dict[str, Any]:
    return ask(address, token, "agent.wait", {"runId": run_id, "timeoutMs": 20_000})


def status(address: str, token: str) -> dict[str, Any]:
    return ask(address, token, "status", {})


def test_the_end_of_an_answer_does_not_wait_for_its_beginning_to_be_acknowledged() -> None:
    with listen("127.0.0.1", 0) as listening:
        listening.setblocking(True)
        with socket.create_connection(listening.getsockname(), WAIT), listening.accept()[0] as accepted:
            at_once = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    assert at_once


def count_frozen(_turn: object) -> str:
    return str(gc.get_freeze_count())


OF_A_HOST = {"main": count_frozen}


@pytest.mark.clause("L9")
def test_what_a_gateway_starts_with_is_left_out_of_the_search_for_garbage(
    tmp_path: Path, started: Any
) -> None:
    config = tmp_path / "gateway.json"
    gateway = {"auth": {"token": "a-token"}, "tools": {"allow": ["sessions_send"]}}
    config.write_text(json.dumps({"gateway": gateway}), encoding="utf-8")
    served = started("--config", config, "--agents", f"{__name__}:OF_A_HOST")

    asked = {"agentId": "main", "message": "How many?", "timeoutSeconds": WAIT}
    answer = served.invoke("a-token", "sessions_send", asked).json()

    assert int(answer["result"]["details"]["reply"]) > 10_000
