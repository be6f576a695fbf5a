"""A store that fails under a running agent: the answer is tried again, then the attempt is (reliability 3.1, rule 7)."""

import asyncio
import os
import random
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from intersession import Failure, MemoryChannel, SessionSystem, Turn
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.running.simulation.simulated import SimulatedRuntime
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.facts import (
    CheckpointTaken,
    ChildArchived,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunQueued,
    RunStarted,
    SpawnClosed,
)
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.opened import located, open_log
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views
from support.any_log import AnyLog, log_at
from support.fakes import ManualClock
from support.faulty_store import FAULT, disk_full, faulty, sync_failed
from support.running import SEES_ALL, WAIT, Gate, merged, pass_time, pass_time_until, recorded, wait_for


def verified(url: str) -> bool:
    with open_log(url, read_only=True) as log:
        return verify_log(log).ok


@pytest.mark.sqlite("a server lets each transaction wait for the rows alone that another has taken")
@pytest.mark.clause("D15")
def test_while_another_process_holds_the_files_lock_calls_are_refused_and_go_on_after_it(
    log_url: str,
) -> None:
    go = threading.Event()

    def agent(turn: Turn) -> str:
        assert turn.message != "first" or go.wait(WAIT)
        return f"re {turn.message}"

    with SessionSystem(log_url, agents={"main": agent}, channels={"x": lambda _: None}) as system:
        first = system.inbound(channel="x", chat_id="1", sender="1", text="first")
        other = sqlite3.connect(located(log_url).place, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        refused = system.inbound(channel="x", chat_id="1", sender="1", text="second", message_id="2")
        go.set()  # its outcome can't be recorded yet
        away = system.status()["store"]
        other.rollback()
        other.close()
        again = system.inbound(channel="x", chat_id="1", sender="1", text="second", message_id="2", wait=WAIT)
        waited = system.gateway.call("agent.wait", {"runId": first["runId"], "timeoutMs": 20_000})
        back = system.status()["store"]

    assert (refused.get("code"), again.get("reply"), waited["reply"]) == (
        "unavailable",
        "re second",
        "re first",
    )
    assert "another process writes into the log's file" in str(away["error"])
    assert away["startAgain"] is False
    assert back == {"available": True, "error": None, "startAgain": False}
    assert verified(log_url)


@pytest.mark.sqlite("after a failed sync a file has to be opened anew")
@pytest.mark.clause("D4")
def test_after_a_device_failed_it_is_said_that_a_start_is_needed_and_nothing_is_waited_for(
    log_url: str,
) -> None:
    asked, never = threading.Event(), threading.Event()

    def agent(_: Turn) -> str:
        asked.set()
        never.wait(WAIT)
        return "too late"

    log = log_at(log_url, inline=inline_views(), environment=faulty(log_url))
    # Whoever waited so long would run into the limit of the test.
    system = SessionSystem(log, agents={"main": agent}, config={"runs": {"shutdownGraceSeconds": 600}})
    system.inbound(channel="x", chat_id="1", sender="1", text="hi")
    assert asked.wait(WAIT)
    before = system.status()["store"]
    FAULT.before = sync_failed()
    refused = system.inbound(channel="x", chat_id="2", sender="1", text="hi")
    after, health = system.status()["store"], system.gateway.call("health", {})
    system.close()
    never.set()
    log.close()

    assert before == {"available": True, "error": None, "startAgain": False}
    assert refused.get("code") == "unavailable"
    assert (after["available"], after["startAgain"]) == (False, True)
    (finding,) = [finding for finding in health["findings"] if finding["code"] == "store_away"]
    assert "start the process again" in finding["advice"]
    assert "by itself" not in finding["advice"]


@pytest.mark.sqlite(
    "after a failed sync a file has to be opened anew; a server that goes on is written as before"
)
@pytest.mark.clause("D4", "S6")
def test_an_answer_that_a_broken_store_never_took_is_asked_for_again_at_the_next_start(
    log_url: str,
) -> None:
    asked, go = threading.Event(), threading.Event()
    attempts: list[int] = []

    def agent(turn: Turn) -> str:
        attempts.append(turn.attempt)
        asked.set()
        go.wait(30)
        return "done"

    log = log_at(log_url, inline=inline_views(), environment=faulty(log_url))
    config = {"runs": {"storeRetryMaxSeconds": 1}}
    with SessionSystem(log, agents={"main": agent}, config=config) as system:
        run_id = system.inbound(channel="x", chat_id="1", sender="1", text="hi")["runId"]
        assert asked.wait(20)
        FAULT.before = sync_failed()
        go.set()
        waited = system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 500})
        refused = system.inbound(channel="x", chat_id="2", sender="1", text="hi")
    log.close()

    with SessionSystem(log_url, agents={"main": agent}) as system:
        answer = system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 20_000})
        events = [item.event for item in system.log.stream("session:agent:main:main")]

    assert waited["status"] == "timeout"
    assert refused["code"] == "unavailable"
    assert (answer["status"], answer["reply"]) == ("ok", "done")
    assert attempts == [1, 2]
    assert [type(event) for event in events if isinstance(event, RunInterrupted | RunStarted)] == [
        RunStarted,
        RunInterrupted,
        RunStarted,
    ]


