"""What one credential has open never shuts out the others: streams, connections, waits, kept sockets (C3)."""

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed

from intersession import SessionSystem, echo
from intersession.gateway.admission.credentials import Credential
from intersession.gateway.admission.limits import Limits
from intersession.gateway.admission.shares import Hold, Shares
from intersession_actors.calls.service.callers import OPERATOR, Caller
from support.doors.gateway_live import GATEWAY, READER, TOKEN, WAIT, WRITER, LiveGateway, WireClient
from support.running import QUIET, SEES_ALL, Gate, merged

Serve = Callable[[Limits], LiveGateway]
SMALL = Limits(connections=12, share=4, reserve=4, waits=5, waits_share=2)
THIRD, FOURTH = "a-third-token", "a-fourth-token"
CREDENTIALS: list[dict[str, Any]] = [
    *GATEWAY["gateway"]["auth"]["credentials"],
    {"name": "third", "token": THIRD, "actAs": ["agent:main:*"]},
    {"name": "fourth", "token": FOURTH, "actAs": ["agent:main:*"]},
]


@pytest.fixture
def live(tmp_path: Path, gate: Gate) -> Iterator[LiveGateway]:
    config = merged(SEES_ALL, QUIET, GATEWAY, {"gateway": {"auth": {"credentials": CREDENTIALS}}})
    agents: dict[str, Any] = {"main": gate.stop, "ops": echo()}
    with (
        SessionSystem(tmp_path / "log.db", agents=agents, config=config) as system,
        LiveGateway(system, limits=SMALL) as made,
    ):
        yield made
        gate.open()


class Streams:
    """Event streams of somebody, opened one after the other."""

    def __init__(self, live: LiveGateway, stack: ExitStack, token: str) -> None:
        self._http = stack.enter_context(live.http(token))
        self._stack = stack
        self.responses: list[httpx.Response] = []

    def open(self, number: int) -> list[int]:
        """Open some; return their statuses."""
        opened = [self._stack.enter_context(self._http.stream("GET", "/events")) for _ in range(number)]
        self.responses += opened
        return [response.status_code for response in opened]


@pytest.mark.clause("L6", "X10")
def test_a_credential_has_its_share_of_event_streams_and_the_others_come_in(live: LiveGateway) -> None:
    with ExitStack() as stack:
        reader = Streams(live, stack, READER)
        statuses = reader.open(6)
        operator = Streams(live, stack, TOKEN).open(2)
        other = live.invoke("agents_list", token=WRITER, sessionKey="agent:ops:main")
        with live.client(WRITER) as client:
            assert client.request("health")["ok"]

    assert statuses == [200] * 4 + [429] * 2
    assert operator == [200] * 2
    assert other.status_code == 200


@pytest.mark.clause("L6")
def test_who_holds_the_most_gives_way_to_who_holds_less_and_the_reserve_stays(live: LiveGateway) -> None:
    with ExitStack() as stack:
        first, second = Streams(live, stack, READER), Streams(live, stack, WRITER)
        assert first.open(4) + second.open(4) == [200] * 8
        third = Streams(live, stack, THIRD).open(1)
        ended = b"".join(first.responses[0].iter_raw())
        with live.client(FOURTH) as client:
            assert client.request("health")["ok"]
            held = {
                name: len(live.door.open._held.get(f"credential:{name}", ()))
                for name in ("reader", "ops", "third")
            }
            assert live.invoke("agents_list").status_code == 200

    assert third == [200]
    assert ended == b"retry: 1000\n\n"  # it came to its end, and can go on behind its last position
    assert sorted(held.values()) == [1, 3, 3]


@pytest.mark.clause("L6")
def test_a_credential_has_its_share_of_connections_too(live: LiveGateway) -> None:
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(live.client(READER))
        with live.socket() as opened:
            client = WireClient(opened)
            client.challenge()
            refused = client.connect(READER)
            with pytest.raises(ConnectionClosed) as closed:
                client.receive()
        with live.client(WRITER) as other, live.client() as operator:
            assert other.request("health")["ok"]
            assert operator.request("health")["ok"]

    assert refused["error"]["retryable"] is True
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1013


