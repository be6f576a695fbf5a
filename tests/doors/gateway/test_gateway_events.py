"""Committed events as a stream that resumes, and what the description of the routes promises."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from intersession import SessionSystem, echo
from intersession.gateway.admission.addresses import client_address, normalised
from intersession.gateway.admission.attempts import FailedAttempts
from intersession.gateway.admission.credentials import Credentials
from intersession.gateway.admission.limits import Limits
from intersession.gateway.protocol.connection import Connection
from intersession.gateway.protocol.effects import Close, Effect, Perform, Send, Welcome
from intersession_actors.calls.tools.registry import TOOLS, schemas
from intersession_actors.rules.config.host import GatewayAuth
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.keys.key import SessionKey
from support.any_log import changed_behind
from support.doors.gateway_live import CONNECT, GATEWAY, TOKEN, WAIT, WRITER, LiveGateway
from support.fakes import ManualClock
from support.running import SEES_ALL, merged

SHORT = Limits(check_s=0.02, keep_alive_s=0.05)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveGateway]:
    path = tmp_path_factory.mktemp("events") / "log.db"
    config = merged(SEES_ALL, GATEWAY, {"gateway": {"tools": {"allow": ["sessions_send", "sessions_spawn"]}}})
    agents = {"main": echo("main: "), "ops": echo("ops: ")}
    with (
        SessionSystem(path, agents=agents, config=config) as system,
        LiveGateway(system, limits=SHORT) as made,
    ):
        for agent in agents:
            say(system, agent, "hello")
        yield made


def say(system: SessionSystem, agent: str, text: str) -> None:
    call = {"message": text, "agentId": agent, "idempotencyKey": f"{agent}-{text}"}
    run = system.gateway.call("agent", call)
    assert system.gateway.call("agent.wait", {"runId": run["runId"]})["status"] == "ok"


def lines_of(response: httpx.Response) -> Iterator[str]:
    """Yield the lines of a stream, which end with what ends them there; httpx knows more ends of a line."""
    rest = ""
    for text in response.iter_text():
        *lines, rest = (rest + text).split("\n")
        yield from lines


def followed(live: LiveGateway, number: int, *, token: str = TOKEN, **options: Any) -> list[dict[str, Any]]:
    """Return the next events of a stream: what each line of data says, with its id and its name."""
    found: list[dict[str, Any]] = []
    with live.http(token) as client, client.stream("GET", "/events", **options) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        event: dict[str, Any] = {}
        for line in lines_of(response):
            name, _, value = line.partition(": ")
            if name in {"id", "event"}:
                event[name] = value
            elif name == "data":
                event["data"] = json.loads(value)
            elif not line and "data" in event:
                found.append(event)
                event = {}
                if len(found) == number:
                    return found
    raise AssertionError(f"the stream ended: {found}")


def test_every_event_comes_with_its_position_as_its_id(live: LiveGateway) -> None:
    log = live.door.system.log
    head = log.head()

    events = followed(live, head, params={"after": 0})

    assert [int(event["id"]) for event in events] == list(range(1, head + 1))
    assert [event["event"] for event in events] == [recorded.topic for recorded in log.all(to=head)]
    assert all(event["data"]["position"] == int(event["id"]) for event in events)
    said = [event["data"]["event"] for event in events if event["event"] == "run_queued.1"]
    assert said[0]["message"]["content"] == "hello"


def test_a_stream_goes_on_where_it_was_cut(live: LiveGateway) -> None:
    first = followed(live, 3, params={"after": 0})

    rest = followed(live, 2, headers={"last-event-id": first[-1]["id"]}, params={"after": 0})

    assert [int(event["id"]) for event in rest] == [4, 5]


LEAVING = """
import socket, struct, sys
for _ in range(20):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        head = "GET /events?after=0 HTTP/1.1", f"host: 127.0.0.1:{sys.argv[1]}", f"authorization: Bearer {sys.argv[2]}"
        opened.sendall("\\r\\n".join((*head, "", "")).encode())
        assert opened.recv(1)
