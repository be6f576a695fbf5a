"""Holds of a running system: what stops, who waits for what, and that nothing is lost or doubled by it (LIVE-1)."""

import asyncio
import random
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from intersession import Failure, GoingOn, MemoryChannel, SessionSystem, ToolRefused, Turn
from intersession_actors.owners.flows.process_manager import ProcessManager
from intersession_actors.owners.streams.commands import RunEnded
from intersession_actors.running.simulation.simulated import SimulatedRuntime
from intersession_events.basics.ids import exchange_stream
from intersession_events.facts import (
    AnnounceDecided,
    ExchangeClosed,
    ExchangeHeld,
    ExchangeReleased,
    HoldWithdrawn,
    LoopEnded,
    RunCompleted,
    RunQueued,
    RunStarted,
    SessionArchived,
    TurnEnded,
    TurnRequested,
    text_of,
)
from intersession_events.log.recorded import Recorded, parts_in
from intersession_events.stores.library.frontier import Frontier
from support.any_log import Logs
from support.every_day import every_day
from support.fakes import ManualClock
from support.running import (
    SEES_ALL,
    WAIT,
    Booth,
    Gate,
    all_said,
    exchange_of,
    merged,
    pass_time_until,
    recorded,
    wait_for,
    wait_for_number,
)

pytestmark = pytest.mark.clause("LIVE-1")

MAIN, OPS = "agent:main:main", "agent:ops:main"


def hold(setting: str, **more: Any) -> dict[str, Any]:
    return {"session": {"agentToAgent": {"hold": setting, "maxPingPongTurns": 2, **more}}}


def says(turn: Turn) -> str:
    return f"{turn.agent_id} on {turn.message!r}" if turn.step != "announce" else "all is well"


AGENTS = {"main": says, "ops": says}


def send(system: SessionSystem, seconds: float = 0, **more: Any) -> dict[str, Any]:
    given = {"sessionKey": OPS, "message": "status?", "timeoutSeconds": seconds, **more}
    answer: dict[str, Any] = dict(system.tools(MAIN).call("sessions_send", given))
    return answer


def closed(system: SessionSystem, run_id: str) -> list[Any]:
    stream = exchange_of(system, run_id)
    wait_for_stream(system, stream, ExchangeClosed)
    return [item.event for item in parts_in(system.log.stream(stream))]


def wait_for_stream(system: SessionSystem, stream: str, kind: type[Any], number: int = 1) -> None:
    for item in parts_in(system.follow(0, timeout=WAIT)):
        number -= item.stream == stream and isinstance(item.event, kind)
        if number == 0:
            return
    raise AssertionError(f"no {kind.__name__} came in {stream}")


def opened(system: SessionSystem) -> SessionSystem:
    """Give both sessions a route, as people's messages do."""
    for agent in ("main", "ops"):
        system.inbound(channel="chat", chat_id=agent, sender="ann", text="hi", agent_id=agent, deliver=False)
    return system


def test_each_text_waits_and_goes_on_as_it_was_edited_or_is(booth: Booth) -> None:
    channel = MemoryChannel()
    system = opened(booth.start(AGENTS, {"chat": channel}, hold("every-turn")))
    run_id = send(system)["runId"]
    wait_for_number(system, ExchangeHeld, 1)
    assert recorded(system, TurnRequested) == []
    first = system.release(run_id, text="all is fine")
    for number in (2, 3):
        wait_for_number(system, ExchangeHeld, number)
        assert system.status()["held"][0]["runId"] == run_id
        system.release(run_id)

    assert first["status"] == "released"
    closed(system, run_id)
    said = [item.message for item in all_said(system, f"session:{MAIN}") if item.message.role == "user"]
    assert text_of(said[-1]) == "all is fine"
    assert said[-1].provenance is not None
    assert said[-1].provenance.edited_by == "operator"
    assert [(held.step, held.turn) for held in recorded(system, ExchangeHeld)] == [
        ("reply", 0),
        ("reply", 1),
        ("announce", 2),
    ]
    assert [sent.text for sent in channel.delivered] == ["all is well"]
    assert system.status()["held"] == []


