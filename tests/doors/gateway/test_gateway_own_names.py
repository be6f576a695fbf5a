"""What clients of the original rely on: their own names of runs, whole keys, entries and reports in its shape."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from intersession import SessionSystem, Turn
from intersession.gateway.protocol.run_events import RunEvents
from intersession_events.facts import ExchangeAccepted, RunQueued
from intersession_projections.views.run_outcomes.outcome import RunRequest, asked_in
from support.doors.gateway_live import GATEWAY, READER, TOKEN, WRITER, LiveGateway
from support.running import SEES_ALL, Gate, merged

MAIN = "agent:main:main"
OPS = "agent:ops:main"


@pytest.fixture
def system(tmp_path: Path, gate: Gate) -> Iterator[SessionSystem]:
    def agent(turn: Turn) -> str:
        if turn.message == "hold on":
            gate.stop(turn)
        return f"{turn.agent_id}: {turn.message}"

    models = {
        "agents": {"defaults": {"model": "fake/one"}},
        "models": {"providers": {"fake": {"models": [{"id": "one"}]}}},
    }
    config = merged(SEES_ALL, GATEWAY, models)
    with SessionSystem(tmp_path / "log.db", agents={"main": agent, "ops": agent}, config=config) as made:
        yield made
        gate.open()


@pytest.fixture
def live(system: SessionSystem) -> Iterator[LiveGateway]:
    with LiveGateway(system) as made:
        yield made


def is_final(payload: dict[str, Any]) -> bool:
    return bool(payload["state"] == "final")


@pytest.mark.clause("GATE-1")
def test_a_run_goes_by_the_key_of_who_asked_for_it(live: LiveGateway, system: SessionSystem) -> None:
    params = {"sessionKey": OPS, "message": "hi", "idempotencyKey": "my own"}
    with live.client(WRITER) as owner, live.client(TOKEN) as operator:
        started = owner.request("chat.send", params)["payload"]
        own = owner.event("chat", is_final)["payload"]
        others = operator.event("chat", is_final)["payload"]
        waited = owner.request("agent.wait", {"runId": "my own"})["payload"]

    run = system.service.runs.recent(1)[0]
    assert (started["runId"], own["runId"], waited["runId"]) == ("my own", "my own", "my own")
    assert {frame["payload"]["runId"] for frame in owner.events if frame["event"] == "agent"} == {"my own"}
    assert others["runId"] == run.run_id
    assert waited["reply"] == "ops: hi"


@pytest.mark.clause("GATE-1")
def test_both_answers_of_agent_have_the_callers_name(live: LiveGateway) -> None:
    with live.client() as client:
        request = client.ask("agent", {"message": "hi", "idempotencyKey": "k", "agentId": "ops"})
        first, last = client.answer(request)["payload"], client.answer(request)["payload"]

    assert (first["runId"], first["status"]) == ("k", "accepted")
    assert (last["runId"], last["status"]) == ("k", "ok")


@pytest.mark.clause("GATE-1", "GATE-5")
def test_what_was_aborted_is_named_as_its_caller_names_it(live: LiveGateway, gate: Gate) -> None:
    with live.client() as client:
        client.request("chat.send", {"sessionKey": MAIN, "message": "hold on", "idempotencyKey": "long"})
        gate.reached()
        aborted = client.request("chat.abort", {"sessionKey": MAIN, "runId": "long"})["payload"]
        told = client.event("chat", lambda payload: payload["state"] == "aborted")["payload"]

    assert aborted == {"ok": True, "aborted": True, "runIds": ["long"]}
    assert told["runId"] == "long"


@pytest.mark.clause("GATE-1")
def test_a_run_that_nobody_heard_being_queued_has_its_callers_name(
    live: LiveGateway, system: SessionSystem, gate: Gate
) -> None:
    system.gateway.call("agent", {"message": "hold on", "idempotencyKey": "before", "agentId": "main"})
    gate.reached()

    with live.client() as client:
        gate.open()
        told = client.event("chat", is_final)["payload"]

    assert told["runId"] == "before"


@pytest.mark.clause("GATE-1")
def test_runs_of_an_exchange_go_by_their_ids(live: LiveGateway, system: SessionSystem) -> None:
    answer = system.tools().call(
        "sessions_send",
        {"sessionKey": OPS, "message": "hi", "timeoutSeconds": 0, "idempotencyKey": "of a tool"},
    )
    with live.client() as client:
        waited = client.request("agent.wait", {"runId": answer["runId"]})["payload"]

    (queued,) = [each.event for each in system.log.all() if isinstance(each.event, RunQueued)][:1]
    accepted = [each.event for each in system.log.all() if isinstance(each.event, ExchangeAccepted)]
    assert accepted[0].idempotency_key == "of a tool"
    assert asked_in(queued) is None
    assert system.service.runs.asked(answer["runId"]) is None
    assert system.service.runs.asked("no run") is None
    assert waited["runId"] == answer["runId"]


def test_names_are_forgotten_when_too_many_runs_wait_and_found_again(system: SessionSystem) -> None:
    system.gateway.call("agent", {"message": "hi", "idempotencyKey": "k", "agentId": "main"})
    run = system.service.runs.recent(1)[0]
    system.gateway.call("agent.wait", {"runId": run.run_id})
    told = RunEvents(system.service.runs.asked)
    batch = list(system.log.all())
    queued = next(recorded for recorded in batch if isinstance(recorded.event, RunQueued))
    list(told.events_for(queued))
    for number in range(10_000):
        others = RunQueued(run_id=f"r{number}", session_id="s", step="message", answers="m")
        list(told.events_for(msgspec.structs.replace(queued, event=others)))

    events = [event for recorded in batch for event in told.events_for(recorded) if event.name == "chat"]

    assert {event.asked for event in events} == {RunRequest("operator", "k")}


@pytest.mark.clause("GATE-1", "LIST-5")
def test_the_gateways_list_has_whole_keys(live: LiveGateway, system: SessionSystem) -> None:
    system.gateway.call("agent", {"message": "hi", "idempotencyKey": "k", "agentId": "main"})
    with live.client() as client:
        listed = client.request("sessions.list")["payload"]
        history = client.request("chat.history", {"sessionKey": "main"})["payload"]
        found = client.request("tools.invoke", {"name": "sessions_list"})["payload"]

    assert [row["key"] for row in listed["sessions"]] == [MAIN]
    assert history["sessionKey"] == MAIN
    assert listed["defaults"] == {"modelProvider": "fake", "model": "one", "contextTokens": 32_768}
    assert [row["key"] for row in found["sessions"]] == ["main"]


@pytest.mark.clause("GATE-2")
def test_an_entry_is_written_as_the_original_writes_it(system: SessionSystem) -> None:
    patch = {"key": MAIN, "sendPolicy": "deny", "thinkingLevel": "low", "displayName": "The desk"}

    entry = system.gateway.call("sessions.patch", patch)["entry"]
    reset = system.gateway.call("sessions.reset", {"key": MAIN})["entry"]

    assert (entry["sendPolicy"], entry["thinkingLevel"], entry["displayName"]) == ("deny", "low", "The desk")
    assert not [name for name in entry if "_" in name]
    assert reset["sessionId"] != entry["sessionId"]
    assert reset["updatedAt"] >= entry["updatedAt"]


@pytest.mark.clause("GATE-1", "VIS-6")
def test_health_counts_the_sessions_that_a_caller_reaches(live: LiveGateway, system: SessionSystem) -> None:
    for number, agent in enumerate(("main", "ops", "ops")):
        key = f"agent:{agent}:room-{number}"
        system.gateway.call("sessions.patch", {"key": key, "label": str(number)})
    with live.client(TOKEN) as operator, live.client(READER) as reader:
        everything = operator.request("health")["payload"]
        some = reader.request("health")["payload"]

    def numbers(health: dict[str, Any]) -> dict[str, int]:
        return {agent["agentId"]: agent["sessions"]["count"] for agent in health["agents"]}

    assert (everything["sessions"]["count"], numbers(everything)) == (3, {"main": 1, "ops": 2})
    assert (some["sessions"]["count"], numbers(some)) == (1, {"main": 1})
    recent = [[place["key"] for place in each["sessions"]["recent"]] for each in everything["agents"]]
    assert recent == [["agent:main:room-0"], ["agent:ops:room-2", "agent:ops:room-1"]]
    assert [place["key"] for place in everything["sessions"]["recent"]] == [
        "agent:ops:room-2",
        "agent:ops:room-1",
        "agent:main:room-0",
    ]
    assert [place["key"] for place in some["sessions"]["recent"]] == ["agent:main:room-0"]
    assert [place["key"] for place in some["agents"][0]["sessions"]["recent"]] == ["agent:main:room-0"]
    assert everything["sessions"]["defaults"]["model"] == "fake/one"


@pytest.mark.clause("GATE-1", "VIS-6", "X11")
def test_the_gateway_says_what_it_is_and_keeps_its_secrets(live: LiveGateway) -> None:
    with live.client(TOKEN, scopes=["operator.read"]) as operator, live.client(READER) as reader:
        (present,) = operator.request("system-presence")["payload"]
        answer = operator.request("config.get", {})
        refused = reader.request("config.get", {})
        surprised = operator.request("system-presence", {"surprise": 1})

    assert (present["mode"], present["reason"]) == ("gateway", "self")
    assert {"system-presence", "config.get"} <= {*operator.hello["features"]["methods"]}
    assert operator.hello["snapshot"]["presence"][0]["version"] == present["version"]
    assert answer["payload"]["config"]["agents"]["defaults"]["model"] == "fake/one"
    assert not [secret for secret in (TOKEN, READER, WRITER) if secret in str(answer)]
    assert refused["error"]["details"]["code"] == "forbidden"
    assert surprised["error"]["message"].startswith("surprise: unknown field")


@pytest.mark.clause("GATE-1")
def test_agent_takes_a_key_and_an_id_that_agree(system: SessionSystem) -> None:
    session_id = system.gateway.call("sessions.patch", {"key": MAIN, "label": "desk"})["entry"]["sessionId"]
    call = {"message": "hi", "sessionKey": MAIN}

    fine = system.gateway.call("agent", call | {"sessionId": session_id, "idempotencyKey": "a"})
    other = system.gateway.call("agent", call | {"sessionId": "another", "idempotencyKey": "b"})
    unopened = system.gateway.call(
        "agent", call | {"sessionKey": OPS, "sessionId": session_id, "idempotencyKey": "c"}
    )

    assert fine["status"] == "accepted"
    assert other["error"] == unopened["error"]
    assert other["error"].startswith("sessionId: it is not the session that sessionKey names")
