"""A system that is stopped in the middle of something carries on when it is started again, and does nothing twice."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from intersession import Channel, MemoryChannel, Outbound, Reply, SessionSystem, Turn
from intersession_events.facts import (
    AnnounceDecided,
    AnnounceRequested,
    ChildEnded,
    DeliveryDone,
    DeliveryFailed,
    DeliveryStarted,
    DeliveryUnknown,
    ExchangeAccepted,
    ExchangeClosed,
    LoopEnded,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunQueued,
    RunStarted,
    SpawnClosed,
    ToolCallBlock,
    TurnEnded,
    TurnRequested,
)
from support.fakes import ManualClock
from support.running import (
    QUIET,
    WAIT,
    Booth,
    Gate,
    all_said,
    closed_exchange,
    closed_spawn,
    one,
    pass_time_until,
    recorded,
    wait_for,
    wait_for_number,
)
from support.soaking import until

MAIN, OPS = "agent:main:main", "agent:ops:main"
ROOM = "agent:ops:telegram:group:-5"


def talk(turn: Turn) -> str | Reply:
    return f"{turn.agent_id} {turn.step} {turn.run_id[:4]}"


def stopping_at(gate: Gate, when: Callable[[Turn], bool]) -> Callable[[Turn], str | Reply]:
    def agent(turn: Turn) -> str | Reply:
        if when(turn):
            gate.stop(turn)
        return talk(turn)

    return agent


def begin(system: SessionSystem) -> str:
    """Begin an exchange between a person's main session and a room with a route; return its run."""
    system.inbound(
        channel="telegram",
        chat_id="-5",
        text="hi",
        sender="p",
        chat_type="group",
        agent_id="ops",
        deliver=False,
    )
    answer = system.tools(MAIN).call(
        "sessions_send",
        {"sessionKey": ROOM, "message": "status?", "timeoutSeconds": 0, "idempotencyKey": "k"},
    )
    assert answer["status"] == "accepted", answer
    return str(answer["runId"])


def assert_nothing_doubled(system: SessionSystem, *, attempts: int) -> None:
    """Check that every message, run, turn and delivery is there once, with so many second attempts."""
    messages = Counter(event.message.id for event in all_said(system))
    assert set(messages.values()) == {1}
    said = Counter(event.message.run_id for event in all_said(system) if event.message.role == "assistant")
    assert set(said.values()) == {1}, "each run answered once"
    for kind in (RunQueued, RunCompleted):
        runs = Counter(event.run_id for event in recorded(system, kind))  # type: ignore[attr-defined]
        assert set(runs.values()) == {1}
    starts = Counter((event.run_id, event.attempt) for event in recorded(system, RunStarted))
    assert set(starts.values()) == {1}
    assert sum(attempt > 1 for _, attempt in starts) == attempts
    requested = [event.turn for event in recorded(system, TurnRequested)]
    replied = [event.turn for event in recorded(system, TurnEnded) if event.turn]
    assert requested == replied == list(range(1, len(requested) + 1))


STAGES: dict[str, Callable[[Turn], bool]] = {
    "the primary run": lambda turn: turn.step == "message",
    "turn 1": lambda turn: "turn 1 of" in turn.context,
    "turn 3": lambda turn: "turn 3 of" in turn.context,
    "turn 4": lambda turn: "turn 4 of" in turn.context,
    "the announce": lambda turn: turn.step == "announce",
}


@pytest.mark.clause("SEND-3", "LOOP-1", "ANN-1", "L7", "S5", "K2", "A1")
@pytest.mark.parametrize("stage", STAGES)
def test_an_exchange_that_was_cut_off_goes_on_where_it_was(booth: Booth, stage: str) -> None:
    gate = Gate()
    agent = stopping_at(gate, STAGES[stage])
    first = booth.start({"main": agent, "ops": agent}, {"telegram": MemoryChannel()})
    run_id = begin(first)
    cut_off = gate.reached()
    first.close(grace=0)
    gate.open()

    telegram = MemoryChannel()
    turns: list[Turn] = []

    def noting(turn: Turn) -> str | Reply:
        turns.append(turn)
        return talk(turn)

    second = booth.start({"main": noting, "ops": noting}, {"telegram": telegram})
    events = closed_exchange(second, run_id)

    assert (turns[0].run_id, turns[0].attempt, turns[0].message) == (cut_off.run_id, 2, cut_off.message)
    assert all(turn.attempt == 1 for turn in turns[1:])
    assert recorded(second, RunInterrupted) == [RunInterrupted(run_id=cut_off.run_id, attempt=1)]
    assert [type(event) for event in events] == [
        ExchangeAccepted,
        TurnEnded,
        *[TurnRequested, TurnEnded] * 5,
        LoopEnded,
        AnnounceRequested,
        AnnounceDecided,
        ExchangeClosed,
    ]
    assert one(events, ExchangeClosed).reason == "announced"
    assert len(telegram.delivered) == 1
    assert_nothing_doubled(second, attempts=1)