def test_who_waits_hears_nothing_of_a_reply_before_it_is_released(booth: Booth) -> None:
    system = booth.start(AGENTS, {}, hold("reply"))
    send(system, idempotencyKey="held")
    wait_for(system, ExchangeHeld)
    answer = send(system, 0.05, idempotencyKey="held")
    ran = system.gateway.call("agent.wait", {"runId": answer["runId"], "timeoutMs": 0})
    other = send(system, message="and now?")

    assert (answer["status"], answer["held"], answer["delivered"]) == ("timeout", True, True)
    assert "reply" not in answer
    assert (ran["status"], ran["held"]) == ("ok", "reply")

    async def waiting() -> list[dict[str, Any]]:
        asked = {"sessionKey": OPS, "message": "again?", "timeoutSeconds": WAIT, "idempotencyKey": "k"}
        tools = system.tools(MAIN)
        waits = [asyncio.create_task(tools.acall("sessions_send", asked)) for _ in range(2)]
        await asyncio.to_thread(wait_for_number, system, ExchangeHeld, 3)
        held = system.status()["held"][-1]
        await system.arelease(held["runId"], text="in other words")
        return [dict(await wait) for wait in waits]

    for heard in asyncio.run(waiting()):
        assert (heard["status"], heard["reply"], heard["edited"]) == ("ok", "in other words", True)
    system.release(other["runId"], action="drop")
    events = closed(system, other["runId"])
    assert [type(event).__name__ for event in events][-2:] == ["ExchangeReleased", "ExchangeClosed"]


def test_a_dropped_first_reply_is_no_reply_to_who_waits(booth: Booth) -> None:
    system = booth.start(AGENTS, {}, hold("reply"))
    run_id = send(system, idempotencyKey="k")["runId"]
    wait_for(system, ExchangeHeld)
    system.release(run_id, action="drop")
    answer = send(system, 5, idempotencyKey="k")
    assert (answer["status"], answer["reply"], answer["noReply"]) == ("ok", "", True)


def test_a_hold_outlives_the_process_and_the_release_too(booth: Booth) -> None:
    system = booth.start(AGENTS, {}, hold("reply"))
    run_id = send(system)["runId"]
    wait_for(system, ExchangeHeld)
    system.close(grace=0)

    alone = booth.start({})
    assert [held["runId"] for held in alone.status()["held"]] == [run_id]
    answer = alone.release(run_id)
    assert answer["status"] == "released"
    assert recorded(alone, LoopEnded) == [], "no agent is here, which is no end of the loop"
    alone.close(grace=0)

    again = booth.start({"ops": says})
    assert recorded(again, TurnRequested) == []
    again.register_agent("main", says)
    assert [event.turn for event in closed(again, run_id) if isinstance(event, TurnEnded) and event.turn] == [
        1,
        2,
    ]


def test_a_session_that_is_held_stops_its_exchanges_those_to_come_as_well(booth: Booth) -> None:
    gate = Gate()
    system = booth.start({"main": says, "ops": gate.before(says)})
    first = send(system)["runId"]
    gate.reached()
    answer = system.hold(session_key=MAIN)
    assert (answer["before"], answer["again"], answer["exchanges"]) == ("next", False, [first])
    assert system.hold(session_key="main")["again"] is True
    gate.open()
    wait_for_number(system, ExchangeHeld, 1)
    system.close(grace=0)

    system = booth.start(AGENTS)
    assert system.status()["heldSessions"] == {MAIN: "next"}
    second = send(system, message="more")["runId"]
    wait_for_number(system, ExchangeHeld, 2)
    assert {held.source for held in recorded(system, ExchangeHeld)} == {"session"}
    with pytest.raises(ToolRefused, match="2 exchanges of it are held"):
        system.release(session_key=MAIN, text="one text for two")
    gone_on = system.release(session_key=MAIN)
    assert sorted(gone_on["released"]) == sorted([first, second])
    assert system.release(session_key=MAIN)["again"] is True
    for run_id in (first, second):
        closed(system, run_id)
    third = send(system, message="free")["runId"]
    closed(system, third)
    assert len(recorded(system, ExchangeHeld)) == 2


