"""Sealed replay of what people decide in the midst of a run, of tools called side by side, and of forks."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from intersession_actors.agents import Turn
from intersession_actors.debugger import open_log
from intersession_actors.simulation import SimulatedRuntime
from intersession_actors.system import SessionSystem
from intersession_events.facts import ExchangeReleased, ForkEdit
from support.forks_played import DESK, conversation, play

CONFIG = {
    "tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}},
    "session": {"agentToAgent": {"maxPingPongTurns": 2, "hold": "every-turn"}},
}


async def asks(turn: Turn) -> str:
    """Calls two tools at once, both of which begin something."""
    if turn.step != "message":
        return f"a in {turn.step}"
    sent = {"sessionKey": "agent:b:main", "message": "how is it?", "timeoutSeconds": 0}
    await asyncio.gather(
        turn.tools.acall("sessions_send", sent),
        turn.tools.acall("sessions_spawn", {"task": "look", "agentId": "b"}),
        turn.tools.acall("sessions_send", sent | {"message": "and now?"}),
    )
    return "both asked"


def answers(turn: Turn) -> str:
    return f"b in {turn.step}"


AGENTS: dict[str, Any] = {"a": asks, "b": answers}


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log of exchanges that were held at every turn, and let go on in each way there is."""
    file = tmp_path_factory.mktemp("held") / "log.db"
    runtime = SimulatedRuntime(3)
    with SessionSystem(f"sqlite:///{file}", runtime=runtime, agents=AGENTS, config=CONFIG) as system:
        call = system.gateway.call
        system.inbound(channel="chat", chat_id="1", sender="u", agent_id="a", text="ask", wait=60)
        call("exchanges.hold", {"sessionKey": "agent:b:main", "before": "announce"})
        for how in ({}, {"text": "said by a person"}, {"action": "drop"}, {"action": "end"}) * 3:
            runtime.run_for(60)
            for one in call("exchanges.held", {})["held"][:1]:
                call("exchanges.release", {"runId": one["runId"]} | how)
        call("exchanges.release", {"sessionKey": "agent:b:main"})
        runtime.run_for(600)
    return file


@pytest.mark.clause("SEAL-2", "LIVE-1")
def test_what_was_held_and_let_go_on_is_decided_as_it_was(held: Path) -> None:
    with open_log(held) as log:
        ways = {item.event.action for item in log.log.all() if isinstance(item.event, ExchangeReleased)}
        found = log.debug.replay()

    assert ways == {"go_on", "edit", "drop", "end"}
    assert found["firstDifference"] is None
    assert found["decided"] > 50


@pytest.mark.clause("SEAL-2")
def test_each_run_of_tools_that_were_called_side_by_side_is_decided_as_it_was(held: Path) -> None:
    with open_log(held) as log:
        runs = [one["runId"] for one in log.debug.call("state", {"limit": 100})["runs"]]
        found = {run: log.debug.call("replay", {"run": run})["firstDifference"] for run in runs}

    assert len(found) >= 5
    assert set(found.values()) == {None}


@pytest.mark.clause("SEAL-2", "FORK-4")
def test_forks_are_decided_as_they_were_behind_what_was_otherwise_in_them(tmp_path: Path) -> None:
    talk, agents = conversation(tmp_path), {"main": "asks", "desk": "answers"}
    with talk.system:
        forks = {
            edit.kind: play(talk, talk.exchange, at, edit, agents=agents)
            for at, edit in (
                ("turn:2", ForkEdit(kind="reply", value="it was cancelled")),
                ("turn:2", ForkEdit(kind="skip")),
                ("turn:3", ForkEdit(kind="drop")),
                ("start", ForkEdit(kind="message", value="is it cancelled?")),
                ("turn:1", ForkEdit(kind="set", key="session.agentToAgent.maxPingPongTurns", value="2")),
                ("turn:1", ForkEdit(kind="inject", key=DESK, value="by the way")),
            )
        }
    for kind, played in forks.items():
        with open_log(played.made.path) as log:
            found = log.debug.replay()

        assert (kind, found["firstDifference"]) == (kind, None)
        assert (kind, found["decided"] > 0) == (kind, True)