_ONE = {"agents": {"list": [{"id": "main", "default": True}]}}
MINUTES = {"runs": {"storeRetryMaxSeconds": 60, "shutdownGraceSeconds": 0}}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def log(log_url: str, clock: ManualClock) -> Iterator[AnyLog]:
    with log_at(log_url, inline=inline_views(), environment=faulty(log_url), clock=clock.now_ms) as opened:
        yield opened
    FAULT.down = None


def said(system: SessionSystem, text: str) -> Any:
    return system.inbound(channel="x", chat_id="1", sender="1", text=text)


@pytest.mark.clause("CHECK-1", "D5")
@pytest.mark.parametrize("every_events", [0, 1])
def test_a_checkpoint_that_the_store_does_not_take_is_told_and_tried_again_after_a_pause_only(
    log: AnyLog, clock: ManualClock, every_events: int
) -> None:
    told: Queue[Failure] = Queue()
    settings = {"checkpoints": {"everyEvents": every_events, "everySeconds": 60, "atStop": False}}
    with SessionSystem(
        log, agents={"main": lambda _: "hello"}, config=settings, clock=clock, on_failure=told.put
    ) as system:
        system.checkpoint()
        FAULT.down_next = disk_full()
        said(system, "hi")  # so that something is not covered yet
        if every_events != 1:  # else it fails at once: time that passes could bring the next try
            pass_time(system, clock, 61_000)
        while told.get(timeout=WAIT).kind != "checkpoint_failed":
            pass
        for _ in range(4):  # each waits for its turn on the thread that takes checkpoints
            with pytest.raises(StoreUnavailable):
                system.checkpoint()
        FAULT.down = None
        taken = pass_time_until(system, clock, 60_000, CheckpointTaken)

    later = [told.get_nowait().kind for _ in range(told.qsize())]
    assert later.count("checkpoint_failed") == 0, "the clock stood still while the store was away"
    assert taken.position > 0


@pytest.mark.clause("D5", "S6")
def test_trouble_that_is_over_does_not_shorten_the_patience_with_the_next(
    log: AnyLog, clock: ManualClock
) -> None:
    gate = Gate()
    attempts: list[int] = []

    def agent(turn: Turn) -> str:
        attempts.append(turn.attempt)
        gate.stop(turn)
        return "done"

    with SessionSystem(log, agents={"main": agent}, config=MINUTES, clock=clock) as system:
        run_id = str(said(system, "hi")["runId"])
        gate.reached()
        FAULT.before = disk_full()
        refused = said(system, "and?")
        pass_time(system, clock, 5 * 60_000)
        FAULT.before = disk_full()
        gate.open()
        completed = pass_time_until(system, clock, 500, RunCompleted)
        answer = system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 20_000})

    assert refused["code"] == "unavailable"
    assert completed.reply == "done"
    assert attempts == [1], "the first answer was kept"
    assert (answer["status"], answer["reply"]) == ("ok", "done")


@pytest.mark.clause("D5", "S3")
def test_a_run_starts_however_long_the_store_was_away(log: AnyLog, clock: ManualClock) -> None:
    with SessionSystem(log, agents={}, config=MINUTES | _ONE, clock=clock) as system:
        said(system, "hi")
        wait_for(system, RunQueued)
        FAULT.down = disk_full()
        FAULT.refused.clear()
        system.register_agent("main", lambda turn: f"heard {turn.message}")
        assert FAULT.refused.wait(WAIT)
        for _ in range(5):
            pass_time(system, clock, 60_000)
        started = recorded(system, RunStarted)
        FAULT.down = None
        completed = pass_time_until(system, clock, 500, RunCompleted)

    assert started == []
    assert completed.reply == "heard hi"