def test_an_exchange_is_held_by_any_of_its_runs_and_the_hold_can_be_withdrawn(booth: Booth) -> None:
    gate = Gate()
    system = booth.start({"main": says, "ops": gate.before(says)})
    run_id = send(system)["runId"]
    gate.reached()
    asked = [system.hold(run_id, before="announce") for _ in range(2)]
    assert [answer["again"] for answer in asked] == [False, True]
    withdrawn = [system.release(run_id) for _ in range(2)]
    assert [(answer["status"], answer["again"]) for answer in withdrawn] == [
        ("withdrawn", False),
        ("withdrawn", True),
    ]
    wait_for(system, HoldWithdrawn)
    by_id = system.hold(exchange_of(system, run_id).partition(":")[2], before="announce")
    assert (by_id["runId"], by_id["again"]) == (run_id, False)
    gate.open()
    held = wait_for(system, ExchangeHeld)
    assert (held.step, held.source, held.by) == ("announce", "run", "operator")
    assert system.abort(run_id) is True, "an abort of what is held ends it"
    assert closed(system, run_id)[-1].reason == "ended"


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"runId": "r", "sessionKey": "main"},
        {"runId": "no-such-run"},
        {"sessionKey": "agent:ops:nobody"},
        {"runId": "r", "before": "noon"},
    ],
)
@pytest.mark.parametrize("method", ["exchanges.hold", "exchanges.release"])
def test_what_names_nothing_is_refused(booth: Booth, method: str, asked: dict[str, Any]) -> None:
    system = booth.start(AGENTS)
    answer = system.gateway.call(method, asked)
    assert answer["status"] == "error"
    assert answer["code"] in {"invalid_request", "unknown_run", "not_visible"}


def test_a_run_that_is_of_no_exchange_can_not_be_held_and_one_that_is_over_neither(booth: Booth) -> None:
    system = booth.start(AGENTS)
    alone = system.gateway.call("agent", {"message": "hi", "idempotencyKey": "k"})["runId"]
    with pytest.raises(ToolRefused, match="is of no exchange"):
        system.hold(alone)
    run_id = send(system)["runId"]
    closed(system, run_id)
    with pytest.raises(ToolRefused, match="nothing of its exchange"):
        system.hold(run_id)
    with pytest.raises(ToolRefused, match="it is not held"):
        system.release(run_id)
    with pytest.raises(ToolRefused, match="text"):
        system.release(run_id, action="edit")


def test_a_session_that_is_deleted_while_it_is_held_is_gone_when_it_is_released(booth: Booth) -> None:
    system = booth.start(AGENTS, {}, hold("reply"))
    asker = "agent:main:side"
    system.gateway.call("agent", {"message": "hi", "sessionKey": asker, "idempotencyKey": "k"})
    asked = {"sessionKey": OPS, "message": "x", "timeoutSeconds": 0}
    run_id = str(dict(system.tools(asker).call("sessions_send", asked))["runId"])
    wait_for(system, ExchangeHeld)
    system.gateway.call("sessions.delete", {"key": asker})
    assert system.status()["held"]
    system.release(run_id)
    closed(system, run_id)
    (end,) = recorded(system, LoopEnded)
    assert end.reason == "requester_gone"


def test_time_that_an_exchange_was_held_counts_for_no_limit(booth: Booth) -> None:
    clock = ManualClock()
    system = booth.start(AGENTS, {}, hold("reply", limits={"wallSeconds": 60}), clock=clock)
    run_id = send(system)["runId"]
    wait_for(system, ExchangeHeld)
    clock.advance(3_600_000)
    system.release(run_id)
    pass_time_until(system, clock, 1, ExchangeClosed)
    (released,) = recorded(system, ExchangeReleased)
    (end,) = recorded(system, LoopEnded)
    assert released.held_ms == 3_600_000
    assert (end.reason, end.turns) == ("turn_limit", 2)


# --- a rule of the host's


def test_a_rule_is_asked_about_each_text_outside_of_any_actor_and_says_why(booth: Booth) -> None:
    asked: list[GoingOn] = []

    def rule(going: GoingOn) -> str | None:
        asked.append(going)
        return "has a number" if "status?" in going.text else None

    system = booth.start(AGENTS, {}, hold("off"), hold=rule)
    run_id = send(system)["runId"]
    held = wait_for(system, ExchangeHeld)
    assert (held.source, held.by, held.note) == ("rule", "rule", "has a number")
    system.release(run_id, text="nothing")
    closed(system, run_id)
    assert [(going.step, going.turn, going.speaker, going.to) for going in asked] == [
        ("reply", 0, OPS, MAIN),
        ("reply", 1, MAIN, OPS),
        ("announce", 2, OPS, None),
    ]
    assert asked[0].request == "status?"


