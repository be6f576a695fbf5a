"""What an agent answered is not lost where its session's actor is started again at that moment, and no agent is asked twice.

A process that is killed has nothing to keep a result in (`tests/crash/`); one that goes on has.
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from intersession import Channel, MemoryChannel, SessionSystem, Turn
from intersession_events.basics.crash_points import arm
from intersession_events.facts import (
    DeliveryDone,
    DeliveryUnknown,
    ExchangeClosed,
    LateReplyDropped,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    SpawnClosed,
)
from support.running import WAIT, Booth, Gate, closed_exchange, closed_spawn, one, recorded, speak, wait_for

MAIN, OPS = "agent:main:main", "agent:ops:main"
CONFIGS: tuple[dict[str, object], ...] = ({}, {"runs": {"retryInterrupted": 0}})
"""What is cut off is tried again, or is not: neither is to be seen here."""


@contextmanager
def failing(point: str, passings: int = 1) -> Generator[None]:
    """Fail in the actor's handler as it passes a point, the first few times."""
    left = [passings]
    lock = threading.Lock()

    def hook(passed: str) -> None:
        with lock:
            fails = passed == point and left[0] > 0
            left[0] -= fails
        if fails:
            raise MemoryError(f"at {point}")

    disarm = arm(hook)
    try:
        yield
    finally:
        disarm()
    assert left[0] == 0, f"nobody passed {point} {passings} times"


def assert_asked_once(system: SessionSystem) -> None:
    assert recorded(system, RunInterrupted) == []
    assert recorded(system, LateReplyDropped) == []
    assert {event.attempt for event in recorded(system, RunStarted)} == {1}


@pytest.mark.parametrize("config", CONFIGS, ids=["tried again", "not tried again"])
@pytest.mark.parametrize("passings", [1, 2])
def test_an_answer_is_recorded_by_the_actor_that_comes_next(
    booth: Booth, config: dict[str, object], passings: int
) -> None:
    asked: list[Turn] = []

    def agent(turn: Turn) -> str:
        asked.append(turn)
        return f"you said {turn.message}"

    channel = MemoryChannel()
    system = booth.start({"main": agent}, {"telegram": channel}, config)
    with failing("S6", passings):
        run_id = speak(system)["runId"]

    (completed,) = recorded(system, RunCompleted)
    assert (completed.run_id, completed.reply) == (run_id, "you said hi")
    assert len(asked) == 1
    assert_asked_once(system)
    channel.wait_for(1, timeout=WAIT)
    assert system.status()["failures"]["actor_restarted"] == passings


@pytest.mark.parametrize("point", ["S6", "K3", "A2"])
def test_an_exchange_goes_on_with_the_answer(booth: Booth, point: str) -> None:
    """The kind: the primary run, a turn, the announce."""
    system = booth.start({"main": lambda turn: turn.step, "ops": lambda turn: turn.step})
    with failing(point):
        sent = system.tools(MAIN).call(
            "sessions_send", {"agentId": "ops", "message": "hi", "timeoutSeconds": WAIT}
        )
        events = closed_exchange(system, sent["runId"])

    assert (sent["status"], sent["reply"]) == ("ok", "message")
    assert one(events, ExchangeClosed).reason == "no_route"
    assert_asked_once(system)


@pytest.mark.parametrize("point", ["S6", "A2"])
def test_a_spawn_goes_on_with_the_answer(booth: Booth, point: str) -> None:
    """The kind: the task, the announce, and the requester's run on the result."""
    system = booth.start({"main": lambda turn: turn.step})
    with failing(point):
        spawned = system.tools(MAIN).call("sessions_spawn", {"task": "count"})
        events = closed_spawn(system, spawned["runId"])

    assert one(events, SpawnClosed).reason == "handed_over"
    assert_asked_once(system)


