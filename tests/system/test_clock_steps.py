"""Somebody sets the clock while the system runs: nothing ends early and nothing lives for ever (L8, finding A17)."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from intersession import MemoryChannel, Reply, SessionSystem, ToolRefused, Turn
from intersession_actors.running.runtime.clock import SystemClock
from intersession_events.facts import (
    ChildArchived,
    ChildEnded,
    DeliveryDone,
    DeliveryFailed,
    LoopEnded,
    RunCompleted,
    RunFailed,
    ThreadUnbound,
)
from intersession_projections.views.inline_views import inline_views
from support.any_log import AnyLog, log_at
from support.fakes import ManualClock
from support.faulty_store import FAULT, disk_full, faulty
from support.running import (
    QUIET,
    WAIT,
    Booth,
    Gate,
    closed_exchange,
    closed_spawn,
    one,
    pass_time,
    pass_time_until,
    recorded,
    wait_for,
    wait_for_number,
)

MAIN = "agent:main:main"
MINUTE = 60_000
HOUR = 60 * MINUTE
YEAR = 365 * 24 * HOUR
STEPS = pytest.mark.parametrize("step", [-10 * YEAR, -HOUR, HOUR, YEAR])


class SawTooth(SystemClock):
    """A wall clock that somebody sets an hour ahead and back again, all the time."""

    def __init__(self) -> None:
        self._steps = itertools.cycle([0, HOUR, -HOUR, 2 * HOUR])

    def now_ms(self) -> int:
        return super().now_ms() + next(self._steps)


def step_by(clock: ManualClock, ms: int) -> None:
    clock.set_wall(clock.now_ms() + ms)


def say(system: SessionSystem, text: str = "hi", **given: Any) -> Any:
    message = {
        "channel": "discord",
        "chat_id": "42",
        "chat_type": "group",
        "text": text,
        "sender": "p",
        **given,
    }
    return system.inbound(**message)


@pytest.mark.clause("L8", "LOOP-7")
def test_no_run_ends_early_however_the_clock_jumps(booth: Booth) -> None:
    """Before: 3 of 30 runs timed out early, the clock having been set between decision and alarm."""
    system = booth.start({"main": lambda turn: turn.message}, None, QUIET, clock=SawTooth())

    ends = [say(system, str(number), wait=WAIT)["status"] for number in range(30)]

    assert ends == ["ok"] * 30


@pytest.mark.clause("L8", "LOOP-7")
@STEPS
def test_a_run_has_its_time_and_no_more(booth: Booth, step: int) -> None:
    clock, gate = ManualClock(), Gate()
    limit = {"agents": {"defaults": {"timeoutSeconds": 60}}}
    system = booth.start({"main": gate.stop}, None, limit, clock=clock)
    run_id = say(system)["runId"]
    gate.reached()

    step_by(clock, step)
    pass_time(system, clock, 59_999)
    early = system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 50})
    pass_time(system, clock, 1)

    assert early["status"] == "timeout"
    assert early["runState"] == "running"
    assert wait_for(system, RunFailed).code == "timeout"
    gate.open()


@pytest.mark.clause("L8", "SPAWN-12")
@STEPS
@pytest.mark.parametrize("asleep", [False, True])
def test_a_thread_is_its_childs_for_its_time(booth: Booth, step: int, *, asleep: bool) -> None:
    """Before: after a step back a binding never ended; after one ahead it ended at once."""
    clock = ManualClock()
    channel = MemoryChannel(idempotent=True)
    channel.threads = lambda _: "t1"
    config: dict[str, Any] = {"session": {"threadBindings": {"idleHours": 2}}, "runs": {"idleSeconds": 30}}
    system = booth.start({"main": lambda turn: turn.step}, {"discord": channel}, config, clock=clock)
    say(system, deliver=False)
    spawned = system.tools("agent:main:discord:group:42").call(
        "sessions_spawn", {"task": "count", "thread": True}
    )
    closed_spawn(system, spawned["runId"])
    if asleep:
        pass_time(system, clock, MINUTE)
    else:
        step_by(clock, step)
    said = say(system, "you?", thread="t1", wait=WAIT)
    step_by(clock, step)

    pass_time(system, clock, 2 * HOUR - 1)
    still = say(system, "still you?", thread="t1", deliver=False)
    pass_time(system, clock, 2 * HOUR)

    assert said["sessionKey"] == still["sessionKey"] == spawned["childSessionKey"]
    assert wait_for(system, ThreadUnbound).reason == "idle"


def counting(booth: Booth, clock: ManualClock, step: int) -> SessionSystem:
    """Start a system whose clock is set while a sub-agent announces; return it with that sub-agent done."""

    def agent(turn: Turn) -> str:
        if turn.step == "announce":
            step_by(clock, step)
        return turn.step

    system = booth.start({"main": agent}, clock=clock)
    system.gateway.call("sessions.patch", {"key": MAIN, "label": "asks"})
    spawned = system.tools(MAIN).call("sessions_spawn", {"task": "count"})
    closed_spawn(system, spawned["runId"])
    return system


@pytest.mark.clause("L8", "SPAWN-11")
@STEPS
def test_a_child_is_archived_when_its_time_has_come(booth: Booth, step: int) -> None:
    clock = ManualClock()
    system = counting(booth, clock, step)

    pass_time(system, clock, HOUR - 1)
    early = recorded(system, ChildArchived)
    pass_time_until(system, clock, 1, ChildArchived)

    assert early == []


@pytest.mark.clause("L8", "SPAWN-8", "P7")
def test_a_clock_that_is_behind_the_log_at_a_start_ends_no_task_early(booth: Booth) -> None:
    """The log's time does not go back with the clock, and a deadline is reckoned by the clock."""
    clock, gate = ManualClock(), Gate()
    limit = {"agents": {"defaults": {"subagents": {"runTimeoutSeconds": 60}}}}
    agents: dict[str, Any] = {"main": lambda turn: gate.stop(turn) if turn.step == "message" else turn.step}
    system = booth.start(agents, None, limit, clock=clock)
    system.gateway.call("sessions.patch", {"key": MAIN, "label": "asks"})
    step_by(clock, -HOUR)
    system.tools(MAIN).call("sessions_spawn", {"task": "count"})
    gate.reached()
    system.close(grace=0)
    gate.open()

    system = booth.start({"main": lambda turn: turn.step}, None, limit, clock=clock)

    assert wait_for(system, ChildEnded).status == "ok"