async def _async_rule(going: GoingOn) -> bool:
    await asyncio.sleep(0)
    return going.step == "announce"


def _raises(_going: GoingOn) -> bool:
    raise SystemExit("no")


def _nonsense(_going: GoingOn) -> Any:
    return 7


@pytest.mark.parametrize(
    ("rule", "step", "fails"), [(_async_rule, "announce", 0), (_raises, "reply", 1), (_nonsense, "reply", 1)]
)
def test_a_rule_may_be_async_and_one_that_fails_holds(booth: Booth, rule: Any, step: str, fails: int) -> None:
    told: list[Failure] = []
    system = booth.start(AGENTS, {}, hold("off"), hold=rule, on_failure=told.append)
    run_id = send(system)["runId"]
    held = wait_for(system, ExchangeHeld)
    assert held.step == step
    assert system.status()["failures"].get("hold_rule_failed", 0) == fails
    system.release(run_id, for_good=True)
    closed(system, run_id)
    system.close()
    assert [failure.kind for failure in told] == ["hold_rule_failed"] * fails


def test_a_rule_that_says_nothing_keeps_nobody_waiting_but_its_own_text(booth: Booth) -> None:
    clock, gate = ManualClock(), Gate()

    def rule(going: GoingOn) -> bool:
        if going.request == "slow":
            gate.stop(going)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - anything can stop there
        return False

    system = booth.start(AGENTS, {}, hold("off"), hold=rule, clock=clock)
    slow = send(system, message="slow")["runId"]
    gate.reached()
    closed(system, send(system, message="quick")["runId"])
    held = pass_time_until(system, clock, 60_000, ExchangeHeld)
    gate.open()
    assert held.note is not None
    assert "60 s" in held.note
    system.release(slow, for_good=True)
    closed(system, slow)


def test_a_rule_that_was_asked_when_the_process_ended_is_asked_again(booth: Booth) -> None:
    gate = Gate()

    def rule(going: GoingOn) -> bool:
        gate.stop(going)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - anything can stop there
        return False

    system = booth.start(AGENTS, {}, hold("off"), hold=rule)
    run_id = send(system)["runId"]
    gate.reached()
    system.close(grace=0)
    gate.open()
    asked: list[str] = []

    def other(going: GoingOn) -> None:
        asked.append(going.step)

    again = booth.start(AGENTS, {}, hold("off"), hold=other)
    closed(again, run_id)
    assert asked == ["reply", "reply", "announce"]


def test_a_turn_that_is_refused_once_the_rule_has_spoken_ends_the_loop(booth: Booth) -> None:
    gate = Gate()
    system = booth.start(
        {"main": says, "ops": gate.before(says, "message")}, {}, hold("off"), hold=lambda _: False
    )
    run_id = send(system)["runId"]
    gate.reached()
    system.gateway.call("sessions.patch", {"key": MAIN, "sendPolicy": "deny"})
    gate.open()

    closed(system, run_id)
    assert [ended.reason for ended in recorded(system, LoopEnded)] == ["policy_denied"]
    assert system.debug.replay()["firstDifference"] is None


@pytest.mark.clause("GATE-5")
@pytest.mark.parametrize("step", ["reply", "announce"])
def test_an_abort_ends_an_exchange_about_which_a_rule_is_asked(booth: Booth, step: str) -> None:
    """It was told that there is nothing to stop, and the text went on when the rule let it."""
    gate = Gate()

    def rule(going: GoingOn) -> bool:
        if going.step == step:
            gate.stop(going)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - anything can stop there
        return False

    system = booth.start(AGENTS, {}, hold("off"), hold=rule)
    run_id = send(system)["runId"]
    gate.reached()
    assert system.gateway.call("chat.abort", {"sessionKey": OPS, "runId": run_id})["aborted"] is True
    events = closed(system, run_id)
    gate.open()
    held, released, _, end = events[-4:]
    assert isinstance(held, ExchangeHeld)
    assert isinstance(released, ExchangeReleased)
    assert (held.source, held.note) == ("rule", "operator stopped it before the host's rule had spoken")
    assert (released.action, end.reason) == ("end", "ended")
    assert not system.abort(run_id)
    assert system.debug.replay(run_id)["same"]


