"""Ends of runs are explained by deciding them again from the session's own decision record (WHY-2)."""

from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_actors.hindsight.explaining.explained import Explaining
from intersession_actors.hindsight.explaining.explanation import Explanation
from intersession_actors.owners.session import rules
from intersession_events import facts
from support.fakes import ManualClock
from support.rewritten import rewritten
from support.running import Booth, Gate, pass_time_until, wait_for

MAIN = "agent:main:main"
MINUTE = 60_000
Ends = (
    facts.RunFailed | facts.RunAborted | facts.RunInterrupted | facts.LateReplyDropped | facts.ThreadUnbound
)


def explained(system: SessionSystem) -> list[Explanation]:
    """Explain how runs ended, in order."""
    explaining = Explaining(system.service.reader)
    return [one for item in system.log.all() if isinstance(item.event, Ends) for one in explaining.of(item)]


def told(found: list[Explanation]) -> list[tuple[str, bool | None, list[tuple[str | None, Any, str | None]]]]:
    """Return what explanations say: the code, whether it is decided so today, and which setting would have changed it to what."""
    return [
        (one.code, one.as_decided, [(other.setting, other.value, other.verdict) for other in one.instead])
        for one in found
    ]


def says(system: SessionSystem, text: str = "hi") -> None:
    system.inbound(channel="t", chat_id="1", sender="ada", text=text, agent_id="main", deliver=True)


@pytest.mark.clause("WHY-2", "GATE-3")
def test_attempts_that_a_stop_cut_off_say_how_many_there_may_be(log_url: str) -> None:
    gates = [Gate(), Gate()]
    with Booth(log_url) as booth:
        for number, gate in enumerate(gates):
            system = booth.start({"main": gate.stop}, {"t": MemoryChannel()})
            if not number:
                says(system)
            gate.reached()
            system.close(grace=0)
            gate.open()
        system = booth.start({"main": lambda _: "never"}, {"t": MemoryChannel()})
        wait_for(system, facts.RunFailed)
        found = explained(system)
        with rewritten(
            rules,
            "counted <= now.retries",
            "counted < now.retries",
        ):
            otherwise = explained(system)

    setting = "runs.retryInterrupted"
    assert told(found) == [
        ("interrupted", True, [(None, None, None)]),
        ("interrupted", True, [(setting, 2, "run_interrupted")]),
    ]
    assert [one.as_decided for one in otherwise] == [False, True]
    assert otherwise[0].instead[0].verdict is None


@pytest.mark.clause("WHY-2", "SEND-7", "GATE-5", "LOOP-7")
def test_what_an_agent_a_person_or_the_clock_ended_is_decided_again(log_url: str) -> None:
    clock, late, aborted = ManualClock(), Gate(), Gate()

    def main(turn: Turn) -> str:
        if turn.message == "fail":
            raise ValueError("out of order")
        (late if turn.message == "late" else aborted).stop(turn)
        return "too late"

    limit = {"agents": {"defaults": {"timeoutSeconds": 60}}}
    with Booth(log_url) as booth:
        system = booth.start({"main": main}, {"t": MemoryChannel()}, limit, clock=clock)
        says(system, "fail")
        wait_for(system, facts.RunFailed)
        says(system, "abort")
        system.abort(aborted.reached().run_id)
        aborted.open()
        says(system, "late")
        late.reached()
        pass_time_until(system, clock, MINUTE, facts.RunFailed)
        wait_for(system, facts.RunFailed, lambda event: event.code == "timeout")
        late.open()
        wait_for(system, facts.LateReplyDropped, lambda event: event.attempt == 1)
        says(system, "abort")
        system.gateway.call("sessions.reset", {"key": MAIN})
        found = explained(system)

    codes = [one.code for one in found]
    assert {"backend", "aborted", "timeout", "late"} <= set(codes)
    assert {one.as_decided for one in found} == {True}