@pytest.mark.clause("L8", "SPAWN-11", "P9")
def test_a_clock_that_was_set_back_before_a_start_keeps_a_child_no_longer_than_its_time(
    booth: Booth,
) -> None:
    clock = ManualClock()
    counting(booth, clock, -10 * YEAR).close()
    system = booth.start({"main": lambda turn: turn.step}, clock=clock)

    pass_time_until(system, clock, 20 * MINUTE, ChildArchived)


@pytest.mark.clause("L8", "ANN-3")
@STEPS
def test_a_delivery_is_tried_again_after_its_pause(booth: Booth, step: int) -> None:
    clock = ManualClock()
    failing = [ConnectionError("down")]

    def channel(_: Any) -> None:
        if failing:
            raise failing.pop()

    system = booth.start({"main": lambda _: Reply("words")}, {"discord": channel}, clock=clock)
    say(system)
    wait_for_number(system, DeliveryFailed, 1)
    step_by(clock, step)
    system.register_channel("other", MemoryChannel())  # has every open delivery looked at again
    system.log.wait_for(system.log.head() + 1, timeout=0.05)
    early = recorded(system, DeliveryDone)

    pass_time_until(system, clock, 250, DeliveryDone)

    assert early == []


@pytest.mark.clause("L8", "LOOP-5")
@STEPS
def test_a_chain_is_as_old_as_the_time_that_has_passed(booth: Booth, step: int) -> None:
    """Before: a clock set ahead ended every chain at its wall-clock guard, one set back none."""
    clock = ManualClock()

    def agent(turn: Turn) -> str:
        if turn.step == "reply":
            step_by(clock, step)
            clock.advance(20_000)
        return turn.step

    guard = {"session": {"agentToAgent": {"limits": {"wallSeconds": 60}, "turnTimeoutSeconds": 0}}}
    system = booth.start({"main": agent, "ops": agent}, None, guard, clock=clock)
    sent = system.tools(MAIN).call(
        "sessions_send", {"sessionKey": "agent:ops:main", "message": "x", "timeoutSeconds": 0}
    )

    ended = one(closed_exchange(system, sent["runId"]), LoopEnded)

    assert (ended.reason, ended.turns) == ("wall_limit", 3)


@pytest.fixture
def log(log_url: str) -> Iterator[AnyLog]:
    with log_at(log_url, inline=inline_views(), environment=faulty(log_url)) as opened:
        yield opened
    FAULT.down = None