@pytest.mark.clause("GATE-5")
@pytest.mark.parametrize("seed", every_day(range(16), *range(4)))
def test_an_abort_in_the_moment_between_a_run_and_its_rule_ends_the_exchange(seed: int) -> None:
    """The exchange did not know yet that its run had ended, or the run ended before its session heard of the abort."""
    runtime = SimulatedRuntime(seed)

    def rule(going: GoingOn) -> bool:
        del going
        runtime.pause(5)
        return False

    config = merged(SEES_ALL, hold("off"))
    with SessionSystem(":memory:", agents=AGENTS, config=config, hold=rule, runtime=runtime) as system:
        asked = runtime.spawn(lambda: send(system))
        runtime.run_until(lambda: bool(recorded(system, RunStarted)))
        run_id = asked.result()["runId"] if asked.done() else recorded(system, RunQueued)[0].run_id
        if seed % 2:
            runtime.run_until(lambda: bool(recorded(system, RunCompleted)))
        aborted = runtime.spawn(lambda: system.abort(run_id))
        runtime.run_until(aborted.done)
        runtime.run_until(asked.done)
        runtime.run_for(600)
        [closed] = recorded(system, ExchangeClosed)
        assert (aborted.result(), closed.reason in {"ended", "aborted"}) == (True, True)
        assert system.debug.replay(run_id)["same"]


# --- the law

_FOLDERS = count()


@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(chance=st.randoms(use_true_random=False))
def test_holds_releases_and_restarts_at_random_lose_and_double_no_turn(
    logs: Logs, tmp_path: Path, chance: random.Random
) -> None:
    _try_at_random(logs, tmp_path, chance, moves=8)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(chance=st.randoms(use_true_random=False))
def test_many_holds_releases_and_restarts_at_random_lose_and_double_no_turn(
    logs: Logs, tmp_path: Path, chance: random.Random
) -> None:
    _try_at_random(logs, tmp_path, chance, moves=30)


def _try_at_random(logs: Logs, tmp_path: Path, chance: random.Random, moves: int) -> None:
    """Random agents, holds, releases and restarts: each turn once, in order, each hold released once."""
    folder = tmp_path / str(next(_FOLDERS))
    folder.mkdir()
    words = {key: chance.choice(["words", "more words", "REPLY_SKIP"]) for key in range(8)}

    def agent(turn: Turn) -> str:
        return words[len(turn.message) % 8] if turn.step == "reply" else f"{turn.agent_id} {turn.step}"

    with Booth(logs.at(folder)) as booth:
        setting = chance.choice(["off", "reply", "every-turn", "announce"])
        configs = merged(hold(setting), {"runs": {"retryInterrupted": 100}})
        system = booth.start({"main": agent, "ops": agent}, {}, configs)
        runs = [send(system, message="x" * number)["runId"] for number in range(1, 4)]
        for _ in range(moves):
            move = chance.randrange(8)
            if move == 0:
                system.close(grace=0)
                system = booth.start({"main": agent, "ops": agent}, {}, configs)
            elif move == 1:
                asked = {"runId": chance.choice(runs), "before": chance.choice(["next", "announce"])}
                _told(system, "exchanges.hold", asked)
            elif move == 2:
                _told(system, "exchanges.hold", {"sessionKey": chance.choice([MAIN, OPS])})
            elif move == 3:
                _told(system, "exchanges.release", {"sessionKey": chance.choice([MAIN, OPS])})
            else:
                _told(system, "exchanges.release", {"runId": chance.choice(runs)})
        for key in (MAIN, OPS):
            system.release(session_key=key)
        for run_id in runs:
            stream = exchange_of(system, run_id)
            while not any(
                isinstance(item.event, ExchangeClosed) for item in parts_in(system.log.stream(stream))
            ):
                head = system.log.head()
                _told(system, "exchanges.release", {"runId": run_id, "forGood": True})
                system.log.wait_for(head + 1, timeout=0.02)
            _check(system, stream)
        assert system.status()["held"] == []