@pytest.mark.clause("GATE-3", "SEND-9", "SEND-11", "O7")
def test_the_same_wait_and_the_same_key_mean_the_same_run_after_a_restart(booth: Booth) -> None:
    gate = Gate()
    agent = stopping_at(gate, STAGES["the primary run"])
    first = booth.start({"main": agent, "ops": agent}, None, QUIET)
    request = {"sessionKey": OPS, "message": "status?", "idempotencyKey": "k"}
    accepted = first.tools(MAIN).call("sessions_send", {**request, "timeoutSeconds": 0})
    gate.reached()
    first.close(grace=0)
    gate.open()

    second = booth.start({"main": talk, "ops": talk}, None, QUIET)
    waited = second.gateway.call("agent.wait", {"runId": accepted["runId"]})
    sent_again = second.tools(MAIN).call("sessions_send", request)
    second.close()
    third = booth.start({"main": talk, "ops": talk}, None, QUIET)

    assert waited["status"] == "ok"
    assert (sent_again["runId"], sent_again["reply"]) == (accepted["runId"], waited["reply"])
    assert third.gateway.call("agent.wait", {"runId": accepted["runId"]}) == waited
    assert len(recorded(third, RunQueued)) == 1


@pytest.mark.clause("S5")
def test_the_second_attempt_is_told_its_number_and_what_the_first_had_done(booth: Booth) -> None:
    gate = Gate()

    def first_try(turn: Turn) -> str:
        turn.tools.call("sessions_send", {"sessionKey": OPS, "message": "one step", "timeoutSeconds": 0})
        turn.record_result(turn.record_call("pay", {"amount": 5}), "pay", "paid")
        gate.stop(turn)
        return "never said"

    first = booth.start({"main": first_try, "ops": talk}, None, QUIET)
    accepted = first.inbound(channel="telegram", chat_id="1", text="pay them", sender="p")
    assert gate.reached().attempt == 1
    first.close(grace=0)
    gate.open()

    turns: list[Turn] = []

    def second_try(turn: Turn) -> str:
        turns.append(turn)
        return "done before"

    second = booth.start({"main": second_try, "ops": talk}, None, QUIET)
    answer = second.gateway.call("agent.wait", {"runId": accepted["runId"]})

    assert (answer["status"], answer["reply"]) == ("ok", "done before")
    (turn,) = turns
    assert (turn.attempt, turn.message, turn.transcript) == (2, "pay them", ())
    calls = [
        (block.name, block.arguments)
        for message in turn.partial
        for block in message.content
        if isinstance(block, ToolCallBlock)
    ]
    assert [name for name, _ in calls] == ["sessions_send", "pay"]
    assert calls[1] == ("pay", '{"amount":5}')
    assert [message.role for message in turn.partial] == ["assistant", "toolResult"] * 2
    shown = turn.prompt()
    assert "attempt 2" in shown
    assert "paid" in shown


@pytest.mark.clause("S5")
def test_out_of_attempts_the_run_ends_as_interrupted_and_the_session_is_free(booth: Booth) -> None:
    gate = Gate()
    agent = stopping_at(gate, lambda turn: turn.message == "status?")
    never = {"runs": {"retryInterrupted": 0}}
    first = booth.start({"main": agent, "ops": agent}, None, QUIET, never)
    run_id = begin(first)
    gate.reached()
    first.close(grace=0)
    gate.open()

    second = booth.start({"main": talk, "ops": talk}, None, QUIET, never)
    waited = second.gateway.call("agent.wait", {"runId": run_id})
    after = second.tools(MAIN).call("sessions_send", {"sessionKey": ROOM, "message": "and now?"})

    assert waited["status"] == "error"
    assert waited["error"].startswith("interrupted")
    assert one(closed_exchange(second, run_id), ExchangeClosed).reason == "run_failed"
    assert [event.code for event in recorded(second, RunFailed)] == ["interrupted"]
    assert after["status"] == "ok"