"""
"""A reader that goes as soon as the first byte is there, and leaves the rest unread."""


def test_who_has_gone_is_written_no_more(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = merged(SEES_ALL, GATEWAY)
    with (
        SessionSystem(tmp_path / "log.db", agents={"main": echo()}, config=config) as system,
        LiveGateway(system, limits=SHORT) as live,
    ):
        for number in range(20):
            say(system, "main", f"news {number}")
        # In a process of its own: in this one it would wait for the thread that writes.
        subprocess.run([sys.executable, "-c", LEAVING, str(live.port), TOKEN], check=True, timeout=WAIT)
        with live.http() as client:
            for _ in range(200):
                if not live.door.hub._listeners:
                    break
                assert client.get("/healthz").status_code == 200
        assert not live.door.hub._listeners

    assert [record.message for record in caplog.records if record.name == "asyncio"] == []


def test_what_is_committed_meanwhile_comes_at_once(live: LiveGateway) -> None:
    system = live.door.system
    head = system.log.head()
    with live.http() as client, client.stream("GET", "/events") as response:
        lines = response.iter_lines()
        assert next(lines) == "retry: 1000"
        say(system, "main", "fresh news")
        ids = [
            line.removeprefix("id: ")
            for line in take_until(lines, "run_completed.1")
            if line.startswith("id")
        ]

    assert int(ids[0]) == head + 1
    assert [int(each) for each in ids] == list(range(head + 1, head + 1 + len(ids)))


def take_until(lines: Iterator[str], topic: str) -> Iterator[str]:
    for line in lines:
        yield line
        if line == f"event: {topic}":
            return


@pytest.mark.clause("VIS-6")
def test_a_credential_follows_its_own_sessions_alone(live: LiveGateway) -> None:
    events = followed(live, 4, token=WRITER, params={"after": 0})

    assert {event["data"]["stream"] for event in events} == {"session:agent:ops:main"}


@pytest.mark.parametrize("stream", ["/events", "/debug/api/live"])
def test_no_proxy_is_to_hold_a_stream_back(live: LiveGateway, stream: str) -> None:
    """nginx keeps an answer until it has some kilobytes, if nobody says otherwise: a page would be live and never move."""
    with live.http() as client, client.stream("GET", stream) as response:
        assert response.headers["x-accel-buffering"] == "no"
        assert response.headers["cache-control"] == "no-store"


@pytest.mark.clause("VIS-6", "X2")
@pytest.mark.parametrize("stream", ["/events", "/debug/api/live"])
def test_that_others_are_at_work_makes_no_stream_more_silent(live: LiveGateway, stream: str) -> None:
    """Who hears nothing is told that the stream is still here as often as where nobody does anything."""
    system, over = live.door.system, threading.Event()

    def others() -> None:
        for number in range(5_000):
            if over.is_set():
                return
            say(system, "main", f"busy {stream} {number}")

    with (
        LiveGateway(system, limits=Limits(keep_alive_s=0.4)) as quiet,
        ThreadPoolExecutor(1) as busy,
        quiet.http(WRITER) as client,
        client.stream("GET", stream) as response,
    ):
        at_work = busy.submit(others)
        try:
            lines = list(islice(lines_of(response), 3))
            assert not at_work.done()
        finally:
            over.set()

    assert lines == ["retry: 1000", "", ": still here"]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"headers": {"last-event-id": "soon"}}, 400),
        ({"headers": {"last-event-id": "9" * 40}}, 400),
        ({"params": {"after": -1}}, 400),
        ({"params": {"after": "x"}}, 400),
        ({"params": {"after": 10**9}}, 400),
    ],
)
def test_no_stream_begins_at_what_is_no_place(
    live: LiveGateway, options: dict[str, Any], status: int
) -> None:
    with live.http() as client:
        response = client.get("/events", **options)

    assert response.status_code == status


@pytest.mark.clause("L7", "X10")
def test_a_stream_ends_with_its_credential_and_with_the_gateway(tmp_path: Path) -> None:
    config = merged(SEES_ALL, GATEWAY)
    with (
        SessionSystem(tmp_path / "log.db", agents={"main": echo()}, config=config) as system,
        LiveGateway(system, limits=SHORT) as made,
        made.http() as client,
    ):
        with client.stream("GET", "/events") as response:
            system.reload(merged(config, {"gateway": {"auth": {"token": "rotated"}}}))
            assert response.read().startswith(b"retry: 1000")
        with client.stream("GET", "/events", headers={"authorization": "Bearer rotated"}) as response:
            made.door.draining = True
            assert response.read().startswith(b"retry: 1000")


# --- the description


DEBUGGER = "/debug/api/"
STREAMS = {"/events", f"{DEBUGGER}live"}


def conform(live: LiveGateway, cases: int) -> None:
    """Call every route, and every tool, with whatever its description allows, and with what it does not."""
    with live.http() as client:
        document = client.get("/openapi.json").json()
    lenient = [check for check in CHECKS if check is not negative_data_rejection]
    # A query that nobody asked for is passed over.
    operations = [
        (api, lenient if api.path.startswith(("/events", "/metrics", DEBUGGER)) else CHECKS)
        for api in _operations(document, live.address)
    ]
    paths = {api.path for api, _ in operations}
    assert {path for path in paths if not path.startswith(DEBUGGER)} == {
        "/tools/invoke",
        "/events",
        "/healthz",
        "/metrics",
        "/readyz",
    }
    assert len(paths) > 20, "those of the web debugger are described, too"
    for tool, schema in zip(TOOLS, schemas(list(TOOLS), "mcp"), strict=True):
        (api,) = _operations(_of_tool(document, tool, schema["inputSchema"]), live.address)
        # What is no session of the three that are tried may be one all the same.
        operations.append((api, lenient))
    try:
        for api, checks in operations:
            # A stream of events would never end; from a gateway that is stopping, it has a beginning alone.
            live.door.draining = api.path in STREAMS
            _try(api, checks, cases)
    finally:
        live.door.draining = False


def _try(api: Any, checks: list[Any], cases: int) -> None:
    negative = bool(api.body) or api.path == "/events"
    strategy = st.one_of(
        api.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE),
        *([api.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)] if negative else []),
    )

    @given(case=strategy)
    @settings(max_examples=cases, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    def try_it(case: Any) -> None:
        case.call_and_validate(headers={"authorization": f"Bearer {TOKEN}"}, checks=checks)

    try_it()


def _operations(document: dict[str, Any], address: str) -> list[Any]:
    schema = schemathesis.openapi.from_dict(document)
    schema.config.base_url = address
    found = list(schema.get_all_operations())
    assert all(isinstance(each, Ok) for each in found)
    return [each.ok() for each in found if isinstance(each, Ok)]


def _of_tool(document: dict[str, Any], tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the description of `POST /tools/invoke` for one tool, with the tool's own arguments."""
    post = json.loads(json.dumps(document["paths"]["/tools/invoke"]["post"]))
    post["requestBody"]["content"]["application/json"]["schema"] = {
        "type": "object",
        "properties": {
            "tool": {"enum": [tool]},
            "args": arguments,
            "sessionKey": {"enum": ["agent:main:main", "agent:ops:main", "agent:main:nowhere"]},
        },
        "required": ["tool", "args"],
        "additionalProperties": False,
    }
    return document | {"paths": {"/tools/invoke": {"post": post}}}


