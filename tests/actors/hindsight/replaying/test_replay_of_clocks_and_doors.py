"""Sealed replay of what the log's own order and times do not tell: what a clock said, and when a door had looked (SEAL)."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.hindsight.debugger.opened import open_log
from intersession_actors.owners.delivery import rules as delivery_rules
from intersession_actors.owners.session import rules as session_rules
from intersession_actors.owners.session.commands import Patch
from intersession_actors.running.simulation.simulated import SimulatedRuntime
from intersession_events.facts import DeliveryFailed, ExchangeAccepted, SessionPatched
from support.rewritten import rewritten
from support.running import SEES_ALL

MINUTE = 60_000


@pytest.mark.clause("SEAL-1", "SEAL-2", "L8")
@pytest.mark.parametrize(
    ("module", "rule", "now", "field"),
    [
        (delivery_rules, "FIRST_RETRY_MS: Final = 1_000", "FIRST_RETRY_MS: Final = 2_000", "retryAtMs"),
        (session_rules, "now_ms + queued.timeout_ms if", "now_ms + 2 * queued.timeout_ms if", "deadlineMs"),
    ],
)
def test_what_a_clock_that_was_set_back_said_is_what_times_are_reckoned_from(
    tmp_path: Path, module: ModuleType, rule: str, now: str, field: str
) -> None:
    runtime, tried = SimulatedRuntime(), list[Any]()

    def fails_once(given: Any) -> None:
        tried.append(given)
        if len(tried) == 1:
            raise ConnectionError("the network is down")

    store, agents = tmp_path / "log.db", {"main": lambda _: "fine"}
    with SessionSystem(store, runtime=runtime, agents=agents, channels={"chat": fails_once}) as system:
        runtime.clock.set_wall(runtime.clock.now_ms() - 4 * MINUTE)  # too little for the log to go back, too
        system.inbound(channel="chat", chat_id="7", sender="ann", text="hi", agent_id="main", wait=60)
        runtime.run_for(60)
        (failed,) = (item for item in system.log.all() if isinstance(item.event, DeliveryFailed))
        assert isinstance(failed.event, DeliveryFailed)
        assert (failed.event.failed_ms or failed.time) <= failed.time - 3 * MINUTE

    with open_log(store) as log:
        found = log.debug.replay()
        assert (found["firstDifference"], found["notJudged"]) == (None, [])
        with rewritten(module, rule, now):
            differs = log.debug.replay()["firstDifference"]
        assert differs is not None
        assert [one["path"] for one in differs["fields"]] == [field]


def judged_before(file: Path, patched: int, later: int) -> bool:
    """Have a target's send policy set so many steps after a send to it began, and time pass later; whether the send was judged first."""
    runtime = SimulatedRuntime()
    agents = {"a": lambda _: "a", "b": lambda _: "b"}
    with SessionSystem(file, runtime=runtime, agents=agents, config=SEES_ALL) as system:
        system.gateway.call("sessions.patch", {"key": "agent:b:main", "label": "answers"})
        sent = {"sessionKey": "agent:b:main", "message": "how is it?", "timeoutSeconds": 0}
        runtime.spawn(lambda: system.tools().call("sessions_send", sent))
        for _ in range(patched):
            runtime.step()
        policy = Patch(values={"sendPolicy": "allow"}, by="ann")
        system.service.world.mail.tell_session("agent:b:main", policy)  # nobody waits for it
        for _ in range(later):
            runtime.step()
        runtime.clock.advance(5)
        runtime.run_for(60)
        events = list(system.log.all())
    (accepted,) = (item for item in events if isinstance(item.event, ExchangeAccepted))
    last = [item for item in events if isinstance(item.event, SessionPatched)][-1]
    assert isinstance(accepted.event, ExchangeAccepted)
    return last.position < accepted.position and "own sendPolicy" not in (accepted.event.send_rule or "")


@pytest.mark.clause("SEAL-1", "SEAL-2", "SEND-12")
def test_a_send_is_judged_by_its_target_as_it_stood_when_a_door_looked(tmp_path: Path) -> None:
    judged = list[bool]()
    for patched in range(1, 7):
        for later in (2, 3, 4):
            file = tmp_path / f"{patched}-{later}.db"
            judged.append(judged_before(file, patched, later))
            with open_log(file) as log:
                assert log.debug.replay()["firstDifference"] is None

    assert any(judged)
