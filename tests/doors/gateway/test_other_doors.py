"""A host that follows the log serves the whole gateway: it reads here, and the log's writer does the rest (DOOR)."""

import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from intersession import SessionSystem, Turn, echo
from intersession.gateway.protocol.client import GatewayClient
from intersession.gateway.protocol.link import WriterLink
from intersession_actors.assembly.methods.methods import METHODS
from intersession_actors.assembly.system.follow import followed
from intersession_actors.rules.errors import ConfigError, ToolRefused
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import AccessRecorded, message_in
from intersession_events.log.recorded import parts_in
from support.doors.following import DOOR, door, with_door, writing
from support.doors.gateway_live import READER, WAIT, WRITER
from support.running import QUIET, SEES_ALL, merged
from support.soaking import until

CONFIG = merged(with_door(), SEES_ALL, QUIET)
OPS = "agent:ops:main"


class Held:
    """An agent that answers when it may."""

    def __init__(self) -> None:
        self.asked, self.may = threading.Event(), threading.Event()

    def __call__(self, turn: Turn) -> str:
        self.asked.set()
        assert self.may.wait(WAIT)
        return f"at last {turn.message}"


def said(system: SessionSystem, text: str) -> int:
    """Return how often a text was said to a session."""
    messages = (message_in(one.event) for recorded in system.log.all() for one in parts_in([recorded]))
    return sum(
        message is not None and message.role == "user" and text in str(message.content)
        for message in messages
    )


def of_access(system: SessionSystem, number: int) -> list[AccessRecorded]:
    """Return this number of receipts, once they are there: nobody waits for them to be recorded."""
    found: list[AccessRecorded] = []
    for recorded in followed(system.log, 0, timeout=WAIT):
        found += [recorded.event] if isinstance(recorded.event, AccessRecorded) else []
        if len(found) == number:
            break
    return found


def send(text: str, **more: Any) -> dict[str, Any]:
    return {"name": "sessions_send", "args": {"sessionKey": OPS, "message": text, **more}}


@pytest.fixture
def system(log_url: str) -> Iterator[SessionSystem]:
    with SessionSystem(log_url, agents={"main": echo(), "ops": echo("ops heard ")}, config=CONFIG) as opened:
        yield opened


@pytest.mark.clause("DOOR-1")
def test_a_door_reads_the_log_and_hands_on_what_writes(system: SessionSystem, log_url: str) -> None:
    with writing(system), door(log_url, CONFIG) as front, front.live.client() as client:
        sent = client.request("chat.send", {"sessionKey": OPS, "message": "x", "idempotencyKey": "k"})
        waited = client.request("agent.wait", {"runId": "k"})
        final = client.event("chat", lambda payload: payload["state"] == "final")
        tool = client.request("tools.invoke", send("y"))
        history = client.request("chat.history", {"sessionKey": OPS})
        status = client.request("status")["payload"]
        with pytest.raises(ToolRefused, match="only follows the log") as refused:
            front.system.unbind_thread(OPS)
        with pytest.raises(ToolRefused, match="only follows the log"):
            front.system.register_agent("more", echo())
        told = front.system.inbound(channel="c", chat_id="1", sender="s", text="x")

    assert [sent["payload"]["status"], waited["payload"]["reply"]] == ["started", "ops heard x"]
    assert final["payload"]["runId"] == "k"
    assert tool["payload"]["reply"] == "ops heard y"
    assert [
        one["content"][0]["text"] for one in history["payload"]["messages"] if one["role"] == "assistant"
    ] == [
        "ops heard x",
        "ops heard y",
    ]
    assert (status["agents"], status["writer"]) == (["main", "ops"], None)
    assert refused.value.code == told["code"] == "not_supported"


@pytest.mark.clause("DOOR-2")
def test_receipts_name_the_caller_and_the_door(system: SessionSystem, log_url: str) -> None:
    with writing(system), door(log_url, CONFIG) as front:
        for tool in ("sessions_list", "agents_list"):
            front.live.invoke(tool, token=WRITER, sessionKey=OPS)
        front.live.invoke("sessions_list", token=READER, sessionKey=OPS)
        with front.live.client(WRITER) as client:
            client.request("sessions.patch", {"key": "agent:main:main", "label": "x"})
            client.request("tools.invoke", {**send("x"), "sessionKey": "agent:main:main"})
            client.request(
                "tools.invoke", {"name": "sessions_send", "args": {"sessionKey": "none"}, "sessionKey": OPS}
            )

    receipts = of_access(system, 5)
    assert {(one.credential, one.door) for one in receipts} == {("ops", "front"), ("reader", "front")}


