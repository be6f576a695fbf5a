"""Chains and storms of messages end at a limit that is named (LOOP-5)."""

import threading
from collections import Counter
from typing import Any

import pytest

from intersession import SessionSystem, Turn
from intersession_events.facts import ExchangeAccepted, ExchangeClosed, RunQueued, SendRefused
from intersession_events.log.recorded import parts_in
from support.every_day import every_day

OPEN_TO_ALL: dict[str, Any] = {
    "tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}},
}


def limited(turns: int = 0, **limits: int) -> dict[str, Any]:
    return OPEN_TO_ALL | {"session": {"agentToAgent": {"maxPingPongTurns": turns, "limits": limits}}}


def passes_on(*targets: str) -> Any:
    """Make an agent that hands every message on to others, without waiting, and says nothing else."""

    def agent(turn: Turn) -> str:
        if turn.step == "announce":
            return "ANNOUNCE_SKIP"
        if turn.step == "message":
            for target in targets:
                turn.tools.call(
                    "sessions_send", {"agentId": target, "message": turn.message, "timeoutSeconds": 0}
                )
        return "passed on"

    return agent


def until_calm(system: SessionSystem, timeout: float = 60.0) -> None:
    """Wait until no run and no exchange is open; `timeout` is for each commit until then, in seconds."""
    changed = threading.Event()
    stop = system.log.on_committed(lambda _batch: changed.set())
    while system.service.runs.open_runs() or system.service.flows.open_exchanges():
        assert changed.wait(timeout), "the storm did not end"
        changed.clear()
    stop()


def events_of(system: SessionSystem, kind: type) -> list[Any]:
    return [recorded.event for recorded in parts_in(system.log.all()) if isinstance(recorded.event, kind)]


@pytest.mark.clause("LOOP-5", "L2")
def test_a_chain_through_several_sessions_and_back_ends_at_the_hop_limit(log_url: str) -> None:
    agents = {"a": passes_on("b"), "b": passes_on("c"), "c": passes_on("a")}
    with SessionSystem(log_url, agents=agents, config=limited(hops=8, revisits=0)) as system:
        system.inbound(channel="x", chat_id="1", sender="1", text="go", agent_id="a", wait=10)
        until_calm(system)
        accepted, refused = events_of(system, ExchangeAccepted), events_of(system, SendRefused)

    assert [exchange.hops for exchange in accepted] == list(range(1, 9))
    assert [refusal.limit for refusal in refused] == ["session.agentToAgent.limits.hops"]


@pytest.mark.clause("LOOP-5", "L2")
def test_a_chain_that_comes_back_too_often_ends_at_the_revisit_limit(log_url: str) -> None:
    agents = {"a": passes_on("b"), "b": passes_on("c"), "c": passes_on("a")}
    with SessionSystem(log_url, agents=agents, config=limited(hops=0, revisits=2)) as system:
        system.inbound(channel="x", chat_id="1", sender="1", text="go", agent_id="a", wait=10)
        until_calm(system)
        refused = events_of(system, SendRefused)
        visits = Counter(exchange.target for exchange in events_of(system, ExchangeAccepted))

    assert [refusal.limit for refusal in refused] == ["session.agentToAgent.limits.revisits"]
    assert max(visits.values()) <= 3


@pytest.mark.ci
@pytest.mark.clause("LOOP-5", "L2")
@pytest.mark.parametrize("turns", every_day([0, 5], 5))
def test_a_storm_of_17_agents_never_runs_more_often_than_its_limit(log_url: str, turns: int) -> None:
    names = [f"agent-{number}" for number in range(17)]
    agents = {
        name: passes_on(*(names[(index + step) % 17] for step in (1, 5, 11)))
        for index, name in enumerate(names)
    }
    with SessionSystem(
        log_url,
        agents=agents,
        config=limited(turns, hops=0, revisits=0, runs=64),
    ) as system:
        system.inbound(channel="x", chat_id="1", sender="1", text="go", agent_id=names[0], wait=10)
        until_calm(system)
        runs = events_of(system, RunQueued)
        refused = events_of(system, SendRefused)
        accepted, closed = events_of(system, ExchangeAccepted), events_of(system, ExchangeClosed)

    loops = sum(run.step != "announce" for run in runs)
    assert {refusal.limit for refusal in refused} == {"session.agentToAgent.limits.runs"}
    assert loops <= 64
    assert len(accepted) == len(closed)
