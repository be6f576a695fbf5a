"""Answers that agents say in pieces, as connections and readers of `/events` hear them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from intersession import SessionSystem, Turn
from support.doors.gateway_live import GATEWAY, READER, TOKEN, WRITER, LiveGateway, WireClient
from support.running import SEES_ALL, Gate, merged

CONFIG = merged(SEES_ALL, GATEWAY)


def talking(gate: Gate) -> Any:
    def agent(turn: Turn) -> Iterator[str]:
        yield "Good "
        gate.stop(turn)
        yield "morning."

    return agent


def begun(system: SessionSystem, agent: str, key: str = "k") -> str:
    asked = {"message": "Hello", "agentId": agent, "idempotencyKey": key}
    return str(system.gateway.call("agent", asked)["runId"])


def chat(client: WireClient, state: str = "delta") -> dict[str, Any]:
    payload: dict[str, Any] = client.event("chat", lambda told: told["state"] == state)["payload"]
    return payload


@pytest.mark.clause("STREAM-4")
def test_a_connection_hears_the_whole_text_so_far_and_then_the_end(passing_url: str) -> None:
    gate = Gate()
    with (
        SessionSystem(passing_url, agents={"main": talking(gate)}, config=CONFIG) as system,
        LiveGateway(system) as live,
        live.client() as client,
    ):
        begun(system, "main")
        gate.reached()
        first = chat(client)
        with live.client() as second:
            late = chat(second)
        gate.open()
        end = chat(client, "final")
        heard = [one["payload"] for one in client.events if one["event"] == "chat"]

    assert first["message"]["content"] == [{"type": "text", "text": "Good "}]
    assert (first["runId"], first["sessionKey"], first["state"]) == ("k", "agent:main:main", "delta")
    assert late["message"]["content"] == first["message"]["content"]
    assert end["message"]["content"] == [{"type": "text", "text": "Good morning."}]
    assert heard[-1] == end
    assert [one["seq"] for one in heard] == sorted(one["seq"] for one in heard)


@pytest.mark.clause("STREAM-4")
def test_only_those_that_hear_of_a_run_hear_its_pieces(passing_url: str) -> None:
    gate = Gate()
    agents = {"main": talking(gate), "ops": talking(gate)}
    with (
        SessionSystem(passing_url, agents=agents, config=CONFIG) as system,
        LiveGateway(system) as live,
        live.client(READER) as of_main,
        live.client(WRITER) as of_ops,
    ):
        begun(system, "ops")
        gate.reached()
        deltas = [chat(of_ops)["sessionKey"]]
        begun(system, "main", "second")
        gate.reached()
        deltas.append(chat(of_main)["sessionKey"])
        gate.open()

    assert deltas == ["agent:ops:main", "agent:main:main"]


def deltas_of(live: LiveGateway, token: str, gate: Gate, until: str) -> list[dict[str, Any]]:
    """Return the deltas of a stream up to an event of a name; the gate is opened at the first."""
    found: list[dict[str, Any]] = []
    with live.http(token) as client, client.stream("GET", "/events", params={"after": 0}) as response:
        name = ""
        for line in response.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: ") and name == "delta":
                found.append(json.loads(line.removeprefix("data: ")))
                gate.open()
            if name.startswith(until):
                break
    return found


@pytest.mark.clause("STREAM-4")
def test_the_event_stream_has_pieces_between_what_is_committed(passing_url: str) -> None:
    gate = Gate()
    with (
        SessionSystem(passing_url, agents={"ops": talking(gate)}, config=CONFIG) as system,
        LiveGateway(system) as live,
    ):
        run_id = begun(system, "ops")
        gate.reached()
        found = deltas_of(live, TOKEN, gate, "run_completed")

    assert found[-1] == {"runId": run_id, "sessionKey": "agent:ops:main", "text": found[-1]["text"]}
    assert "Good morning.".startswith(found[0]["text"])
