"""What somebody had chosen for a session in the other system holds after its import; what was only noted does not."""

from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem, Turn, load_config
from intersession_actors.outside.agents.configured import configured_agents
from intersession_events.facts import RunStarted
from support.doors.scripted_endpoint import Endpoint
from support.openclaw.samples import header, message, said, write_state

NOTES = "agent:main:notes"
LEVELS = {
    "reasoningLevel": "stream",
    "elevatedLevel": "ask",
    "responseUsage": "tokens",
    "groupActivation": "always",
}


def settings(server: ThreadingHTTPServer) -> dict[str, Any]:
    provider = {
        "baseUrl": f"http://127.0.0.1:{server.server_address[1]}/v1",
        "models": [{"id": "one"}, {"id": "two"}],
    }
    return {"agents": {"defaults": {"model": "fake/one"}}, "models": {"providers": {"fake": provider}}}


def state(root: Path, **entry: Any) -> Path:
    lines = [header("s-1"), message("s-1-0", said("hello"), 0)]
    return write_state(
        root, lines, entries={NOTES: {"sessionId": "s-1", "updatedAt": 1772442000000, **entry}}
    )


def answer(system: SessionSystem, text: str = "go on") -> Any:
    asked = system.gateway.call("chat.send", {"sessionKey": NOTES, "message": text, "idempotencyKey": text})
    return system.gateway.call("agent.wait", {"runId": asked["runId"], "timeoutMs": 20_000})


@pytest.mark.clause("IMP-1")
@pytest.mark.parametrize(
    ("entry", "asked"),
    [
        ({}, "one"),
        ({"model": "gone-1"}, "one"),
        ({"model": "gone-1", "modelProvider": "elsewhere"}, "one"),
        ({"model": "gone-1", "modelOverride": "two"}, "two"),
        ({"model": "gone-1", "modelOverride": "two", "providerOverride": "fake"}, "two"),
    ],
)
def test_an_imported_session_runs_on_the_model_that_was_chosen_for_it(
    log_url: str, endpoint: ThreadingHTTPServer, tmp_path: Path, entry: dict[str, Any], asked: str
) -> None:
    """Before: a model that was only noted was taken for one that somebody had chosen."""
    config = settings(endpoint)
    agents = configured_agents(load_config(config).config).agents
    with SessionSystem(log_url, agents=agents, config=config) as system:
        system.import_openclaw(state(tmp_path, **entry))
        ended = answer(system)
        row = system.service.sessions.get(NOTES)

    assert ended["status"] == "ok", ended
    assert [request["model"] for request in Endpoint.asked] == [asked]
    assert row is not None
    assert (row.model_override is not None) == ("modelOverride" in entry)


@pytest.mark.clause("IMP-1", "GATE-2")
def test_a_chosen_model_whose_provider_is_not_here_is_named_with_the_way_out(
    log_url: str, endpoint: ThreadingHTTPServer, tmp_path: Path
) -> None:
    config = settings(endpoint)
    agents = configured_agents(load_config(config).config).agents
    with SessionSystem(log_url, agents=agents, config=config) as system:
        system.import_openclaw(state(tmp_path, modelOverride="none", providerOverride="nope"))
        first = answer(system)
        system.gateway.call("sessions.patch", {"key": NOTES, "model": None})
        second = answer(system, "and now")

    assert first["status"] == "error"
    assert "models.providers.nope: is not configured; model 'nope/none' needs it" in first["error"]
    assert "sessions.patch" in first["error"]
    assert second["status"] == "ok"


@pytest.mark.clause("GATE-2", "IMP-1")
def test_settings_of_the_original_are_kept_shown_and_told_to_the_agent(log_url: str, tmp_path: Path) -> None:
    told: list[dict[str, str]] = []

    def main(turn: Turn) -> str:
        told.append(dict(turn.settings))
        return "yes"

    with SessionSystem(log_url, agents={"main": main}) as system:
        system.import_openclaw(state(tmp_path, **LEVELS))
        answer(system)
        patched = system.gateway.call(
            "sessions.patch",
            {"key": NOTES, "reasoningLevel": "on", "elevatedLevel": "full", "responseUsage": None},
        )
        answer(system, "again")
        [row] = system.gateway.call("sessions.list")["sessions"]
        starts = [item.event.settings for item in system.log.all() if isinstance(item.event, RunStarted)]

    assert patched["entry"]["reasoningLevel"] == "on"
    assert patched["notices"] == ["elevatedLevel: kept and told to the agent; it grants nothing here"]
    after = LEVELS | {"reasoningLevel": "on", "elevatedLevel": "full"}
    del after["responseUsage"]
    assert told == [LEVELS, after]
    assert starts == told
    assert {name: row[name] for name in after} == after
    assert "responseUsage" not in row


@pytest.mark.clause("GATE-2")
@pytest.mark.parametrize("name", list(LEVELS))
def test_a_level_that_the_original_does_not_know_is_refused_by_name(log_url: str, name: str) -> None:
    with SessionSystem(log_url, agents={"main": lambda _turn: "yes"}) as system:
        refused = system.gateway.call("sessions.patch", {"key": "main", name: "loud"})

    assert refused["code"] == "invalid_request"
    assert refused["error"].startswith(f"{name}: ")
