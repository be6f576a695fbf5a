"""What a fork says of itself that somebody may not expect: a cut that was moved, agents that are not known, settings without effect."""

from pathlib import Path
from typing import Any

import pytest

from intersession import ForkEdit, MemoryChannel, SessionSystem, Turn
from intersession_actors.hindsight.forking.cutting import consistent
from intersession_actors.hindsight.forking.making import MadeFork, Wanted, make_fork
from intersession_actors.hindsight.forking.overlay import without_effect
from intersession_actors.running.simulation.simulated import SimulatedRuntime
from intersession_events import facts
from intersession_events.basics.machine import random_id
from intersession_events.log.recorded import Recorded
from intersession_events.stores.opened import open_log
from intersession_events.stores.sqlite.log import SqliteLog
from support.forks_played import conversation
from support.running import SEES_ALL
from support.simulated_runs import CONFIG


def channels() -> dict[str, MemoryChannel]:
    return {"chat": MemoryChannel()}


def asks(turn: Turn) -> str:
    if turn.step == "message":
        sent = {"sessionKey": "agent:b:main", "message": "how is it?", "timeoutSeconds": 0}
        turn.tools.call("sessions_send", sent)
    return f"a in {turn.step}"


def answers(turn: Turn) -> str:
    return f"b in {turn.step}"


def made_at(system: SessionSystem, run: str, position: int) -> MadeFork:
    log = system.log
    assert isinstance(log, SqliteLog)
    return make_fork(
        log,
        Wanted(run, position),
        fork_id=random_id(),
        now_ms=system.service.clock.now_ms(),
    )


def steps(recorded: list[Recorded], kind: type[Any]) -> list[Recorded]:
    return [one for one in recorded if isinstance(one.event, kind)]


@pytest.mark.clause("FORK-4", "LIVE-1")
@pytest.mark.parametrize("how", [{}, {"text": "said by a person"}, {"action": "drop"}, {"action": "end"}])
def test_a_fork_at_a_release_has_all_that_was_recorded_with_it(tmp_path: Path, how: dict[str, str]) -> None:
    runtime = SimulatedRuntime()
    config = CONFIG | {"session": {"agentToAgent": {"maxPingPongTurns": 2, "hold": "every-turn"}}}
    system = SessionSystem(
        tmp_path / "log.db",
        runtime=runtime,
        agents={"a": asks, "b": answers},
        channels=channels(),
        config=config,
    )
    with system:
        system.inbound(channel="chat", chat_id="1", sender="u", agent_id="a", text="ask")
        runtime.run_for(30)
        (held,) = system.gateway.call("exchanges.held", {})["held"]
        before = system.log.head()
        system.gateway.call("exchanges.release", {"runId": held["runId"]} | how)
        runtime.run_for(30)
        recorded = list(system.log.all())
        (released,) = steps(recorded, facts.ExchangeReleased)
        made = made_at(system, held["runId"], released.position)
        with open_log(made.path, read_only=True) as fork:
            kept = steps(list(fork.all()), facts.ExchangeReleased)
        behind = [one for one in recorded if one.position > before and one.time == released.time]

    assert [one.id for one in kept] == [released.id]
    assert released.position <= made.position
    assert behind
    moved = made.position - released.position
    notes = [note for note in made.notes if "and not at" in note]
    assert [f"({moved:+})" in note for note in notes] == ([True] if moved else [])


@pytest.mark.clause("FORK-4")
def test_a_cut_in_the_middle_of_an_append_says_where_it_went_and_why(tmp_path: Path) -> None:
    talk = conversation(tmp_path)
    with talk.system:
        (accepted,) = steps(list(talk.system.log.all()), facts.ExchangeAccepted)
        made = made_at(talk.system, talk.exchange, accepted.position)
        again = made_at(talk.system, talk.exchange, made.position)

    assert made.position > accepted.position
    (note,) = made.notes
    assert f"cut at #{made.position} and not at #{accepted.position}" in note
    assert "recorded together" in note
    assert again.notes == ()


@pytest.mark.clause("FORK-4")
def test_a_session_that_somebody_deletes_while_runs_wait_is_not_cut_in_the_middle(tmp_path: Path) -> None:
    runtime = SimulatedRuntime()

    def works(turn: Turn) -> str:
        if ":subagent:" in turn.session_key:
            runtime.pause(60)
        return "done"

    with SessionSystem(
        tmp_path / "log.db", runtime=runtime, agents={"main": works}, config=SEES_ALL
    ) as system:
        child = system.tools().call("sessions_spawn", {"task": "dig"})["childSessionKey"]
        for text in ("one", "two"):
            system.tools().call("sessions_send", {"sessionKey": child, "message": text, "timeoutSeconds": 0})
        runtime.run_for(5)
        assert system.gateway.call("sessions.delete", {"key": child})["ok"]
        runtime.run_for(120)
        recorded = list(system.log.all())
        (archived,) = steps(recorded, facts.SessionArchived)
        aborted = next(one for one in recorded if isinstance(one.event, facts.RunAborted))
        cuts = {consistent(system.log, at) for at in range(aborted.position, archived.position + 1)}

    assert aborted.position < archived.position
    assert cuts == {archived.position}


@pytest.mark.clause("FORK-4")
@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("session.agentToAgent.oneWay", "what had begun before the cut goes on as it was let in"),
        ("tools.sessions.visibility", "what had begun before the cut goes on as it was let in"),
        ("deliveries.maxAgeSeconds", "it changes nothing"),
        ("gateway.port", "it changes nothing"),
        ("session.agentToAgent.maxPingPongTurns", None),
        ("session.sendPolicy", None),
    ],
)
def test_a_setting_that_changes_nothing_in_a_fork_is_told(key: str, says: str | None) -> None:
    notes = without_effect([ForkEdit(kind="set", key=key, value="1")])

    assert [says in note and key in note for note in notes if says] == ([] if says is None else [True])