@pytest.mark.clause("L7")
def test_runs_that_wait_start_after_the_restart_as_first_attempts(booth: Booth) -> None:
    gate = Gate()
    first = booth.start({"main": stopping_at(gate, lambda _turn: True)})
    runs = [
        first.inbound(channel="telegram", chat_id="1", text=str(number), sender="p")["runId"]
        for number in range(5)
    ]
    gate.reached()
    first.close(grace=0)
    gate.open()

    attempts: list[tuple[str, int]] = []

    def noting(turn: Turn) -> str:
        attempts.append((turn.message, turn.attempt))
        return "ok"

    second = booth.start({"main": noting})
    for run_id in runs:
        assert second.gateway.call("agent.wait", {"runId": run_id})["status"] == "ok"

    assert attempts == [("0", 2), ("1", 1), ("2", 1), ("3", 1), ("4", 1)]


@pytest.mark.clause("L7")
def test_an_orderly_stop_lets_what_runs_come_to_its_end(booth: Booth) -> None:
    gate = Gate()
    first = booth.start({"main": stopping_at(gate, lambda turn: turn.message == "0")})
    runs = [
        first.inbound(channel="telegram", chat_id="1", text=str(number), sender="p")["runId"]
        for number in range(3)
    ]
    gate.reached()
    with ThreadPoolExecutor(1) as pool:
        stopped = pool.submit(first.close, grace=WAIT)
        until(lambda: first.service.world.agents.closing)  # what begins before that is no fault
        gate.open()
        stopped.result(WAIT)

    attempts: list[tuple[str, int]] = []

    def noting(turn: Turn) -> str:
        attempts.append((turn.message, turn.attempt))
        return "ok"

    second = booth.start({"main": noting})
    answers = [second.gateway.call("agent.wait", {"runId": run_id}) for run_id in runs]

    assert answers[0]["reply"].startswith("main message")
    assert [answer["reply"] for answer in answers[1:]] == ["ok", "ok"]
    assert attempts == [("1", 1), ("2", 1)], "nothing was begun that could not be ended"
    assert recorded(second, RunInterrupted) == []