@pytest.mark.clause("DOOR-2")
def test_a_call_that_is_sent_again_counts_once(system: SessionSystem, log_url: str) -> None:
    held = Held()
    system.register_agent("ops", held)
    with writing(system), door(log_url, CONFIG) as front, front.live.client() as client:
        waiting = client.ask("tools.invoke", send("once"))
        assert held.asked.wait(WAIT)
        link = front.system.service.writer
        assert isinstance(link, WriterLink)
        link._line.lose()
        held.may.set()
        answer = client.answer(waiting)

    assert answer["payload"]["reply"] == "at last once"
    assert said(system, "once") == 1


@pytest.mark.clause("DOOR-2")
def test_a_door_leaves_a_writer_that_another_one_has_replaced_at_its_address(
    system: SessionSystem, log_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind one proxy all writers have one address, and a paused one keeps its connection, and answers nothing."""
    held = Held()
    system.register_agent("ops", held)
    with writing(system), door(log_url, CONFIG) as front, front.live.client() as client:
        waiting = client.ask("tools.invoke", send("once"))
        assert held.asked.wait(WAIT)
        link = front.system.service.writer
        assert isinstance(link, WriterLink)
        before, found = link._line._client, link._where()
        assert found is not None
        monkeypatch.setattr(link, "_where", lambda: (found[0], found[1] + 1))
        until(lambda: link._line._client not in {None, before})
        held.may.set()
        answer = client.answer(waiting)

    assert answer["payload"]["reply"] == "at last once"
    assert said(system, "once") == 1


@pytest.mark.clause("DOOR-2")
def test_a_call_under_way_is_answered_while_its_door_stops(system: SessionSystem, log_url: str) -> None:
    held = Held()
    system.register_agent("ops", held)
    with writing(system), door(log_url, CONFIG) as front, front.live.client() as client:
        waiting = client.ask("tools.invoke", send("once"))
        assert held.asked.wait(WAIT)
        closing = threading.Thread(target=front.system.close, args=(WAIT,))
        closing.start()
        closing.join(0.3)
        assert closing.is_alive()
        held.may.set()
        answer = client.answer(waiting)
        closing.join(WAIT)

    assert answer["payload"]["reply"] == "at last once"


@pytest.mark.clause("DOOR-2")
@pytest.mark.clause("DOOR-4")
@pytest.mark.parametrize("keyed", [{}, {"idempotencyKey": "mine"}], ids=["without a key", "with a key"])
def test_a_call_that_waits_goes_on_at_the_next_writer(log_url: str, keyed: dict[str, str]) -> None:
    held = Held()
    first = SessionSystem(log_url, agents={"main": echo(), "ops": held}, config=CONFIG)
    with writing(first), door(log_url, CONFIG) as front, front.live.client() as client:
        waiting = client.ask("tools.invoke", send("once", **keyed))
        assert held.asked.wait(WAIT)
        closing = threading.Thread(target=first.close, args=(0.0,))
        closing.start()
        read = client.request("chat.history", {"sessionKey": OPS})
        held.may.set()
        closing.join(WAIT)
        with SessionSystem(log_url, agents={"main": echo(), "ops": echo("again ")}, config=CONFIG) as second:
            with writing(second):
                answer = client.answer(waiting)
                later = client.request("tools.invoke", send("later"))
            number = said(second, "once")

    assert read["ok"]
    assert answer["payload"]["reply"] in {"again once", "at last once"}
    assert later["payload"]["reply"] == "again later"
    assert number == 1


@pytest.mark.clause("DOOR-2")
def test_a_call_that_would_count_twice_is_told_to_be_in_doubt(system: SessionSystem) -> None:
    asked = {
        "caller": {"name": "operator", "actAs": ["*"]},
        "method": "chat.inject",
        "params": {"sessionKey": "agent:main:main", "message": "x"},
        "number": "0123456789abcdef",
        "again": True,
    }
    with writing(system) as live, GatewayClient(live.address, DOOR["token"]) as client:
        client.call(
            "door.perform", asked | {"method": "agent", "params": {"message": "hi", "idempotencyKey": "k"}}
        )
        unknown = client.call("door.perform", asked | {"number": "fedcba9876543210"})
        first = client.call("door.perform", asked | {"number": "f" * 16, "again": False})
        second = client.call("door.perform", asked | {"number": "f" * 16})

    assert unknown["refused"]["code"] == "unavailable"
    assert "may have been done or not" in unknown["refused"]["error"]
    assert "tryAgain" not in unknown
    assert first == second
    assert first["result"]["ok"]


@pytest.mark.clause("DOOR-4")
def test_without_a_writer_reading_goes_on_and_writing_waits_for_so_long(log_url: str) -> None:
    config = merged(CONFIG, {"gateway": {"writerWaitSeconds": 0.2}})
    with SessionSystem(log_url, agents={"ops": echo()}, config=config) as system:
        system.inbound(channel="c", chat_id="1", sender="s", text="x", agent_id="ops", wait=WAIT)

    with door(log_url, config) as front, front.live.client() as client:
        listed = client.request("sessions.list")
        refused = client.request("chat.send", {"sessionKey": OPS, "message": "x", "idempotencyKey": "k"})

    assert listed["payload"]["count"] == 1
    assert refused["error"]["code"] == "UNAVAILABLE"
    assert refused["error"]["retryable"]
    assert "nothing was done" in refused["error"]["message"]


CALLER: JsonObject = {"name": "credential:c", "credential": "c", "actAs": ["agent:ops:main"]}
SESSION: JsonObject = {"name": OPS, "key": OPS, "actAs": ["agent:ops:*"], "credential": "c"}


@pytest.mark.clause("DOOR-2")
@pytest.mark.parametrize(
    ("caller", "method", "said"),
    [
        (CALLER, "sessions.list", None),
        (SESSION, "tools.invoke", None),
        (CALLER, "sessions.reset", "missing scope: operator.admin"),
        (CALLER, "door.perform", "missing scope: door"),
        (CALLER | {"actAs": ["*"]}, "sessions.list", "beyond"),
        (CALLER | {"actAs": ["agent:*"]}, "sessions.list", "beyond"),
        (CALLER | {"actAs": ["agent:main:main"]}, "sessions.list", "beyond"),
        (CALLER | {"sees": ["agent:main:main"]}, "sessions.list", "beyond"),
        (CALLER | {"name": "operator"}, "sessions.list", "not this caller's own"),
        ({"name": "operator", "actAs": ["agent:ops:*"]}, "sessions.list", "not this caller's own"),
        (SESSION | {"key": "agent:main:main", "name": "agent:main:main"}, "tools.invoke", "beyond"),
        (SESSION | {"actAs": ["*"]}, "tools.invoke", "beyond"),
    ],
)
def test_a_door_gives_no_more_than_it_has(
    log_url: str, caller: JsonObject, method: str, said: str | None
) -> None:
    config = merged(
        with_door(actAs=["agent:ops:*"], scopes=["door", "operator.read", "operator.write"]), SEES_ALL
    )
    asked: JsonObject = {"caller": caller, "method": method, "params": {}, "number": "0123456789abcdef"}
    if method == "tools.invoke":
        asked["params"] = {"name": "sessions_list", "args": {}}
    with (
        SessionSystem(log_url, agents={"ops": echo()}, config=config) as system,
        writing(system) as live,
        GatewayClient(live.address, DOOR["token"]) as client,
    ):
        if said is None:
            assert "result" in client.call("door.perform", asked)
        else:
            with pytest.raises(ToolRefused, match=said) as refused:
                client.call("door.perform", asked)
            assert refused.value.code == "forbidden"


RECEIPT: JsonObject = {
    "id": "0123456789abcdef",
    "time": 2**50,
    "event": {"requester": OPS, "credential": "c", "tool": "sessions_list"},
}


@pytest.mark.clause("DOOR-2")
@pytest.mark.parametrize(
    ("event", "more", "said"),
    [
        ({}, {}, None),
        ({"requester": "agent:main:main"}, {}, "beyond"),
        ({"requester": None, "credential": None}, {}, "admits no operator"),
        ({}, {"decision": "[1"}, "no JSON object"),
        ({}, {"id": "x"}, "receipts"),
    ],
)
def test_a_door_leaves_receipts_of_its_own_callers_alone(
    log_url: str, event: JsonObject, more: JsonObject, said: str | None
) -> None:
    config = merged(with_door(actAs=["agent:ops:*"], scopes=["door", "operator.read"]), SEES_ALL)
    receipt = RECEIPT | more | {"event": RECEIPT["event"] | event}
    with (
        SessionSystem(log_url, agents={"ops": echo()}, config=config) as system,
        writing(system) as live,
        GatewayClient(live.address, DOOR["token"]) as client,
    ):
        if said is not None:
            with pytest.raises(ToolRefused, match=said):
                client.call("door.receipts", {"receipts": [receipt]})
            return
        for _ in range(2):  # sent again, it is recorded once
            client.call("door.receipts", {"receipts": [receipt]})
        system.inbound(channel="c", chat_id="1", sender="s", text="x", agent_id="ops", wait=WAIT)
        found = [
            (one.event.door, one.time < 2**49)
            for one in system.log.all()
            if isinstance(one.event, AccessRecorded)
        ]

    assert found == [("front", True)]


def test_no_other_token_opens_the_writer_to_a_door(system: SessionSystem) -> None:
    asked = {"caller": CALLER, "method": "health", "params": {}, "number": "0123456789abcdef"}
    with writing(system) as live, live.client() as operator:
        refused = operator.request("door.perform", asked)

    assert refused["error"]["message"] == "missing scope: door"


def test_a_door_without_a_credential_of_its_own_does_not_start(log_url: str) -> None:
    with (
        pytest.raises(ConfigError, match='none has the scope "door"'),
        door(log_url, merged(CONFIG, {"gateway": {"auth": {"credentials": []}}})),
    ):
        pass


@pytest.mark.clause("DOOR-3")
def test_what_one_door_has_acknowledged_another_shows(system: SessionSystem, log_url: str) -> None:
    with writing(system) as live, door(log_url, CONFIG) as one, door(log_url, CONFIG) as other:
        with one.live.client(caps=["position"]) as client:
            sent = client.request("chat.send", {"sessionKey": OPS, "message": "x", "idempotencyKey": "k"})
        with other.live.client() as client:
            client.send(
                {
                    "type": "req",
                    "id": "1",
                    "method": "agent.wait",
                    "params": {"runId": "k"},
                    "after": sent["position"],
                }
            )
            waited = client.answer("1")
        with other.live.http() as http:
            asked = {"tool": "sessions_list"}
            plain = http.post("/tools/invoke", json=asked)
            named = http.post(
                "/tools/invoke", headers={"Intersession-After": str(sent["position"])}, json=asked
            )
            wrong = http.post("/tools/invoke", headers={"Intersession-After": "soon"}, json=asked)
        with live.http() as http:
            beyond = http.post("/tools/invoke", headers={"Intersession-After": "99999"}, json=asked)

    assert waited["payload"]["reply"] == "ops heard x"
    assert "position" not in waited
    assert "intersession-position" not in plain.headers
    assert int(named.headers["intersession-position"]) >= sent["position"]
    assert [wrong.status_code, beyond.status_code] == [400, 400]


@pytest.mark.clause("DOOR-1")
def test_what_an_agent_says_in_pieces_is_heard_at_a_door(log_url: str) -> None:
    heard = threading.Event()

    def in_pieces(_: Turn) -> Iterator[str]:
        yield "one "
        assert heard.wait(WAIT)
        yield "two"

    with (
        SessionSystem(log_url, agents={"ops": in_pieces}, config=CONFIG) as system,
        writing(system),
        door(log_url, CONFIG) as front,
        front.live.client() as client,
    ):
        client.request("chat.send", {"sessionKey": OPS, "message": "x", "idempotencyKey": "k"})
        delta = client.event("chat", lambda payload: payload["state"] == "delta")
        heard.set()
        client.event("chat", lambda payload: payload["state"] == "final")
        left = front.system.service.world.agents.pieces.runs

    assert delta["payload"]["runId"] == "k"
    assert "attempt" not in delta["payload"]
    assert delta["payload"]["message"]["content"][0]["text"] == "one "
    assert left == ()


def test_every_method_is_read_here_or_counts_once_or_is_told_to_be_in_doubt() -> None:
    both = [name for name, method in METHODS.items() if method.read and method.again]
    doubtful = {
        name
        for name, method in METHODS.items()
        if not (method.read or method.again or method.scope == "worker")
    }

    assert both == []
    assert doubtful == {
        "chat.inject",
        "cron.run",
        "deliveries.retry",
        "exchanges.release",
        "forks.make",
        "import.framework",
        "import.openclaw",
        "notes.pin",
        "sessions.delete",
        "sessions.reset",
    }


@pytest.mark.ci
@pytest.mark.clause("DOOR-1")
def test_a_door_has_the_pages_the_event_stream_the_metrics_and_mcp(
    system: SessionSystem, log_url: str
) -> None:
    mcp = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    called = mcp | {"params": {"name": "sessions_send", "arguments": send("by MCP")["args"]}}
    accepts = {"accept": "application/json, text/event-stream", "Intersession-Session": "agent:main:main"}
    with (
        writing(system),
        door(log_url, CONFIG, mcp=True) as front,
        front.live.http() as http,
        front.live.client() as client,
    ):
        sent = client.request("tools.invoke", send("x"))["payload"]
        pinned = http.post(
            "/debug/api/do", json={"method": "notes.pin", "params": {"run": sent["runId"], "text": "seen"}}
        )
        runs = http.get("/debug/api/runs").json()
        by_mcp = http.post("/mcp", json=called, headers=accepts)
        before = system.log.head()  # what was sent goes on
        scraped = http.get("/metrics")
        head = system.log.head()
        with http.stream("GET", "/events", params={"after": 0}) as events:
            seen = next(line for line in events.iter_lines() if line == f"id: {head}")

    assert (pinned.status_code, pinned.json()["ok"]) == (200, True)
    assert sent["runId"] in str(runs)
    assert "ops heard by MCP" in by_mcp.text
    (position,) = re.findall(r"^intersession_log_position (\d+)\.0$", scraped.text, re.MULTILINE)
    assert before <= int(position) <= head
    assert seen
