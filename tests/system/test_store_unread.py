"""A server that can't be reached for a while under a running system: nothing is given up for that, and nobody is told an error of its own."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from intersession import SessionSystem, Turn
from intersession_actors.running.failures.failure import Failure
from intersession_events.facts import ExchangeClosed, RunCompleted
from intersession_events.stores.postgres.address import address_of
from support.postgres.network import Network, network
from support.postgres.server import Server
from support.running import QUIET, SEES_ALL, WAIT, Gate, exchange_of, merged, wait_for, wait_for_number
from support.story import MAIN

pytestmark = pytest.mark.postgres

OPS = "agent:ops:main"


@pytest.fixture
def between(postgres: Server) -> Iterator[Network]:
    with network(postgres.directory) as made:
        yield made


@pytest.fixture
def url(between: Network, postgres_url: str) -> str:
    return between.url(address_of(postgres_url).schema)


def gone(between: Network, postgres: Server) -> None:
    between.to = postgres.directory / "gone"
    between.cut()


def sent(system: SessionSystem, text: str, seconds: float = 0) -> dict[str, Any]:
    given = {"sessionKey": OPS, "message": text, "timeoutSeconds": seconds}
    return dict(system.tools(MAIN).call("sessions_send", given))


@pytest.mark.clause("PG2", "D5")
def test_a_flow_that_can_not_be_resumed_while_the_server_is_away_is_resumed_later(
    url: str, between: Network, postgres: Server
) -> None:
    gate, told = Gate(), threading.Event()

    def heard(failure: Failure) -> None:
        if failure.kind == "store_trouble":
            told.set()

    agents = {"main": lambda _: "hm", "ops": gate.saying("well")}
    with SessionSystem(url, agents=agents, config=merged(SEES_ALL, QUIET), on_failure=heard) as system:
        run_id = str(sent(system, "status?")["runId"])
        gate.reached()
        gone(between, postgres)
        system._parts.service.world.mail.resume_flow(exchange_of(system, run_id))
        assert told.wait(WAIT)
        between.to = postgres.directory
        gate.open()
        wait_for(system, ExchangeClosed)

        assert system.status()["degraded"] == {}


@pytest.mark.clause("PG2", "L3")
def test_an_agent_is_answered_unavailable_where_the_log_can_not_be_read(
    url: str, between: Network, postgres: Server
) -> None:
    answers: list[Any] = []
    back = threading.Event()

    def agent(turn: Turn) -> str:
        gone(between, postgres)
        answers.append(turn.tools.call("sessions_list", {}))
        between.to = postgres.directory
        back.set()
        return "done"

    with SessionSystem(url, agents={"main": agent}, config=SEES_ALL) as system:
        system.inbound(channel="x", chat_id="1", sender="1", text="hi")
        assert back.wait(WAIT)
        wait_for(system, RunCompleted)

    assert [answer["code"] for answer in answers] == ["unavailable"]


@pytest.mark.clause("PG2", "SEND-5")
def test_a_send_that_was_accepted_is_not_refused_since_its_end_can_not_be_looked_for(
    url: str, between: Network, postgres: Server
) -> None:
    """The server goes as the run begins, at whatever moment of the send that is."""
    back = threading.Event()

    def ops(_: Turn) -> str:
        gone(between, postgres)
        back.wait(WAIT)
        return "well"

    with SessionSystem(
        url, agents={"main": lambda _: "hm", "ops": ops}, config=merged(SEES_ALL, QUIET)
    ) as system:
        for number in range(1, 9):
            back.clear()
            answer = sent(system, f"{number}", 0.2)
            between.to = postgres.directory
            back.set()
            wait_for_number(system, ExchangeClosed, number)

            assert (answer["status"], answer.get("delivered")) == ("timeout", True), answer
        assert system.service.wait_graph.waiting_runs() == frozenset()