@pytest.mark.clause("L8", "D5", "S6")
def test_a_step_ahead_does_not_use_up_the_patience_with_the_store(log: AnyLog) -> None:
    clock, gate, attempts = ManualClock(), Gate(), list[int]()

    def agent(turn: Turn) -> str:
        attempts.append(turn.attempt)
        gate.stop(turn)
        return "done"

    config = {"runs": {"storeRetryMaxSeconds": 60, "shutdownGraceSeconds": 0}}
    with SessionSystem(log, agents={"main": agent}, config=config, clock=clock) as system:
        say(system)
        gate.reached()
        FAULT.refused.clear()
        FAULT.down = disk_full()
        gate.open()
        assert FAULT.refused.wait(WAIT)
        FAULT.refused.clear()
        step_by(clock, HOUR)
        while not FAULT.refused.wait(0.02):
            pass_time(system, clock, 500)
        FAULT.down = None
        completed = pass_time_until(system, clock, 500, RunCompleted)

    assert completed.reply == "done"
    assert attempts == [1]


def ahead_and_back(booth: Booth) -> tuple[SessionSystem, ManualClock, list[int]]:
    """Have a session speak at the right time, another one ten years ahead, a third one at the right time again.

    Returns the system, its clock, and the log's heads between.
    """
    clock = ManualClock()
    begun, heads = clock.now_ms(), list[int]()
    system = booth.start({"main": lambda turn: turn.step}, None, QUIET, clock=clock)
    for chat, time in (("1", begun), ("2", begun + 10 * YEAR), ("3", begun + MINUTE)):
        clock.set_wall(time)
        say(system, chat_id=chat, deliver=False)
        heads.append(system.log.head())
    return system, clock, heads


@pytest.mark.clause("L8", "PLACE-1")
def test_a_time_names_a_place_again_once_a_clock_that_was_ahead_is_right(booth: Booth) -> None:
    system, clock, (first, ahead, back) = ahead_and_back(booth)
    begun = clock.now_ms() - MINUTE

    def head_at(time: int) -> int:
        at = datetime.fromtimestamp(time / 1000, tz=UTC).isoformat()
        return system.debug.view.place(at, field="at").position

    assert [head_at(begun + ms) for ms in (0, MINUTE - 1, MINUTE)] == [first, first, back]
    assert ahead > first
    with pytest.raises(ToolRefused, match="in the future"):
        head_at(begun + YEAR)


@pytest.mark.clause("L8", "LIST-3")
def test_no_session_stays_on_top_for_a_time_that_did_not_come(booth: Booth) -> None:
    system, clock, heads = ahead_and_back(booth)
    now, sessions = clock.now_ms(), system.service.reader.sessions

    def listed(at: int | None = None) -> list[tuple[str, int]]:
        return [(place.key[-1], -place.falling - now) for place in sessions.order(at).places()]

    clock.advance(MINUTE)
    say(system, chat_id="1", deliver=False)

    assert listed() == [("1", MINUTE), ("2", 0), ("3", 0)]
    assert [listed(head) for head in heads] == [
        [("1", -MINUTE)],
        [("2", 10 * YEAR - MINUTE), ("1", -MINUTE)],
        [("2", 0), ("3", 0), ("1", -MINUTE)],
    ]


@pytest.mark.clause("L8")
def test_status_says_that_the_clock_has_stepped_and_by_how_much(booth: Booth) -> None:
    clock = ManualClock()
    system = booth.start({"main": lambda turn: turn.step}, None, QUIET, clock=clock)

    def found() -> dict[str, tuple[str, str]]:
        findings = system.gateway.call("status", {})["findings"]
        return {each["code"]: (each["level"], each["what"]) for each in findings}

    say(system, deliver=False)
    before = found()
    step_by(clock, 10 * YEAR)
    say(system, deliver=False)
    ahead = found()
    step_by(clock, -10 * YEAR)
    unwritten = found()
    say(system, deliver=False)
    back = found()

    assert "clock_stepped" not in before
    assert ahead["clock_stepped"][0] == "warning"
    assert "1 time, the last time ahead by 3650 days, from 2023-11-14 22:13:20" in ahead["clock_stepped"][1]
    assert unwritten["log_ahead"][0] == "warning"
    assert back["clock_stepped"][0] == "note"
    assert "2 times, the last time back by 3650 days" in back["clock_stepped"][1]
    assert "log_ahead" not in back