@pytest.mark.long
@pytest.mark.clause("X6")
@pytest.mark.ci
def test_nothing_breaks_and_nothing_is_undeclared(live: LiveGateway) -> None:
    conform(live, 6)


@pytest.mark.nightly
@pytest.mark.clause("X6")
@pytest.mark.timeout(3600)
def test_nothing_breaks_and_nothing_is_undeclared_in_ten_thousand_calls(live: LiveGateway) -> None:
    conform(live, 10_000)


# --- frames in any order


class Wire:
    """A connection's logic in nobody's hands: what it wants done is done at once, as a shell would."""

    def __init__(self) -> None:
        clock = ManualClock()
        self.connection = Connection(
            nonce="n",
            address="10.0.0.1",
            credentials=Credentials(lambda: AUTH),
            attempts=FailedAttempts(clock.monotonic),
            now_ms=clock.now_ms,
            parse_key=SessionKey.parse,
        )
        self.sent: list[dict[str, Any]] = []
        self.closed: Close | None = None
        self.performed: list[str] = []
        self.do(self.connection.opened())

    def do(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(text=text):
                    assert self.closed is None, "nothing is sent after the close"
                    self.sent.append(json.loads(text))
                case Close():
                    self.closed = effect
                case Welcome(request_id=request_id):
                    self.do(self.connection.welcomed(request_id, {"type": "hello-ok"}))
                case Perform(request_id=request_id, method=method):
                    self.performed.append(method)
                    if method == "health":
                        self.do(self.connection.answered(request_id, {"ok": True}))
                    else:
                        refused = ToolRefused("invalid_request", "not here")
                        self.do(self.connection.refused(request_id, refused))


AUTH = GatewayAuth(token=TOKEN)
words = st.sampled_from(
    ["req", "res", "event", "connect", "health", "agent", "chat.send", "", "x" * 300, TOKEN, "\ud800"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
frames = st.one_of(
    st.text(max_size=50),
    st.binary(max_size=50),
    values.map(json.dumps),
    st.fixed_dictionaries(
        {"type": st.just("req"), "id": words, "method": words},
        optional={"params": values | st.just({**CONNECT, "auth": {"token": TOKEN}}), "extra": values},
    ).map(json.dumps),
)


def check_frames(sequence: list[str | bytes]) -> None:
    wire = Wire()
    for frame in sequence:
        before = len(wire.sent)
        wire.do(wire.connection.received(frame))
        assert wire.closed is not None or len(wire.sent) > before, (
            "a frame is answered, or ends the connection"
        )
        if wire.performed:
            assert wire.connection.credential is not None, "nothing is done for strangers"
    for sent in wire.sent:
        assert sent["type"] in {"event", "res"}
        if sent["type"] == "res" and not sent["ok"]:
            assert sent["error"]["code"] in {"INVALID_REQUEST", "UNAVAILABLE"}
            assert sent["error"]["message"]
    if wire.closed is not None:
        assert wire.closed.code in {1002, 1008, 1009}
        assert len(wire.closed.reason.encode()) <= 123


@pytest.mark.clause("X8")
@given(st.lists(frames, min_size=1, max_size=6))
@settings(max_examples=200, deadline=None)
def test_any_frames_in_any_order_are_answered_or_end_the_connection(sequence: list[str | bytes]) -> None:
    check_frames(sequence)


@pytest.mark.clause("X8")
@given(st.lists(frames, min_size=1, max_size=6))
@settings(max_examples=200, deadline=None)
def test_any_frames_from_who_is_in_are_answered(sequence: list[str | bytes]) -> None:
    connect = {"type": "req", "id": "c", "method": "connect", "params": {**CONNECT, "auth": {"token": TOKEN}}}

    check_frames([json.dumps(connect), *sequence])


@pytest.mark.nightly
@pytest.mark.clause("X8")
@pytest.mark.timeout(3600)
@given(st.lists(frames, min_size=1, max_size=12))
@settings(max_examples=100_000, deadline=None)
def test_a_million_frames_are_answered_or_end_the_connection(sequence: list[str | bytes]) -> None:
    check_frames(sequence)


@pytest.mark.clause("X5", "X10")
def test_addresses_that_are_one_have_one_bucket() -> None:
    assert normalised("::ffff:1.2.3.4") == normalised("1.2.3.4") == "1.2.3.4"  # G16
    assert normalised("2001:db8::1") == normalised("2001:db8::ffff")
    assert normalised("2001:db8:1::1") != normalised("2001:db8:2::1")
    assert normalised(None) == normalised("nonsense") == "unknown"


@pytest.mark.clause("X10")
@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", [b"192.0.2.1"], "192.0.2.1"),
        ("10.0.0.1", [b"192.0.2.9, 192.0.2.1 ,10.0.0.2"], "192.0.2.1"),
        ("10.0.0.1", [b"192.0.2.9", b"192.0.2.1", b"10.0.0.2"], "192.0.2.1"),
        ("10.0.0.1", [b"192.0.2.1:4711"], "192.0.2.1"),
        ("10.0.0.1", [b"[2001:db8::7]:4711"], "2001:db8::/64"),
        ("::ffff:10.0.0.1", [b"192.0.2.1"], "192.0.2.1"),
        ("10.0.0.1", [b"10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", [b"192.0.2.9, nonsense, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", [b""], "10.0.0.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("192.0.2.5", [b"192.0.2.1"], "192.0.2.5"),
        (None, [b"192.0.2.1"], "unknown"),
    ],
)
def test_a_client_is_whom_the_trusted_proxies_name(
    peer: str | None, forwarded: list[bytes], client: str
) -> None:
    headers = [(b"X-Forwarded-For", value) for value in forwarded]

    assert client_address(peer, headers, trusted=("10.0.0.0/8",)) == client
    assert client_address(peer, headers, trusted=()) == normalised(peer)


@pytest.mark.clause("X10")
def test_a_hundred_thousand_wrong_tokens_are_ten_failures_a_minute() -> None:
    clock = ManualClock()
    attempts = FailedAttempts(clock.monotonic)
    looked = 0
    for _ in range(100_000):
        if attempts.wait_for("10.0.0.1") == 0:
            looked += 1
            attempts.failed("10.0.0.1")
        clock.advance(1)
    for number in range(100_000):
        attempts.failed(str(number))

    assert looked <= 10 * (100_000 / 60_000 + 1)
    assert len(attempts) <= 10_000


def test_a_row_that_can_not_be_read_is_left_out_of_the_stream_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Before: whoever follows missed an event, and nothing said so."""
    path = tmp_path / "log.db"
    with SessionSystem(path, agents={"main": echo()}, config=merged(SEES_ALL, GATEWAY)) as system:
        say(system, "main", "hello")
        head = system.log.head()
    changed_behind(path, "UPDATE stored_events SET state=x'00' WHERE rowid=3")
    with (
        SessionSystem(path, agents={"main": echo()}, config=merged(SEES_ALL, GATEWAY)) as system,
        LiveGateway(system, limits=SHORT) as made,
    ):
        events = followed(made, head - 1, params={"after": 0})

    assert [int(event["id"]) for event in events] == [n for n in range(1, head + 1) if n != 3]
    (line,) = [record for record in caplog.records if "is in no event stream" in record.msg]
    assert (line.name, line.levelname) == ("intersession.gateway", "WARNING")
    assert line.getMessage().startswith("position 3 ")
