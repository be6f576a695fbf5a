"""What a session, a spawn or a single run asks for is what its agent's endpoint is asked for."""

from http.server import ThreadingHTTPServer
from typing import Any

import pytest

from intersession import SessionSystem, Turn, load_config
from intersession_actors.outside.agents.configured import configured_agents
from intersession_events.facts import RunStarted, SpawnClosed
from support.doors.scripted_endpoint import Endpoint
from support.running import wait_for


def settings(server: ThreadingHTTPServer) -> dict[str, Any]:
    provider = {
        "baseUrl": f"http://127.0.0.1:{server.server_address[1]}/v1",
        "models": [{"id": "one"}, {"id": "two", "reasoning": True}],
    }
    mute = {"api": "anthropic-messages", "models": [{"id": "three"}]}
    return {
        "agents": {"defaults": {"model": "fake/one"}},
        "models": {"providers": {"fake": provider, "mute": mute}},
    }


def asked_for() -> list[tuple[str, str | None]]:
    return [(request["model"], request.get("reasoning_effort")) for request in Endpoint.asked]


def said(system: SessionSystem, **fields: Any) -> Any:
    key = f"after {system.log.head()}"
    accepted = system.gateway.call(
        "agent", {"message": "hi", "sessionKey": "main", "idempotencyKey": key, **fields}
    )
    return system.gateway.call("agent.wait", {"runId": accepted["runId"], "timeoutMs": 20_000})


@pytest.mark.clause("GATE-2")
def test_a_patched_model_answers_from_then_on_until_it_is_cleared(
    log_url: str, endpoint: ThreadingHTTPServer
) -> None:
    config = settings(endpoint)
    agents = configured_agents(load_config(config).config).agents
    with SessionSystem(log_url, agents=agents, config=config) as system:
        said(system)
        system.gateway.call("sessions.patch", {"key": "main", "model": "two", "thinkingLevel": "high"})
        said(system)
        said(system, thinking="low")
        said(system, thinking="off")
        system.gateway.call("sessions.patch", {"key": "main", "model": None})
        said(system)
        starts = [item.event for item in system.log.all() if isinstance(item.event, RunStarted)]

    # A model that does not say that it reasons is not told how much to.
    assert asked_for() == [("one", None), ("two", "high"), ("two", "low"), ("two", None), ("one", None)]
    assert [(start.model, start.thinking) for start in starts] == [
        (None, None),
        ("fake/two", "high"),
        ("fake/two", "low"),
        ("fake/two", "off"),
        (None, "high"),
    ]


@pytest.mark.clause("SPAWN-1", "SPAWN-4")
def test_a_child_runs_on_the_model_it_was_spawned_with(log_url: str, endpoint: ThreadingHTTPServer) -> None:
    config = settings(endpoint)
    agents = configured_agents(load_config(config).config).agents
    with SessionSystem(log_url, agents=agents, config=config) as system:
        system.gateway.call("sessions.patch", {"key": "main", "label": "front"})
        spawned = system.tools("agent:main:main").call(
            "sessions_spawn", {"task": "count", "model": "fake/two", "thinking": "minimal"}
        )
        assert spawned["status"] == "accepted"
        wait_for(system, SpawnClosed)

    # The task and the announce are the child's; its result is handed to the requester, whose agent has its own model.
    assert asked_for()[:2] == [("two", "minimal")] * 2
    assert asked_for()[2:] in ([], [("one", None)])


@pytest.mark.clause("GATE-2")
def test_a_model_that_can_not_be_called_fails_the_run_and_says_why(
    log_url: str, endpoint: ThreadingHTTPServer
) -> None:
    config = settings(endpoint)
    agents = configured_agents(load_config(config).config).agents
    with SessionSystem(log_url, agents=agents, config=config) as system:
        system.gateway.call("sessions.patch", {"key": "main", "model": "mute/three"})
        ended = said(system)

    assert ended["status"] == "error"
    assert "models.providers.mute.baseUrl" in ended["error"]
    assert Endpoint.asked == []


@pytest.mark.clause("GATE-2")
def test_agents_of_the_hosts_own_are_told_what_is_asked_for(log_url: str) -> None:
    seen: list[tuple[str | None, str | None]] = []

    def agent(turn: Turn) -> str:
        seen.append((turn.model, turn.thinking))
        return "done"

    with SessionSystem(log_url, agents={"main": agent}) as system:
        said(system)
        system.gateway.call("sessions.patch", {"key": "main", "model": "some/model"})
        said(system, thinking="xhigh")

    assert seen == [(None, None), ("some/model", "xhigh")]
