"""The WebSocket protocol, version 3, over real sockets: what the original's clients do, and what strangers try."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Close

from intersession import MemoryChannel, Reply, SessionSystem, Turn, echo
from intersession.gateway.admission.attempts import FailedAttempts
from intersession.gateway.admission.limits import Limits
from support.doors.gateway_live import CONNECT, GATEWAY, READER, TOKEN, WRITER, LiveGateway, WireClient
from support.running import SEES_ALL, Gate, merged

# How long a handshake may take is as everywhere: a busy machine needs a while to let somebody in.
SHORT = Limits(check_s=0.02, tick_s=0.1, close_s=1.0)


class Agents:
    """Agents that answer, call a tool, break, fall silent, or stop at a gate: by what they are told."""

    def __init__(self) -> None:
        self.gate = Gate()

    def __call__(self, turn: Turn) -> str | Reply:
        match turn.message.partition(" ")[0]:
            case "stop":
                self.gate.stop(turn)
                return "went on"
            case "break":
                raise RuntimeError("broken on purpose")
            case "silence":
                return "NO_REPLY"
            case "list":
                turn.tools.call("sessions_list", {})
                return "listed"
            case _:
                return f"{turn.agent_id}: {turn.message}"


@pytest.fixture
def agents() -> Iterator[Agents]:
    made = Agents()
    yield made
    made.gate.open()


@pytest.fixture
def system(tmp_path: Path, agents: Agents) -> Iterator[SessionSystem]:
    config = merged(SEES_ALL, GATEWAY)
    with SessionSystem(
        tmp_path / "log.db",
        agents={"main": agents, "ops": agents},
        channels={"signal": MemoryChannel()},
        config=config,
    ) as made:
        yield made
        agents.gate.open()


@pytest.fixture
def live(system: SessionSystem) -> Iterator[LiveGateway]:
    with LiveGateway(system, limits=SHORT) as made:
        yield made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveGateway]:
    """A gateway for tests that leave nothing behind."""
    path = tmp_path_factory.mktemp("shared") / "log.db"
    with (
        SessionSystem(path, agents={"main": echo()}, config=merged(SEES_ALL, GATEWAY)) as made,
        LiveGateway(made, limits=SHORT) as live,
    ):
        yield live


def until_closed(client: WireClient) -> Close:
    """Read until the connection is closed; return why."""
    with pytest.raises(ConnectionClosed) as closed:
        client.event("nothing has this name")
    assert closed.value.rcvd is not None
    return closed.value.rcvd


def begin(message: str, key: str, *, session: str = "agent:main:main", **more: Any) -> dict[str, Any]:
    return {"message": message, "sessionKey": session, "idempotencyKey": key, **more}


def of(run_id: str, **fields: Any) -> Callable[[dict[str, Any]], bool]:
    return lambda payload: (
        payload["runId"] == run_id and all(payload.get(name) == value for name, value in fields.items())
    )


# --- coming in


def test_the_gateway_speaks_first_and_greets(shared: LiveGateway) -> None:
    with shared.socket() as opened:
        client = WireClient(opened)
        challenge = client.challenge()
        answer = client.connect()

    assert challenge["payload"]["nonce"]
    assert "seq" not in challenge
    assert answer["ok"] is True
    hello = answer["payload"]
    assert (hello["type"], hello["protocol"]) == ("hello-ok", 3)
    assert set(hello) == {"type", "protocol", "server", "features", "snapshot", "policy"}
    assert {"agent", "agent.wait", "chat.send", "sessions.list"} <= set(hello["features"]["methods"])
    assert hello["snapshot"]["sessionDefaults"] == {
        "defaultAgentId": "main",
        "mainKey": "main",
        "mainSessionKey": "agent:main:main",
        "scope": "per-sender",
    }
    assert hello["policy"]["tickIntervalMs"] == 100


@pytest.mark.clause("X5", "X10")
@pytest.mark.parametrize(
    ("params", "code", "close"),
    [
        ({"auth": {"token": "x"}}, "AUTH_TOKEN_MISMATCH", 1008),  # G14
        ({"auth": {"token": ""}}, "AUTH_TOKEN_MISSING", 1008),  # G02
        ({"auth": {"token": "tökën"}}, "AUTH_TOKEN_MISMATCH", 1008),  # G01
        ({"auth": {"deviceToken": TOKEN}}, "AUTH_TOKEN_MISSING", 1008),
        ({}, "AUTH_TOKEN_MISSING", 1008),
        ({"auth": {"token": TOKEN}, "minProtocol": 4, "maxProtocol": 9}, None, 1002),
        ({"auth": {"token": TOKEN}, "role": "node"}, None, 1008),
        ({"auth": {"token": TOKEN}, "surprise": 1}, None, 1008),
        ({"auth": {"token": TOKEN}, "client": {"id": "x"}}, None, 1008),
    ],
)
def test_who_is_not_known_is_told_why_and_sent_away(
    shared: LiveGateway, params: dict[str, Any], code: str | None, close: int
) -> None:
    shared.door.attempts = FailedAttempts(lambda: 0.0)
    with shared.socket() as opened:
        client = WireClient(opened)
        client.challenge()
        answer = client.request("connect", {**CONNECT, **params})
        closed = until_closed(client)

    assert answer["ok"] is False
    assert answer["error"]["code"] == "INVALID_REQUEST"
    assert (answer["error"].get("details") or {}).get("code") == code
    assert closed.code == close
    assert TOKEN not in json.dumps(answer)


@pytest.mark.clause("X8")
@pytest.mark.parametrize(
    "frame",
    [
        "",
        "nonsense",
        "[]",
        "{}",
        '{"type":"event","event":"connect"}',
        '{"type":"req","id":"1","method":"health"}',
        '{"type":"req","id":"","method":"connect"}',
        '{"type":"req","id":"1","method":"connect","params":[]}',
        "[" * 60_000,
        b"\xff\xfe",
    ],
)
def test_a_first_frame_that_is_no_handshake_ends_the_connection(
    shared: LiveGateway, frame: str | bytes
) -> None:
    with shared.socket() as opened:
        WireClient(opened).challenge()
        opened.send(frame)
        closed = until_closed(WireClient(opened))

    assert closed.code == 1008


@pytest.mark.clause("X5")
def test_a_large_frame_before_the_handshake_is_too_large(shared: LiveGateway) -> None:
    with shared.socket() as opened:
        WireClient(opened).challenge()
        opened.send("x" * (64 * 1024 + 1))  # G17
        closed = until_closed(WireClient(opened))

    assert closed.code == 1009


@pytest.mark.clause("X5")
def test_a_large_frame_is_taken_from_who_is_in(shared: LiveGateway) -> None:
    with shared.client() as client:
        answer = client.request("agent.wait", {"runId": "x" * 200_000})

    assert answer["error"]["details"]["code"] == "unknown_run"


def test_who_says_nothing_is_given_up(system: SessionSystem) -> None:
    limits = Limits(handshake_s=0.3, close_s=1.0)
    with LiveGateway(system, limits=limits) as impatient, impatient.socket() as opened:
        closed = until_closed(WireClient(opened))

    assert (closed.code, closed.reason) == (1008, "handshake timeout")


@pytest.mark.clause("X5")
@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"origin": "null"}, 403),  # G07
        ({"origin": "http://localhost.evil.example"}, 403),  # G08
        ({"origin": "http://127.0.0.1:9999"}, 403),  # G10
    ],
)
def test_a_page_of_elsewhere_gets_no_connection(
    shared: LiveGateway, options: dict[str, Any], status: int
) -> None:
    with pytest.raises(InvalidStatus) as refused, shared.socket(**options):
        pass

    assert refused.value.response.status_code == status


@pytest.mark.clause("X5")
def test_a_listed_page_gets_one(live: LiveGateway, system: SessionSystem) -> None:
    origins = {"gateway": {"controlUi": {"allowedOrigins": ["http://127.0.0.1:9999"]}}}
    system.reload(merged(SEES_ALL, GATEWAY, origins))

    with live.socket(origin="http://127.0.0.1:9999") as opened:
        assert WireClient(opened).challenge()
    with live.socket(origin=live.address) as opened:
        assert WireClient(opened).challenge()


@pytest.mark.clause("X10")
def test_wrong_tokens_are_counted_over_all_connections(
    live: LiveGateway, caplog: pytest.LogCaptureFixture
) -> None:
    def attempt(token: str) -> dict[str, Any]:
        with live.socket() as opened:
            client = WireClient(opened)
            client.challenge()
            error: dict[str, Any] = client.connect(token)["error"]
            return error

    for _ in range(10):
        assert attempt("wrong")["details"]["code"] == "AUTH_TOKEN_MISMATCH"
    late = attempt("wrong")
    for _ in range(5):
        attempt("wrong")
    with live.client() as client:
        assert client.request("health")["ok"]  # C4

    told = [record.getMessage() for record in caplog.records if record.name.startswith("intersession")]
    assert [line.partition(":")[0] for line in told] == [
        *["refused a connection from 127.0.0.1"] * 10,
        "further refusals of 127.0.0.1 are not told of for a minute",
    ]
    assert late["details"]["code"] == "AUTH_RATE_LIMITED"
    assert late["retryAfterMs"] > 0


@pytest.mark.clause("X5", "X10")
def test_a_revoked_token_closes_what_it_opened(live: LiveGateway, system: SessionSystem) -> None:
    with live.client(WRITER) as other, live.client() as client:
        system.reload(merged(SEES_ALL, GATEWAY, {"gateway": {"auth": {"token": "rotated"}}}))  # G20
        closed = until_closed(client)
        assert other.request("health")["ok"]

    assert (closed.code, closed.reason) == (1008, "credential revoked")


# --- what one may


@pytest.mark.clause("X5")
def test_scopes_come_from_the_credential_alone(live: LiveGateway) -> None:
    call = begin("hi", "k", session="agent:main:main")
    with live.client(READER, scopes=["operator.admin", "operator.write"]) as client:  # G13
        answer = client.request("agent", call)
        assert client.request("sessions.list")["ok"]

    assert answer["error"]["message"] == "missing scope: operator.write"


def test_a_client_can_ask_for_less_than_it_may(shared: LiveGateway) -> None:
    with shared.client(scopes=["operator.read"]) as client:
        assert (
            client.request("agent", begin("hi", "k"))["error"]["message"] == "missing scope: operator.write"
        )
        assert client.request("sessions.patch", {"key": "main"})["error"]["message"].startswith(
            "missing scope"
        )
        assert client.request("agents.list")["payload"]["defaultId"] == "main"


@pytest.mark.clause("VIS-6")
def test_a_credential_reaches_its_own_sessions_and_no_others(
    live: LiveGateway, system: SessionSystem
) -> None:
    for agent in ("main", "ops"):
        system.gateway.call("agent", {"message": "hi", "agentId": agent, "idempotencyKey": f"{agent}-1"})
        system.gateway.call("agent.wait", {"runId": f"{agent}-1"})

    with live.client(WRITER) as client:
        listed = client.request("sessions.list")["payload"]["sessions"]
        own = client.request("chat.history", {"sessionKey": "agent:ops:main"})
        other = client.request("chat.history", {"sessionKey": "agent:main:main"})
        absent = client.request("chat.history", {"sessionKey": "agent:main:nope"})
        sent = client.request("agent", begin("hi", "k", session="agent:main:main"))
        run = client.request("agent.wait", {"runId": "main-1"})
        status = client.request("status")["payload"]

    assert [row["key"] for row in listed] == ["agent:ops:main"]
    assert own["ok"]
    assert other["error"]["message"] == "session not visible: agent:main:main"
    assert absent["error"]["message"] == "session not visible: agent:main:nope"
    assert sent["error"]["details"]["code"] == "not_visible"
    assert run["error"]["details"]["code"] == "unknown_run"
    assert "notices" not in status


@pytest.mark.clause("VIS-6")
def test_a_credential_hears_of_its_own_sessions_alone(live: LiveGateway, system: SessionSystem) -> None:
    with live.client(WRITER) as client:
        for agent in ("main", "ops"):
            system.gateway.call("agent", {"message": "hi", "agentId": agent, "idempotencyKey": f"{agent}-1"})
            system.gateway.call("agent.wait", {"runId": f"{agent}-1"})
        client.event("chat", lambda payload: payload["state"] == "final")

    keys = {frame["payload"].get("sessionKey") for frame in client.events if frame["event"] != "tick"}
    assert keys == {"agent:ops:main"}


# --- runs


@pytest.mark.clause("GATE-1")
def test_agent_is_answered_twice(live: LiveGateway) -> None:
    with live.client() as client:
        request_id = client.ask("agent", begin("good morning", "once"))
        accepted = client.answer(request_id)
        final = client.answer(request_id)

    assert accepted["payload"]["status"] == "accepted"
    assert accepted["payload"]["acceptedAt"] > 0
    run_id = accepted["payload"]["runId"]
    assert final["ok"] is True
    assert (final["payload"]["runId"], final["payload"]["status"]) == (run_id, "ok")
    assert final["payload"]["summary"] == "completed"
    assert final["payload"]["result"]["payloads"] == [{"text": "main: good morning", "mediaUrl": None}]


@pytest.mark.clause("GATE-1")
def test_a_run_that_fails_is_refused_the_second_time(live: LiveGateway) -> None:
    with live.client() as client:
        request_id = client.ask("agent", begin("break it", "once"))
        client.answer(request_id)
        final = client.answer(request_id)

    assert final["ok"] is False
    assert final["error"]["code"] == "UNAVAILABLE"
    assert final["payload"]["status"] == "error"
    assert "broken on purpose" in final["payload"]["summary"]


@pytest.mark.clause("GATE-1", "SEND-11")
def test_the_same_key_is_the_same_run_for_ever(live: LiveGateway) -> None:
    with live.client() as client:
        first = client.ask("agent", begin("hello", "same"))
        accepted, _ = client.answer(first), client.answer(first)
        second = client.ask("agent", begin("hello", "same"))
        again, final = client.answer(second), client.answer(second)
        other = client.request("agent", begin("something else", "same"))

    assert again["payload"] == accepted["payload"]
    assert final["payload"]["result"]["payloads"][0]["text"] == "main: hello"
    assert other["error"]["details"]["code"] == "idempotency_conflict"


@pytest.mark.clause("GATE-3", "O7")
def test_a_wait_is_answered_from_any_connection_and_after_a_restart(tmp_path: Path, agents: Agents) -> None:
    config = merged(SEES_ALL, GATEWAY)
    path = tmp_path / "log.db"
    with SessionSystem(path, agents={"main": agents}, config=config) as system, LiveGateway(system) as live:
        with live.client() as client:
            run_id = client.request("agent", begin("stop here", "mine"))["payload"]["runId"]
            agents.gate.reached()
            early = client.request("agent.wait", {"runId": run_id, "timeoutMs": 0})["payload"]
        with live.client() as waiter:
            request_id = waiter.ask("agent.wait", {"runId": run_id, "timeoutMs": 20_000})
            agents.gate.open()
            answer = waiter.answer(request_id)["payload"]
    with (
        SessionSystem(path, agents={"main": agents}, config=config) as system,
        LiveGateway(system) as live,
        live.client() as client,
    ):
        later = client.request("agent.wait", {"runId": run_id})["payload"]
        by_key = client.request("agent.wait", {"runId": "mine"})["payload"]
        unknown = client.request("agent.wait", {"runId": "nobody's"})

    assert early["status"] == "timeout"
    assert (answer["status"], answer["reply"]) == ("ok", "went on")
    assert later == answer == by_key
    assert unknown["error"]["details"]["code"] == "unknown_run"


@pytest.mark.clause("GATE-1")
def test_a_chat_is_heard_as_it_goes(live: LiveGateway) -> None:
    with live.client() as client:
        sent = client.request("chat.send", begin("good evening", "c1"))["payload"]
        final = client.event("chat", of(sent["runId"], state="final"))
        again = client.request("chat.send", begin("good evening", "c1"))["payload"]

    assert sent["status"] == "started"
    assert again == {**sent, "status": "ok"}
    said = final["payload"]["message"]
    assert said["role"] == "assistant"
    assert said["content"] == [{"type": "text", "text": "main: good evening"}]
    mine = [f["payload"] for f in client.events if f["payload"].get("runId") == sent["runId"]]
    agent = [p for p in mine if "stream" in p]
    assert [p["stream"] for p in agent] == ["lifecycle", "assistant", "lifecycle"]
    assert [p["seq"] for p in agent] == [1, 2, 3]
    assert (agent[0]["data"]["phase"], agent[-1]["data"]["phase"]) == ("start", "end")
    assert [p["state"] for p in mine if "state" in p] == ["delta", "final"]
    numbers = [f["seq"] for f in client.events]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_silent_reply_shows_no_text(live: LiveGateway) -> None:
    with live.client() as client:
        sent = client.request("chat.send", begin("silence please", "c1"))["payload"]
        final = client.event("chat", of(sent["runId"]))

    assert final["payload"]["state"] == "final"
    assert "message" not in final["payload"]


def test_a_failure_is_an_event(live: LiveGateway) -> None:
    with live.client() as client:
        sent = client.request("chat.send", begin("break it", "c1"))["payload"]
        final = client.event("chat", of(sent["runId"]))

    assert final["payload"]["state"] == "error"
    assert "broken on purpose" in final["payload"]["errorMessage"]


def test_tool_calls_are_shown_to_who_asks_for_them(live: LiveGateway) -> None:
    with live.client() as plain, live.client(caps=["tool-events"]) as curious:
        run = curious.request("chat.send", begin("list all", "c1"))["payload"]["runId"]
        for client in (plain, curious):
            client.event("chat", of(run, state="final"))

    def tools(client: WireClient) -> list[str]:
        payloads = [frame["payload"] for frame in client.events]
        return [p["data"]["phase"] for p in payloads if p.get("stream") == "tool"]

    assert tools(curious) == ["start", "result"]
    assert tools(plain) == []


@pytest.mark.clause("GATE-5")
def test_an_abort_ends_the_run_for_everybody(live: LiveGateway, agents: Agents) -> None:
    with live.client() as client:
        request_id = client.ask("agent", begin("stop here", "c1"))
        run_id = client.answer(request_id)["payload"]["runId"]
        agents.gate.reached()
        aborted = client.request("chat.abort", {"sessionKey": "agent:main:main", "runId": "c1"})["payload"]
        final = client.answer(request_id)
        told = client.event("chat", of(run_id))
        waited = client.request("agent.wait", {"runId": run_id})["payload"]

    assert aborted == {"ok": True, "aborted": True, "runIds": [run_id]}
    assert (final["payload"]["status"], final["payload"]["result"]["meta"]["aborted"]) == ("aborted", True)
    assert told["payload"]["state"] == "aborted"
    assert waited["status"] == "aborted"


@pytest.mark.clause("GATE-4")
def test_a_busy_session_queues_rejects_or_is_interrupted_as_asked(live: LiveGateway, agents: Agents) -> None:
    with live.client() as client:
        first = client.request("chat.send", begin("stop here", "c1"))["payload"]["runId"]
        agents.gate.reached()
        rejected = client.request("chat.send", begin("now or never", "c2", busy="reject"))
        queued = client.request("chat.send", begin("later", "c3"))["payload"]["runId"]
        urgent = client.request("chat.send", begin("at once", "c4", busy="interrupt"))["payload"]["runId"]
        agents.gate.open()
        ends = {
            run: client.request("agent.wait", {"runId": run})["payload"]["status"]
            for run in (first, queued, urgent)
        }

    assert rejected["error"]["code"] == "UNAVAILABLE"
    assert rejected["error"]["details"]["code"] == "busy"
    assert rejected["error"]["retryable"] is True
    assert ends == {first: "aborted", queued: "ok", urgent: "ok"}


# --- frames


@pytest.mark.clause("X8")
def test_a_bad_frame_is_refused_and_the_connection_goes_on(shared: LiveGateway) -> None:
    with shared.client() as client:
        client.send({"type": "req", "id": "9", "method": "health", "surprise": True})
        surprised = client.answer("9")
        client.opened.send("nonsense")
        nonsense = client.answer("invalid")
        unknown = client.request("node.list")
        twice = client.request("connect", CONNECT)
        field = client.request("agents.list", {"surprise": 1})
        fine = client.request("health")

    assert surprised["error"]["code"] == nonsense["error"]["code"] == "INVALID_REQUEST"
    said = unknown["error"]["message"]
    assert said.startswith("unknown method: 'node.list'")
    # Before: all that the gateway said it has, in one list.
    assert set(said.partition("use one of ")[2].split(", ")) == set(client.hello["features"]["methods"])
    assert "first request" in twice["error"]["message"]
    assert field["error"]["message"] == "surprise: unknown field, leave it out (known: )"
    assert fine["ok"]


def test_a_tick_says_that_the_gateway_is_there(shared: LiveGateway) -> None:
    with shared.client() as client:
        assert client.event("tick")["payload"]["ts"] > 0


@pytest.mark.clause("L7")
def test_a_gateway_that_stops_takes_no_new_work_and_says_so(live: LiveGateway) -> None:
    with live.client() as client:
        live.door.draining = True
        answer = client.request("agent", begin("hi", "k"))
        reads = client.request("sessions.list")
    response = live.invoke("sessions_list")

    assert (answer["error"]["code"], answer["error"]["details"]["code"]) == ("UNAVAILABLE", "unavailable")
    assert reads["ok"]
    assert response.status_code == 503
    with pytest.raises(InvalidStatus), live.socket():
        pass


@pytest.mark.clause("L6")
def test_who_does_not_read_is_sent_away_with_the_place_to_go_on(
    system: SessionSystem, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        LiveGateway(system, limits=Limits(buffered_bytes=2_000_000, check_s=0.02)) as live,
        live.socket(max_queue=1) as opened,
        live.client() as other,
    ):
        stuck = WireClient(opened)
        stuck.challenge()
        stuck.connect()
        for number in range(60):
            run = other.request("chat.send", begin("x" * 100_000, f"c{number}"))["payload"]["runId"]
            other.event("chat", of(run, state="final"))
            other.events.clear()
            if "does not read" in caplog.text:
                break  # it has seconds to read that, however slow the machine
        closed = until_closed(WireClient(opened))

    assert closed.code == 1013
    reason, _, position = closed.reason.rpartition(" ")
    assert reason == "slow consumer: resume after position"
    assert 0 < int(position) < system.log.head()


def test_many_connections_hear_the_same(live: LiveGateway) -> None:
    with live.client() as one, live.client() as other:
        run = one.request("chat.send", begin("hello", "c1"))["payload"]["runId"]
        heard = [client.event("chat", of(run, state="final"))["payload"] for client in (one, other)]

    assert heard[0] == heard[1]


def test_no_task_is_left_when_connections_are_gone(live: LiveGateway, agents: Agents) -> None:
    for number in range(5):
        with live.client() as client:
            client.ask("agent", begin("stop here", f"c{number}", session=f"agent:main:direct:{number}"))
            agents.gate.reached()
    agents.gate.open()

    with live.client() as client:
        assert client.request("agent.wait", {"runId": "c0"})["payload"]["status"] == "ok"