@pytest.mark.clause("L6")
def test_a_credential_has_its_share_of_waits(live: LiveGateway, gate: Gate) -> None:
    with (
        live.client(scopes=["operator.admin"]) as operator,
        live.client(READER) as client,
        live.client(READER) as more,
    ):
        call = {"message": "hi", "idempotencyKey": "k", "sessionKey": "agent:main:main"}
        run_id = operator.request("agent", call)["payload"]["runId"]
        gate.reached()
        wait = {"runId": run_id, "timeoutMs": 60_000}
        waits = [client.ask("agent.wait", wait) for _ in range(2)]
        refused, elsewhere = client.request("health"), more.request("health")
        mine = operator.request("health")
        gate.open()
        answers = [client.answer(each)["payload"]["status"] for each in waits]
        assert client.request("health")["ok"]

    assert (refused["error"]["code"], refused["error"]["retryable"]) == ("UNAVAILABLE", True)
    assert elsewhere["error"] == refused["error"]
    assert mine["ok"]
    assert answers == ["ok", "ok"]


@pytest.mark.clause("L6")
def test_a_socket_that_is_only_kept_for_later_gives_way(live: LiveGateway) -> None:
    """Else a request on each of them every few seconds would hold them all."""

    def answered(kept: socket.socket) -> bytes:
        kept.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        said = b""
        while not said.endswith(b'{"ok":true}'):
            said += kept.recv(65536)
        return said

    with ExitStack() as stack:
        kept = [
            stack.enter_context(socket.create_connection(("127.0.0.1", live.port), WAIT)) for _ in range(12)
        ]
        for each in kept:
            assert answered(each).startswith(b"HTTP/1.1 200 ")
        with live.client() as operator:
            assert operator.request("health")["ok"]
        assert kept[0].recv(65536) == b""
        assert answered(kept[-1]).startswith(b"HTTP/1.1 200 ")


# --- the rule itself


def credential(name: str | None) -> Credential:
    caller = OPERATOR if name is None else Caller.by_credential(name, ("agent:main:*",))
    return Credential(b"", caller, frozenset({"operator.read"}))


@given(
    st.integers(2, 12),
    st.integers(1, 6),
    st.integers(1, 6),
    st.lists(
        st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans(), st.integers(0, 30)), max_size=60
    ),
)
def test_nobody_has_more_than_a_share_and_who_has_less_finds_room(
    most: int, each: int, reserve: int, steps: list[tuple[str | None, bool, int]]
) -> None:
    shares = Shares(most=most, each=each, reserve=reserve)
    held: dict[Hold, str | None] = {}
    together = max(1, most - reserve)
    for name, takes, at in steps:
        if not takes and held:
            hold = list(held)[at % len(held)]
            del held[hold]
            hold.release()
            hold.release()
            continue
        before = Counter(held.values())
        taken = shares.take(credential(name))
        limited = {who: number for who, number in before.items() if who is not None}
        if taken is not None:
            taken.give_way = partial(held.__delitem__, taken)
            held[taken] = name
        elif name is None:
            assert before[None] >= together
        else:
            full = sum(limited.values()) >= together
            assert before[name] >= min(each, together) or (full and max(limited.values()) <= before[name] + 1)
        now = Counter(held.values())
        for who, number in now.items():
            assert number <= (together if who is None else min(each, together))
            assert len(shares._held.get("operator" if who is None else f"credential:{who}", ())) == number
        assert sum(number for who, number in now.items() if who is not None) <= together


@pytest.mark.clause("VIS-6")
def test_a_call_as_a_session_needs_one_thread_of_the_doors_and_no_other(tmp_path: Path) -> None:
    """Before: who calls was looked up on threads that everything else in the process shares, too."""
    go_on = threading.Event()
    with (
        SessionSystem(tmp_path / "log.db", agents={"main": echo()}, config=GATEWAY) as system,
        LiveGateway(system) as live,
    ):
        for _ in range(64):
            live.loop.call_soon_threadsafe(live.loop.run_in_executor, None, go_on.wait, WAIT)
        try:
            answers = [
                live.invoke("agents_list", token=token, sessionKey="agent:main:main").json()
                for token in (TOKEN, READER)
            ]
            beyond = live.invoke("agents_list", token=WRITER, sessionKey="agent:main:main")
        finally:
            go_on.set()

    assert [answer["result"]["details"]["requester"] for answer in answers] == ["main", "main"]
    assert (beyond.status_code, beyond.json()["error"]["code"]) == (403, "not_visible")
