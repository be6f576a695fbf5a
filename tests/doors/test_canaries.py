"""A secret that is put in anywhere comes out nowhere but in the log of whoever owns it (X11)."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from intersession import SessionSystem, echo
from intersession.gateway.admission.limits import Limits
from intersession_actors.rules.errors import ConfigError
from support.doors.command_line import ran
from support.doors.gateway_live import CONNECT, TOKEN, WRITER, LiveGateway, WireClient
from support.doors.served_gateway import Served
from support.running import SEES_ALL, WAIT, merged

NAMES = (
    "gateway",
    "reader",
    "writer",
    "model",
    "header",
    "channel",
    "env",
    "argument",
    "message",
    "attachment",
    "idempotency",
    "query",
    "wrong",
    "agent-says",
    "label",
)


def canary(name: str) -> str:
    """Return a secret that looks like one, and like no other."""
    return f"sk-canary{name.replace('-', '')}0123456789abcdefghijklmn"


CANARIES = {name: canary(name) for name in NAMES}

CONFIG: dict[str, Any] = {
    **merged(SEES_ALL, {"tools": {"sessions_spawn": {"attachments": {"enabled": True}}}}),
    "agents": {
        "defaults": {"model": "fake/one", "subagents": {"allowAgents": ["*"]}},
        "list": [{"id": "main", "default": True}, {"id": "ops"}],
    },
    "models": {
        "providers": {
            "fake": {
                "baseUrl": "http://127.0.0.1:9/v1",
                "api": "openai-completions",
                "apiKey": CANARIES["model"],
                "headers": {"x-more": CANARIES["header"]},
            }
        }
    },
    "channels": {
        "telegram": {"botToken": CANARIES["channel"], "accounts": {"a": {"appKey": "${CANARY_ENV}"}}}
    },
    "gateway": {
        "port": 0,
        "auth": {
            "token": CANARIES["gateway"],
            "credentials": [
                {"name": "reader", "token": CANARIES["reader"], "actAs": ["agent:ops:*"]},
                {
                    "name": "writer",
                    "token": CANARIES["writer"],
                    "actAs": ["agent:main:*"],
                    "scopes": ["operator.read", "operator.write"],
                },
            ],
        },
        "tools": {"allow": ["sessions_send", "sessions_spawn"]},
    },
}


def found(text: str, *but: str) -> list[str]:
    """Return the names of the canaries in a text."""
    return [name for name, secret in CANARIES.items() if secret in text and name not in but]


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SessionSystem]:
    monkeypatch.setenv("CANARY_ENV", CANARIES["env"])
    agents = {"main": echo("main:"), "ops": echo("ops:")}
    with SessionSystem(tmp_path / "log.db", agents=agents, config=CONFIG) as made:
        yield made


def fails(_turn: Any) -> str:
    raise RuntimeError(f"the endpoint refused the key {CANARIES['agent-says']}")


def use(live: LiveGateway) -> list[str]:
    """Put every canary in where a client can; return all that was answered to somebody else than it belongs to."""
    seen: list[str] = []
    with live.http(CANARIES["writer"]) as client:
        for arguments in (
            {
                "tool": "sessions_send",
                "args": {"sessionKey": "agent:main:x", "password": CANARIES["argument"]},
            },
            {"tool": "sessions_history", "args": {"sessionKey": "main", "before": CANARIES["argument"]}},
            {"tool": CANARIES["argument"], "args": {}},
        ):
            client.post("/tools/invoke", json={**arguments, "sessionKey": "agent:main:main"})
        client.get(f"/events?after=x&token={CANARIES['query']}")
        client.get(f"/none?token={CANARIES['query']}", headers={"x-api-key": CANARIES["query"]})
    with live.http(CANARIES["wrong"]) as client:
        seen.append(client.get("/events").text)
    with live.http(None) as client:
        seen += [client.get("/openapi.json").text, client.get("/healthz").text]
    with live.client(CANARIES["writer"]) as wire:
        secret = f"my key is {CANARIES['message']}, API_KEY={CANARIES['label']}"
        first = {
            "sessionKey": "agent:main:main",
            "message": secret,
            "idempotencyKey": CANARIES["idempotency"],
        }
        run = wire.request("agent", first)["payload"]["runId"]
        assert wire.request("agent.wait", {"runId": run})["payload"]["status"] == "ok"
        spawn = {
            "task": "read it",
            "attachments": [{"name": "a.env", "content": f"TOKEN={CANARIES['attachment']}"}],
        }
        called = {"name": "sessions_spawn", "args": spawn, "sessionKey": "agent:main:main"}
        seen.append(json.dumps(wire.request("tools.invoke", called)))
        wire.opened.send(json.dumps({"type": "req", "id": "x", "method": CANARIES["argument"]}))
    return seen


def others_view(live: LiveGateway) -> list[str]:
    """Return all that a credential of another agent can get hold of."""
    seen: list[str] = []
    with live.client(CANARIES["reader"]) as wire:
        seen.append(json.dumps(wire.hello))
        for method, params in (
            ("status", {}),
            ("health", {}),
            ("sessions.list", {"includeLastMessage": True, "includeDerivedTitles": True}),
            ("agents.list", {}),
            ("models.list", {}),
            ("chat.history", {"sessionKey": "agent:main:main"}),
            ("sessions.preview", {"keys": ["agent:main:main", "agent:ops:main"]}),
        ):
            seen.append(json.dumps(wire.request(method, params)))
        seen.append(json.dumps(wire.events))
    with live.http(CANARIES["reader"]) as client:
        history = {"sessionKey": "agent:main:main", "includeTools": True}
        for tool, args in (
            ("sessions_history", history),
            ("sessions_list", {"messageLimit": 5}),
            ("agents_list", {}),
        ):
            body = {"tool": tool, "args": args, "sessionKey": "agent:ops:main"}
            seen.append(client.post("/tools/invoke", json=body).text)
        with client.stream("GET", "/events", params={"after": 0}) as stream:
            for line in stream.iter_lines():
                seen.append(line)
                if line.startswith(": still here"):
                    break
    return seen


@pytest.mark.clause("X11")
def test_no_canary_comes_out_for_anybody_else(
    system: SessionSystem, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    # What the HTTP client and the WebSocket client of this very process log of themselves is theirs.
    caplog.set_level(logging.DEBUG)
    with LiveGateway(system, limits=Limits(check_s=0.02, keep_alive_s=0.05)) as live:
        to_all = use(live)
        to_another = others_view(live)
    logged = "\n".join(
        logging.Formatter().format(record)
        for record in caplog.records
        if record.name.split(".")[0] not in {"httpx", "httpcore", "websockets"}
    )

    assert found("\n".join(to_all)) == []
    assert found("\n".join(to_another)) == []
    assert found(logged) == []
    assert found("".join(capfd.readouterr())) == []
    assert found(json.dumps(system.status())) == []
    assert found(repr(system)) == []
    assert [secret for secret in (TOKEN, WRITER) if secret in logged] == []


@pytest.mark.clause("X11")
def test_no_secret_of_the_configuration_is_in_the_log_at_all(system: SessionSystem, tmp_path: Path) -> None:
    with LiveGateway(system) as live:
        use(live)
    system.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())

    given = ("gateway", "reader", "writer", "model", "header", "channel", "env", "query", "wrong")
    assert [name for name in given if CANARIES[name].encode() in stored] == []
    assert CANARIES["message"].encode() in stored, "what was said is in the owner's log"


@pytest.mark.clause("X11")
def test_what_an_agent_fails_with_is_hidden_from_who_asked_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    config = merged(SEES_ALL, {"agents": {"list": [{"id": "main"}, {"id": "ops"}]}})
    with SessionSystem(tmp_path / "log.db", agents={"main": echo(), "ops": fails}, config=config) as system:
        send = {"sessionKey": "agent:ops:main", "message": "hi", "timeoutSeconds": WAIT}
        answer = system.tools("agent:main:main").call("sessions_send", send)

    assert answer["status"] == "error"
    assert found(json.dumps(answer)) == []
    assert found(caplog.text + "".join(capfd.readouterr())) == []


@pytest.mark.clause("X11")
def test_a_configuration_is_checked_and_refused_without_a_word_of_its_secrets(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG), encoding="utf-8")
    wrong = json.loads(json.dumps(CONFIG))
    wrong["gateway"]["auth"] |= {"token": [CANARIES["gateway"]], "mode": "tokn"}
    wrong["models"]["providers"]["fake"] |= {"apiKey": {"source": CANARIES["model"]}}
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(wrong), encoding="utf-8")
    torn = tmp_path / "torn.json"
    torn.write_text(json.dumps(CONFIG).replace('"port": 0,', '"port": 0 '), encoding="utf-8")
    said: list[str] = []

    for file in (path, broken, torn):
        for more in ((), ("--json",)):
            done = ran("config", "check", file, *more)
            said += [done.out, done.err]
        try:
            SessionSystem(tmp_path / "log.db", agents={"main": echo()}, config=file).close()
        except ConfigError as error:
            said += [str(error), repr(error), repr(error.problems)]

    assert found("\n".join(said)) == []


@pytest.mark.long
@pytest.mark.clause("X11")
@pytest.mark.ci
def test_a_process_that_serves_says_no_canary_even_when_it_fails(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG), encoding="utf-8")
    served = Served(
        "--store", tmp_path / "log.db", "--config", path, CANARY_ENV=CANARIES["env"], PYTHONDEVMODE="1"
    )
    try:
        served.invoke(CANARIES["wrong"], "sessions_list", {"password": CANARIES["argument"]})
        with httpx.Client(trust_env=False, verify=False) as client:  # noqa: S501 - there is no TLS here
            client.get(f"{served.address}/events?token={CANARIES['query']}")
        with connect(
            f"{served.address.replace('http', 'ws', 1)}/?token={CANARIES['query']}", proxy=None
        ) as opened:
            wire = WireClient(opened)
            wire.challenge()
            wire.connect(CANARIES["gateway"])
            call = {"message": CANARIES["message"], "idempotencyKey": CANARIES["idempotency"]}
            run = wire.request("agent", call)["payload"]["runId"]
            # Nobody listens at the model's address: the run fails, and says so.
            ended = wire.request("agent.wait", {"runId": run, "timeoutMs": int(WAIT * 1000)})
        path.write_text(json.dumps(CONFIG).replace('"port": 0,', '"port": "' + CANARIES["gateway"] + '",'))
        while _status(served)["configError"] is None:
            pass
        error = _status(served)
        served.signal()
    finally:
        code, said = served.end()

    assert code == 0
    assert ended["payload"]["status"] in {"error", "timeout"}
    assert found(json.dumps(ended), "idempotency") == [], (
        "its caller's own name for the run is told to its caller"
    )
    assert found(json.dumps(error)) == []
    assert found(said) == []


def _status(served: Served) -> dict[str, Any]:
    with connect(served.address.replace("http", "ws", 1), proxy=None) as opened:
        wire = WireClient(opened)
        wire.challenge()
        assert wire.request("connect", {**CONNECT, "auth": {"token": CANARIES["gateway"]}})["ok"]
        answer: dict[str, Any] = wire.request("status", {})["payload"]
        return answer