def _told(system: SessionSystem, method: str, params: dict[str, Any]) -> None:
    """Call a method, which may refuse, but has to answer."""
    answer = system.gateway.call(method, params)
    assert answer.get("code") in {None, "invalid_request"}, answer


def _check(system: SessionSystem, stream: str) -> None:
    events = [item.event for item in parts_in(system.log.stream(stream))]
    asked = [event for event in events if isinstance(event, TurnRequested)]
    replied = [event for event in events if isinstance(event, TurnEnded) and event.turn]
    queued = [
        event
        for event in recorded(system, RunQueued)
        if event.exchange_id is not None and exchange_stream(event.exchange_id) == stream
    ]
    turns = list(range(1, len(asked) + 1))
    assert [event.turn for event in asked] == [event.turn for event in replied] == turns
    assert [event.turn for event in queued if event.step == "reply"] == turns
    assert sum(event.step == "announce" for event in queued) == 1
    for kind in (LoopEnded, AnnounceDecided, ExchangeClosed):
        assert sum(isinstance(event, kind) for event in events) == 1
    held = [event.hold_id for event in events if isinstance(event, ExchangeHeld)]
    assert held == [event.hold_id for event in events if isinstance(event, ExchangeReleased)]
    assert len(set(held)) == len(held)


@pytest.mark.clause("LOOP-2", "LIVE-1")
@pytest.mark.parametrize("how", ["sessions.delete", "sessions.reset"])
@pytest.mark.parametrize("restarts", [False, True])
def test_nobody_is_asked_for_a_turn_that_nobody_would_hear(booth: Booth, how: str, *, restarts: bool) -> None:
    """The target was gone when its first reply was let go on; its requester was asked, and its answer held."""
    system = booth.start(AGENTS, None, hold("every-turn"))
    notes = {"key": "agent:ops:notes", "label": "notes"}
    system.gateway.call("sessions.patch", notes)
    run_id = send(system, sessionKey="agent:ops:notes")["runId"]
    held = wait_for(system, ExchangeHeld)
    assert system.gateway.call(how, {"key": "agent:ops:notes"})["ok"]
    if restarts:
        system.close()
        system = booth.start(AGENTS, None, hold("every-turn"))

    system.gateway.call("exchanges.release", {"runId": run_id, "holdId": held.hold_id})
    events = closed(system, run_id)

    assert [event for event in events if isinstance(event, TurnRequested)] == []
    assert len([event for event in events if isinstance(event, ExchangeHeld)]) == 1
    end = next(event for event in events if isinstance(event, LoopEnded))
    assert (end.reason, end.turns) == ("target_gone", 0)
    assert system.debug.replay(run_id)["same"]


@pytest.mark.clause("LOOP-2", "LIVE-1")
def test_a_turn_whose_receiver_is_gone_is_not_held(booth: Booth) -> None:
    gate = Gate()
    system = booth.start({"main": gate.before(says, "reply"), "ops": says}, None, hold("off"))
    system.gateway.call("sessions.patch", {"key": "agent:ops:notes", "label": "notes"})
    run_id = send(system, sessionKey="agent:ops:notes")["runId"]
    gate.reached()
    system.gateway.perform("exchanges.hold", {"runId": run_id, "before": "next"})
    system.gateway.call("sessions.delete", {"key": "agent:ops:notes"})
    gate.open()
    events = closed(system, run_id)

    assert [event for event in events if isinstance(event, ExchangeHeld)] == []
    end = next(event for event in events if isinstance(event, LoopEnded))
    assert (end.reason, end.turns) == ("target_gone", 1)
    assert system.debug.replay(run_id)["same"]


