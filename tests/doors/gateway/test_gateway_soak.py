"""Clients that come and go, and readers that follow for long, leave nothing behind at the gateway."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from intersession import SessionSystem, echo
from intersession.gateway.admission.limits import Limits
from intersession_actors.assembly.system.follow import followed
from intersession_events.stores.opened import open_log
from intersession_projections.views.inline_views import inline_views
from support.doors.gateway_live import GATEWAY, LiveGateway
from support.running import SEES_ALL, merged
from support.soaking import grown, held, resident_bytes, settled, until

MAIN = "agent:main:main"
SOON = {"runs": {"idleSeconds": 0.05}, "views": {"afterSeconds": 0}}
PATIENT = Limits(handshake_s=600.0)
"""No timer of a connection may outlive it: one that did would keep it for longer than is waited here."""


@pytest.fixture
def system(tmp_path: Path) -> Iterator[SessionSystem]:
    config = merged(SEES_ALL, GATEWAY, SOON)
    with SessionSystem(tmp_path / "log.db", agents={"main": echo()}, config=config) as made:
        yield made


def come_and_go(live: LiveGateway, number: int) -> None:
    """Have one client of each kind come: one that says goodbye, one that is cut off, ones that are refused, and over HTTP."""
    with live.client() as client:
        client.request("sessions.list", {})
        client.request("agent", {"message": "x", "sessionKey": MAIN, "idempotencyKey": f"{number}"})
    with live.socket() as opened:
        opened.socket.close()
    with live.socket() as opened, suppress(ConnectionClosed):  # it may be closed before the second
        opened.send("no frame")
        opened.send("none either")
    live.invoke("sessions_list")
    if not number % 10:  # who has a wrong token is slowed down
        live.invoke("sessions_list", token=f"wrong {number}")
    with live.http() as http, http.stream("GET", "/events") as events:
        next(events.iter_raw())


def quiet(system: SessionSystem, nobody: Mapping[str, int]) -> None:
    """Wait until everything is over and all clients are gone, as when there was nobody."""
    settled(system)
    gone = ("CappedWebSocket", "Hold")
    until(lambda: (now := held()) and all(now[name] <= nobody.get(name, 0) for name in gone))


def soak(system: SessionSystem, clients: int) -> dict[str, int]:
    """Return what there is more of after so many clients of each kind than after a few."""
    with LiveGateway(system, limits=PATIENT) as live:
        nobody = held()
        for number in range(2):
            come_and_go(live, number)
        quiet(system, nobody)
        before = held()
        for number in range(clients):
            come_and_go(live, number + 2)
        quiet(system, nobody)
        return grown(before, held(), by=max(4, clients // 4))


@pytest.mark.clause("L9")
@pytest.mark.ci
def test_clients_that_left_leave_nothing_behind(system: SessionSystem) -> None:
    """Before: it grew without a bound."""
    assert soak(system, 3) == {}


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.clause("L9")
def test_hundreds_of_clients_leave_nothing_behind(system: SessionSystem) -> None:
    memory = resident_bytes()

    assert soak(system, 300) == {}
    assert resident_bytes() - memory < 48 * 1024 * 1024


def write(system: SessionSystem, messages: int) -> None:
    tools = system.tools()
    for number in range(messages):
        tools.call("sessions_send", {"sessionKey": MAIN, "message": f"{number}"})


def followed_for(system: SessionSystem, path: Path, messages: int) -> dict[str, int]:
    """Return what a reader beside the writer holds more of after so many messages than after a few."""
    with open_log(f"sqlite:///{path}", read_only=True, inline=inline_views()) as log:
        after = 0
        counts = []
        for more in (5, messages):
            write(system, more)
            settled(system)
            head = system.log.head()
            while after < head:
                for recorded in followed(log, after, timeout=0.2):
                    after = recorded.position
            counts.append(held())
    return grown(*counts, by=max(4, messages // 4))


@pytest.mark.clause("L9")
@pytest.mark.parametrize(
    "messages",
    [8, pytest.param(2000, marks=[pytest.mark.nightly, pytest.mark.timeout(1800)])],
)
@pytest.mark.ci
def test_who_follows_a_log_for_long_holds_no_more(
    system: SessionSystem, tmp_path: Path, messages: int
) -> None:
    assert followed_for(system, tmp_path / "log.db", messages) == {}