@pytest.mark.clause("D5", "S6")
def test_an_attempt_whose_answer_was_given_up_is_made_good_when_the_store_is_back(
    log: AnyLog, clock: ManualClock
) -> None:
    gate = Gate()
    attempts: list[int] = []

    def agent(turn: Turn) -> str:
        attempts.append(turn.attempt)
        if turn.attempt == 1:
            gate.stop(turn)
        return f"attempt {turn.attempt}"

    def on_failure(failure: Failure) -> None:
        if failure.kind == "answer_lost":
            given_up.set()

    given_up = threading.Event()
    with SessionSystem(
        log, agents={"main": agent}, config=MINUTES, clock=clock, on_failure=on_failure
    ) as system:
        said(system, "hi")
        gate.reached()
        FAULT.down = disk_full()
        gate.open()
        while not given_up.wait(0.02):
            pass_time(system, clock, 10_000)
        FAULT.down = None
        completed = pass_time_until(system, clock, 500, RunCompleted)
        after = said(system, "again")
        again = system.gateway.call("agent.wait", {"runId": after["runId"], "timeoutMs": round(WAIT * 1000)})

    assert completed.reply == "attempt 2"
    assert again["status"] == "ok"
    assert attempts == [1, 2, 1]


@pytest.mark.nightly
@pytest.mark.clause("D5", "S6")
@pytest.mark.parametrize("seed", range(4))
def test_trouble_that_comes_and_goes_leaves_nothing_open_and_loses_nothing(log_url: str, seed: int) -> None:
    """Short and long outages in the middle of runs, exchanges, spawns and deliveries."""
    chance = random.Random(seed)  # noqa: S311 - when outages come is no secret
    stop = threading.Event()

    def agent(turn: Turn) -> str:
        if turn.message == "spawn":
            with suppress(ToolRefused):
                turn.tools.call("sessions_spawn", {"task": "look"})
        return "words"

    def outages() -> None:
        while not stop.wait(chance.choice([0.05, 0.2, 0.5])):
            FAULT.down = disk_full()
            stop.wait(chance.choice([0.02, 0.1, 0.8, 1.5]))
            FAULT.down = None

    config = merged(SEES_ALL, {"runs": {"storeRetryMaxSeconds": 1}})
    telegram = MemoryChannel()
    accepted: list[str] = []
    with (
        log_at(log_url, inline=inline_views(), environment=faulty(log_url)) as log,
        SessionSystem(
            log, agents={"main": agent, "ops": agent}, channels={"x": telegram}, config=config
        ) as system,
    ):
        said(system, "hi")
        trouble = threading.Thread(target=outages, daemon=True)
        trouble.start()
        for number in range(40):
            for answer in (
                said(system, chance.choice(["hi", "spawn"])),
                system.tools("agent:main:main").call(
                    "sessions_send",
                    {"sessionKey": "agent:ops:main", "message": str(number), "timeoutSeconds": 0},
                ),
            ):
                accepted += [str(answer["runId"])] if "runId" in answer else []
            stop.wait(0.1)
        stop.set()
        trouble.join()
        flows, runs = system.service.flows, system.service.runs
        left: list[object] = []
        for _ in range(600):
            left = [
                *runs.open_runs(),
                *flows.open_exchanges(),
                *flows.open_spawns(),
                *flows.open_deliveries(),
            ]
            if not left:
                break
            log.wait_for(log.head() + 1, timeout=0.1)

        assert left == []
        assert system.status()["degraded"] == {}
        assert [run_id for run_id in accepted if runs.get(run_id) is None] == []