class Down:
    """A channel that takes nothing."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def __call__(self, outbound: Outbound) -> None:
        self.keys.append(outbound.key)
        raise ConnectionError("down")


@pytest.mark.clause("ANN-3", "A8")
def test_a_delivery_that_waits_to_be_tried_again_is_tried_under_the_same_key(booth: Booth) -> None:
    clock, down = ManualClock(), Down()
    first = booth.start({"main": talk, "ops": talk}, {"telegram": down}, clock=clock)
    run_id = begin(first)
    wait_for(first, DeliveryFailed)
    first.close(grace=0)

    telegram = MemoryChannel()
    second = booth.start({"main": talk, "ops": talk}, {"telegram": telegram}, clock=clock)
    pass_time_until(second, clock, 500, DeliveryDone)

    assert [out.key for out in telegram.delivered] == down.keys
    assert [event.attempt for event in recorded(second, DeliveryStarted)] == [1, 2]
    assert one(closed_exchange(second, run_id), ExchangeClosed).reason == "announced"
    assert_nothing_doubled(second, attempts=0)


class Stuck:
    """A channel that takes the text and does not come back until it is let."""

    def __init__(self) -> None:
        self.called = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, outbound: Outbound) -> None:
        del outbound
        self.called.set()
        self.go_on.wait(WAIT)


@pytest.mark.clause("ANN-3", "A6", "O3")
@pytest.mark.parametrize(
    ("idempotent", "reason", "calls"), [(True, "announced", 1), (False, "delivery_unknown", 0)]
)
def test_a_delivery_in_doubt_is_sent_again_only_where_that_shows_once(
    booth: Booth, *, idempotent: bool, reason: str, calls: int
) -> None:
    stuck = Stuck()
    first = booth.start(
        {"main": talk, "ops": talk}, {"telegram": Channel(deliver=stuck, idempotent=idempotent)}
    )
    run_id = begin(first)
    assert stuck.called.wait(WAIT)
    first.close(grace=0)
    stuck.go_on.set()

    telegram = MemoryChannel(idempotent=idempotent)
    second = booth.start({"main": talk, "ops": talk}, {"telegram": telegram})
    events = closed_exchange(second, run_id)

    assert one(events, ExchangeClosed).reason == reason
    assert len(telegram.delivered) == calls
    assert len(recorded(second, DeliveryUnknown)) == (0 if idempotent else 1)
    assert_nothing_doubled(second, attempts=0)


@pytest.mark.clause("SPAWN-6", "SPAWN-9", "P5", "P6")
@pytest.mark.parametrize("step", ["message", "announce"])
def test_a_spawn_that_was_cut_off_goes_on_and_announces_once(booth: Booth, step: str) -> None:
    gate = Gate()
    agent = stopping_at(gate, lambda turn: turn.step == step)
    first = booth.start({"main": agent}, {"telegram": MemoryChannel()})
    first.inbound(channel="telegram", chat_id="42", text="hi", sender="p", deliver=False)
    request = {"task": "count", "idempotencyKey": "k"}
    answer = first.tools(MAIN).call("sessions_spawn", request)
    gate.reached()
    first.close(grace=0)
    gate.open()

    telegram = MemoryChannel()
    second = booth.start({"main": talk}, {"telegram": telegram})
    again = second.tools(MAIN).call("sessions_spawn", request)
    events = closed_spawn(second, answer["runId"])

    assert again == answer
    assert one(events, ChildEnded).status == "ok"
    assert one(events, SpawnClosed).reason == "announced"
    assert len(telegram.delivered) == 1
    assert_nothing_doubled(second, attempts=1)


@pytest.mark.clause("P5", "S5", "SPAWN-10")
def test_a_spawn_out_of_attempts_is_announced_as_interrupted(booth: Booth) -> None:
    gate = Gate()
    never = {"runs": {"retryInterrupted": 0}}
    first = booth.start({"main": stopping_at(gate, lambda _turn: True)}, {"telegram": MemoryChannel()}, never)
    first.inbound(channel="telegram", chat_id="42", text="hi", sender="p", deliver=False)
    run_id = first.tools(MAIN).call("sessions_spawn", {"task": "count"})["runId"]
    gate.reached()
    first.close(grace=0)
    gate.open()

    telegram = MemoryChannel()
    second = booth.start({"main": talk}, {"telegram": telegram}, never)
    events = closed_spawn(second, run_id)

    assert one(events, ChildEnded).status == "interrupted"
    (out,) = telegram.delivered
    assert out.text.startswith("Status: interrupted")


@pytest.mark.ci
@pytest.mark.clause("L7")
def test_a_system_that_is_stopped_again_and_again_still_gets_everything_done(booth: Booth) -> None:
    """Stops come while agents run, and none of them may use up attempts of what had not begun."""
    generations, sends = 4, 12
    runs: list[str] = []
    for generation in range(generations):
        telegram = MemoryChannel()
        system = booth.start(
            {"main": talk, "ops": talk, "hr": talk},
            {"telegram": telegram},
            {"runs": {"retryInterrupted": 100, "idleSeconds": 0.001}},
        )

        def send(number: int, system: SessionSystem = system, generation: int = generation) -> str:
            target = ("ops", "hr")[number % 2]
            request = {"agentId": target, "message": f"{number}", "idempotencyKey": f"{generation}-{number}"}
            answer = system.tools(MAIN).call("sessions_send", {**request, "timeoutSeconds": 0})
            return str(answer["runId"])

        with ThreadPoolExecutor(4) as pool:
            runs += pool.map(send, range(sends))
        system.close(grace=0)

    patient = {"runs": {"retryInterrupted": 100}}
    last = booth.start({"main": talk, "ops": talk, "hr": talk}, None, patient)
    wait_for_number(last, ExchangeClosed, generations * sends)

    assert len(set(runs)) == generations * sends
    assert Counter(event.reason for event in recorded(last, ExchangeClosed)) == {
        "no_route": generations * sends
    }
    assert all(last.gateway.call("agent.wait", {"runId": run_id})["status"] == "ok" for run_id in runs)
    messages = Counter(event.message.id for event in all_said(last))
    assert set(messages.values()) == {1}
