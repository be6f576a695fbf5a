"""An answer that came when its run was over belongs to that run, wherever it stands (SMELL-1, LOOP-7)."""

import pytest

from intersession import MemoryChannel, Turn
from intersession_events import facts
from support.fakes import ManualClock
from support.running import Booth, Gate, pass_time_until, recorded, wait_for, wait_for_number
from support.told_steps import steps_told

MAIN = "agent:main:main"


@pytest.mark.clause("SMELL-1", "LOOP-7")
def test_an_answer_that_came_after_a_turn_had_timed_out_is_told_with_its_exchange(log_url: str) -> None:
    """It stood behind the end of its run, so that no story told it, and `late_reply` never smelt in a real log."""
    clock, gate = ManualClock(), Gate()

    def research(turn: Turn) -> str:
        if turn.step == "reply":
            gate.stop(turn)
            return "Yes, both."
        return "ANNOUNCE_SKIP" if turn.step == "announce" else "yes"

    with Booth(log_url) as booth:
        system = booth.start(
            {"main": lambda _: "For two?", "research": research}, {"t": MemoryChannel()}, clock=clock
        )
        asked = {"agentId": "research", "message": "well?", "timeoutSeconds": 0}
        run_id = system.tools(MAIN).call("sessions_send", asked).get("runId", "")
        gate.reached()
        clock.advance(60_000)
        pass_time_until(system, clock, 1_000, facts.LoopEnded)
        gate.open()
        wait_for(system, facts.LateReplyDropped)
        wait_for(system, facts.ExchangeClosed)
        steps = steps_told(system.log, run_id)
        smells = system.debug.smells(run_id)["smells"]
        diagram = system.debug.diagram(run_id).text()

    assert [step.event for step in steps].count("late_reply_dropped") == 1
    assert "late_reply" in [smell["code"] for smell in smells]
    assert "answered too late" in diagram


@pytest.mark.clause("SMELL-1")
def test_late_answers_of_other_runs_of_the_session_are_not_among_them(log_url: str) -> None:
    clock = ManualClock()
    gates = [Gate(), Gate()]
    left = list(gates)
    limit = {"agents": {"defaults": {"timeoutSeconds": 60}}}

    def main(turn: Turn) -> str:
        left.pop(0).stop(turn)
        return f"late: {turn.message}"

    with Booth(log_url) as booth:
        system = booth.start({"main": main}, {"t": MemoryChannel()}, limit, clock=clock)
        runs: list[str] = []
        for number, gate in enumerate(gates, 1):
            said = system.inbound(channel="t", chat_id="1", sender="ada", text=f"{number}.", agent_id="main")
            runs.append(said.get("runId", ""))
            gate.reached()
            clock.advance(60_000)
            while len(recorded(system, facts.RunFailed)) < number:
                pass_time_until(system, clock, 1_000, facts.RunFailed)
        for gate in gates:
            gate.open()
        wait_for_number(system, facts.LateReplyDropped, 2)
        told = [
            [step.words for step in steps_told(system.log, run) if step.event == "late_reply_dropped"]
            for run in runs
        ]

    assert told == [["late: 1."], ["late: 2."]]
