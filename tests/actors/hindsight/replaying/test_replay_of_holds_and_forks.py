"""Sealed replay of what people decide in the midst of a run, of tools called side by side, and of forks."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.hindsight.debugger.opened import open_log
from intersession_actors.outside.agents.turn import Turn
from intersession_actors.owners.session.commands import Patch
from intersession_actors.running.simulation.simulated import SimulatedRuntime
from intersession_events.facts import ExchangeHeld, ExchangeReleased, ForkEdit
from intersession_events.log.recorded import parts_in
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
    assert found["decided"] > 40


@pytest.mark.clause("SEAL-2")
def test_each_run_of_tools_that_were_called_side_by_side_is_decided_as_it_was(held: Path) -> None:
    with open_log(held) as log:
        runs = [one["runId"] for one in log.debug.call("state", {"limit": 100})["runs"]]
        found = {run: log.debug.call("replay", {"run": run})["firstDifference"] for run in runs}

    assert len(found) >= 5
    assert set(found.values()) == {None}


def held_while_asked(file: Path, steps: int, how: dict[str, str]) -> list[ExchangeHeld]:
    """Have the requester refuse its turn, and a hold begin so many steps after the send; return what was held."""
    runtime = SimulatedRuntime()
    config = CONFIG | {"session": {"agentToAgent": {"maxPingPongTurns": 2}}}
    agents = {"a": answers, "b": answers}
    with SessionSystem(f"sqlite:///{file}", runtime=runtime, agents=agents, config=config) as system:
        call = system.gateway.call
        call("sessions.patch", {"key": "agent:a:main", "sendPolicy": "deny"})
        sent = {"sessionKey": "agent:b:main", "message": "how is it?", "timeoutSeconds": 0}
        system.tools("agent:a:main").call("sessions_send", sent)
        for _ in range(steps):
            runtime.step()
        held = Patch(values={"hold": "every-turn"}, by="ann")
        system.service.world.mail.tell_session("agent:a:main", held)  # nobody waits for it
        for _ in range(4):
            runtime.run_for(60)
            for one in call("exchanges.held", {})["held"]:
                call("exchanges.release", {"runId": one["runId"]} | how)
        return [item.event for item in parts_in(system.log.all()) if isinstance(item.event, ExchangeHeld)]


@pytest.mark.clause("SEAL-2", "LIVE-1")
@pytest.mark.parametrize("how", [{}, {"text": "said by a person"}, {"action": "drop"}, {"action": "end"}])
def test_a_hold_that_came_after_its_turn_was_refused_is_decided_as_it_was(
    tmp_path: Path, how: dict[str, str]
) -> None:
    ends = set[str | None]()
    for steps in range(4, 9):
        file = tmp_path / f"{steps}.db"
        ends |= {held.next_end for held in held_while_asked(file, steps, how)}
        with open_log(file) as log:
            assert log.debug.replay()["firstDifference"] is None

    assert ends >= {"policy_denied", None}


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