@pytest.mark.clause("D4", "L3")
def test_an_agent_is_stopped_at_its_deadline_only_once_the_end_is_recorded(
    log: AnyLog, clock: ManualClock
) -> None:
    begun, stopped = threading.Event(), threading.Event()

    async def agent(_turn: Turn) -> str:
        begun.set()
        try:
            await asyncio.sleep(WAIT)
        except asyncio.CancelledError:
            stopped.set()
            raise
        return "too late"

    with SessionSystem(log, agents={"main": agent}, config=MINUTES, clock=clock) as system:
        run_id = system.gateway.call(
            "agent", {"sessionKey": "agent:main:main", "message": "hi", "timeout": 1, "idempotencyKey": "k"}
        )["runId"]
        assert begun.wait(WAIT)
        FAULT.down = disk_full()
        FAULT.refused.clear()
        pass_time(system, clock, 2_000)
        assert FAULT.refused.wait(WAIT)
        stopped_before = stopped.is_set()
        FAULT.down = None
        pass_time_until(system, clock, 500, RunFailed)
        answer = system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 20_000})
        assert stopped.wait(WAIT)

    assert not stopped_before
    assert (answer["status"], answer["error"]) == ("timeout", "timeout: the run had 1 s")


@pytest.mark.clause("D5", "P8")
def test_a_step_that_the_store_does_not_take_is_asked_again_every_half_second_and_not_at_once(
    log_url: str,
) -> None:
    runtime = SimulatedRuntime()
    log = log_at(
        log_url,
        inline=inline_views(),
        threads=False,
        clock=runtime.clock.now_ms,
        environment=faulty(log_url),
    )
    given: dict[str, Any] = {
        "agents": {"main": lambda turn: turn.message},
        "channels": {"x": MemoryChannel()},
    }
    with log, SessionSystem(log, runtime=runtime, **given) as system:
        system.inbound(channel="x", chat_id="1", sender="1", text="hi")
        system.tools("agent:main:main").call("sessions_spawn", {"task": "dig"})
        runtime.run_for(3_500)
        assert recorded(system, SpawnClosed)
        FAULT.down = disk_full()
        try:
            for _ in range(2_000):
                runtime.step()
        finally:
            FAULT.down = None
        passed = runtime.clock.monotonic()
        runtime.run_for(10)
        archived = recorded(system, ChildArchived)

    assert passed > 3_660, "it asked without a pause"
    assert len(archived) == 1


@pytest.mark.clause("D5", "O3", "O5")
def test_an_end_that_is_recorded_twice_over_is_delivered_once(log_url: str) -> None:
    """A start tells a session twice to make good what it left: the store refuses the first try, and takes the second."""
    channel = MemoryChannel()
    config = {"runs": {"retryInterrupted": 0, "failureText": "Sorry."}}

    def opened(runtime: SimulatedRuntime) -> AnyLog:
        return log_at(
            log_url,
            inline=inline_views(),
            threads=False,
            clock=runtime.clock.now_ms,
            environment=faulty(log_url),
        )

    runtime = SimulatedRuntime()
    log = opened(runtime)
    agents = {"main": lambda turn: runtime.pause(100)}  # noqa: ARG005 - an agent is given its turn
    system = SessionSystem(log, runtime=runtime, agents=agents, channels={"x": channel}, config=config)
    system.inbound(channel="x", chat_id="1", sender="1", text="hi")
    runtime.run_for(1)
    log.crash()
    runtime.crash()

    runtime = SimulatedRuntime()
    with opened(runtime) as log:
        given: dict[str, Any] = {"agents": {}, "channels": {"x": channel}, "config": config}
        with SessionSystem(log, runtime=runtime, **given) as system:
            FAULT.before = disk_full()
            runtime.run_for(60)
            ended = recorded(system, RunFailed)

    assert FAULT.before is None, "the store was asked"
    assert [end.code for end in ended] == ["interrupted"]
    assert [outbound.text for outbound in channel.delivered] == ["Sorry."]


@pytest.mark.clause("D4", "D12")
@pytest.mark.sqlite("cuts a file of the database off")
def test_a_system_whose_log_can_not_be_read_any_more_stops_and_lets_the_file_go(tmp_path: Path) -> None:
    """Before: the stop failed half way, and the file had a writer for as long as the process lived."""
    path = tmp_path / "log.db"
    system = SessionSystem(path, agents={"main": lambda turn: turn.message})
    system.inbound(channel="x", chat_id="1", sender="p", text="hi", wait=WAIT)
    os.truncate(f"{path}-wal", 0)

    system.close()

    with SqliteLog(path) as log:
        assert log.head() == 0
