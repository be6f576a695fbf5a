"""A what-if of a run whose branches raced: what is said side by side comes in the order in which it was decided then (FORK-7)."""

from pathlib import Path

import pytest

from intersession import SessionSystem, Turn
from intersession_actors.hindsight.forking.carrying import carry_on
from intersession_actors.hindsight.forking.making import MadeFork, Wanted, make_fork
from intersession_events.basics.machine import random_id
from intersession_events.facts import ForkEdit
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.questions.places.runs_named import flow_id
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from support.branching_chain import LIMITS, branches
from support.every_day import every_day
from support.forked_everywhere import Everywhere
from support.running import SEES_ALL, WAIT

RECORDED = ForkEdit(kind="agent", key="*", value="recorded")


@pytest.mark.clause("FORK-7", "LOOP-5")
@pytest.mark.parametrize(
    ("tool", "seed"),
    every_day(
        {
            f"{tool} {seed}": (tool, seed)
            for tool in ("sessions_send", "sessions_spawn")
            for seed in (1, 2, 3)
        },
        "sessions_send 1",
        "sessions_spawn 2",
    ),
)
def test_branches_that_race_for_the_last_run_of_a_chain_come_out_as_recorded(
    tool: str, seed: int, tmp_path: Path
) -> None:
    """Before: recorded agents take no time, so that another branch had the last run, or a send was refused that was not then."""
    file = tmp_path / "raced.db"
    branches(file, seed, LIMITS["runs"], tool)
    with SessionSystem(file) as system:
        everywhere = Everywhere(system)
        (run,) = [flow for flow in everywhere.flows if isinstance(flow, RunOutcome)]
        cuts = everywhere.cuts(run)
        for cut in (cuts[0], cuts[len(cuts) // 2], cuts[-1]):
            everywhere.check(cut)


@pytest.mark.clause("FORK-6", "FORK-7")
def test_a_fork_of_one_of_several_branches_says_that_the_others_stand_still(tmp_path: Path) -> None:
    """What they use and say later is not in it, so it can't come out as it did where that was counted or waited for."""
    file = tmp_path / "raced.db"
    branches(file, 1, LIMITS["runs"])
    with SessionSystem(file) as system:
        everywhere = Everywhere(system)
        one = next(flow for flow in everywhere.flows if not isinstance(flow, RunOutcome))
        (run,) = [flow for flow in everywhere.flows if isinstance(flow, RunOutcome)]

        def made(of: str) -> MadeFork:
            assert isinstance(system.log, PortableLog)
            wanted = Wanted(of, one.accepted, [RECORDED])
            return make_fork(system.log, wanted, fork_id=random_id(), now_ms=1)

        (note,) = made(flow_id(one)).notes[-1:]
        assert note.startswith("5 other exchanges and spawns were open there and stand still in the fork: ")
        assert not any("stand still" in note for note in made(flow_id(run)).notes)


@pytest.mark.ci
@pytest.mark.clause("FORK-7")
def test_what_does_not_come_in_a_fork_is_not_waited_for(tmp_path: Path) -> None:
    """The agent begins a run by itself and not with a tool: a recorded one does not."""
    systems: list[SessionSystem] = []

    def main(turn: Turn) -> str:
        systems[0].inbound(channel="x", chat_id="2", text="look", sender="main", agent_id="desk", wait=WAIT)
        answer = turn.tools.call("sessions_send", {"sessionKey": "agent:aide:main", "message": "and you?"})
        return f"{turn.message}: {answer.get('reply')}"

    agents = {"main": main, "desk": lambda _: "yes", "aide": lambda _: "no"}
    config = {**SEES_ALL, "session": {"agentToAgent": {"maxPingPongTurns": 0}}}
    with SessionSystem(tmp_path / "source.db", agents=agents, config=config) as system:
        systems.append(system)
        answer = system.inbound(channel="x", chat_id="1", text="is it so?", sender="ann", wait=WAIT)
        carry_on(system.service, "", timeout=WAIT)
        assert len(system.service.runs.of_chain(answer["runId"])) == 4
        with system.fork(answer["runId"], at="start", agents={"*": "recorded"}) as fork:
            carried = fork.carried_on(WAIT)
            assert (carried.state, carried.divergence) == ("ended", None)
            assert len(fork.service.runs.of_chain(answer["runId"])) == 3