@pytest.mark.clause("LOOP-2", "LIVE-1")
@pytest.mark.parametrize("how", ["sessions.delete", "sessions.reset"])
@pytest.mark.parametrize(
    ("loop", "reason"), [({}, "requester_gone"), ({"oneWay": ["other"]}, "one_way"), ({"maxPingPongTurns": 0}, "turn_limit")]
)  # fmt: skip
@pytest.mark.parametrize("restarts", every_day([False, True], True))
def test_a_first_reply_whose_requester_is_gone_is_not_held(
    booth: Booth, how: str, loop: dict[str, Any], reason: str, *, restarts: bool
) -> None:
    """It waited for a release, though nobody was there to whom it could have gone on."""
    gate = Gate()
    asker = "agent:main:side"
    system = booth.start({"main": says, "ops": gate.before(says, "message")}, None, hold("reply", **loop))
    system.gateway.call("agent", {"message": "hi", "sessionKey": asker, "idempotencyKey": "k"})
    asked = {"sessionKey": OPS, "message": "x", "timeoutSeconds": 0}
    run_id = str(dict(system.tools(asker).call("sessions_send", asked))["runId"])
    gate.reached()
    assert system.gateway.call(how, {"key": asker})["ok"]
    if restarts:
        gate.open()
        system.close()
        system = booth.start(AGENTS, None, hold("reply", **loop))
    gate.open()
    events = closed(system, run_id)

    assert [event for event in events if isinstance(event, ExchangeHeld)] == []
    end = next(event for event in events if isinstance(event, LoopEnded))
    assert (end.reason, end.turns) == (reason, 0)
    assert sum(isinstance(event, AnnounceDecided) for event in events) == 1
    assert system.debug.replay(run_id)["same"]
    assert system.debug.replay()["same"]


@pytest.mark.clause("LOOP-2", "LIVE-1")
def test_a_requester_that_was_deleted_just_before_a_reply_came_is_gone(
    booth: Booth, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever deleted it was told before the coordinator was, which held a reply for it that came in between."""
    gate, decided = Gate(), Event()
    on_receive, tell_others = ProcessManager.on_receive, Frontier.tell_others

    def noted(manager: ProcessManager[Any, Any, Any], message: Any) -> Any:
        answer = on_receive(manager, message)
        if isinstance(message, RunEnded):
            decided.set()
        return answer

    def late(frontier: Frontier, batch: Sequence[Recorded]) -> None:
        if any(isinstance(one.event, SessionArchived) for one in batch):
            assert decided.wait(WAIT)
        tell_others(frontier, batch)

    monkeypatch.setattr(ProcessManager, "on_receive", noted)
    monkeypatch.setattr(Frontier, "tell_others", late)
    asker = "agent:main:side"
    system = booth.start({"main": says, "ops": gate.before(says, "message")}, None, hold("reply"))
    system.gateway.call("sessions.patch", {"key": asker, "label": "asks"})
    run_id = str(
        dict(
            system.tools(asker).call(
                "sessions_send", {"sessionKey": OPS, "message": "x", "timeoutSeconds": 0}
            )
        )["runId"]
    )
    gate.reached()
    assert system.gateway.call("sessions.delete", {"key": asker})["ok"]
    gate.open()

    end = next(event for event in closed(system, run_id) if isinstance(event, LoopEnded))
    assert (end.reason, end.turns) == ("requester_gone", 0)


@pytest.mark.clause("SEND-7")
@pytest.mark.parametrize("how", ["end", "abort"])
def test_who_waits_for_a_held_reply_hears_that_its_exchange_was_ended(booth: Booth, how: str) -> None:
    system = booth.start(AGENTS, {}, hold("reply"))

    async def waiting() -> dict[str, Any]:
        asked = {"sessionKey": OPS, "message": "well?", "timeoutSeconds": WAIT, "idempotencyKey": "k"}
        wait = asyncio.create_task(system.tools(MAIN).acall("sessions_send", asked))
        await asyncio.to_thread(wait_for_number, system, ExchangeHeld, 1)
        run_id = system.status()["held"][0]["runId"]
        if how == "end":
            await system.arelease(run_id, action="end")
        else:
            call = {"sessionKey": OPS, "runId": run_id}
            assert (await system.gateway.acall("chat.abort", call))["aborted"]
        return dict(await wait)

    heard = asyncio.run(waiting())
    again = send(system, 5, message="well?", idempotencyKey="k")
    system.close()
    later = send(booth.start(AGENTS, {}, hold("reply")), 5, message="well?", idempotencyKey="k")

    assert heard == again == later
    assert (heard["status"], heard["error"]) == ("error", "aborted: operator ended the exchange")
    assert "reply" not in heard