def test_an_agent_that_failed_has_failed(booth: Booth) -> None:
    """The kind: an error is a result, too."""

    def broken(_turn: Turn) -> str:
        raise ValueError("no model")

    system = booth.start({"main": broken})
    with failing("S6"):
        speak(system)

    (failed,) = recorded(system, RunFailed)
    assert (failed.code, "no model" in failed.error, failed.traceback is None) == ("backend", True, False)
    assert_asked_once(system)


@pytest.mark.clause("L3")
def test_an_answer_that_the_session_fails_on_again_and_again_is_a_bad_reply(booth: Booth) -> None:
    """What no actor can take must not take the session with it: the run fails, and says why."""
    system = booth.start({"main": lambda turn: turn.message})
    with failing("S6", 3):
        speak(system)

    (failed,) = recorded(system, RunFailed)
    assert failed.code == "bad_reply"
    assert "MemoryError: at S6" in failed.error
    assert_asked_once(system)
    assert system.status()["degraded"] == {}
    speak(system, "once more")
    assert [event.reply for event in recorded(system, RunCompleted)] == ["once more"]


@pytest.mark.parametrize("point", ["S4", "K2", "A1"])
def test_an_attempt_that_no_agent_was_called_for_is_made_up_for(booth: Booth, point: str) -> None:
    """The kind: the actor failed between the event that an attempt begins and the call. No setting gives that run up."""
    agents = {"main": lambda turn: turn.step, "ops": lambda turn: turn.step}
    system = booth.start(agents, None, {"runs": {"retryInterrupted": 0}})
    with failing(point):
        sent = system.tools(MAIN).call(
            "sessions_send", {"agentId": "ops", "message": "hi", "timeoutSeconds": WAIT}
        )
        events = closed_exchange(system, sent["runId"])

    assert (sent["status"], one(events, ExchangeClosed).reason) == ("ok", "no_route")
    assert recorded(system, RunFailed) == []
    assert [event.attempt for event in recorded(system, RunInterrupted)] == [1]


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize("idempotent", [True, False])
def test_a_text_that_no_channel_was_asked_for_yet_is_not_in_doubt(booth: Booth, *, idempotent: bool) -> None:
    """The kind: the outbox failed between the event that an attempt begins and the call, which this process knows."""
    channel = MemoryChannel(idempotent=idempotent)
    system = booth.start({"main": lambda turn: turn.message}, {"telegram": channel})
    with failing("A5"):
        speak(system)
        done = wait_for(system, DeliveryDone)

    assert [out.text for out in channel.delivered] == ["hi"]
    assert (done.attempt, recorded(system, DeliveryUnknown)) == (1, [])


@pytest.mark.clause("SPAWN-12")
def test_a_thread_that_no_channel_was_asked_for_yet_is_opened_once(booth: Booth) -> None:
    """The kind: a channel that can't be asked twice was not asked at all."""
    wanted: list[object] = []

    def opened(asked: object) -> str:
        wanted.append(asked)
        return "t1"

    discord = Channel(deliver=lambda _out: None, threads=opened)
    system = booth.start({"main": lambda turn: turn.step}, {"discord": discord})
    said: dict[str, Any] = {"channel": "discord", "chat_id": "42", "chat_type": "group", "sender": "p"}
    system.inbound(**said, text="hi", deliver=False)
    with failing("P2"):
        spawned = system.tools("agent:main:discord:group:42").call(
            "sessions_spawn", {"task": "count", "thread": True}
        )

    assert (spawned["status"], len(wanted)) == ("accepted", 1), spawned


def test_a_late_answer_is_put_on_record_once(booth: Booth) -> None:
    """The kind: what comes after an abort."""
    gate = Gate()
    system = booth.start({"main": gate.saying("late")})
    run_id = system.inbound(channel="telegram", chat_id="42", sender="ann", text="hi")["runId"]
    gate.reached()
    system.abort(run_id)
    gate.open()
    late = wait_for(system, LateReplyDropped)
    speak(system, "next")

    assert (late.run_id, late.reply) == (run_id, "late")
    assert len(recorded(system, LateReplyDropped)) == 1
