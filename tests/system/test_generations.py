"""What an exchange or a spawn still has to do when one of the two was reset or deleted meanwhile (HIST-6, finding A6)."""

from collections.abc import Callable
from typing import Any

import pytest

from intersession import Reply, SessionSystem, Turn, echo
from intersession_events.facts import (
    ChildArchived,
    Event,
    ExchangeClosed,
    LoopEnded,
    RunQueued,
    SessionArchived,
    SessionOpened,
    SpawnClosed,
)
from support.fakes import ManualClock
from support.running import (
    QUIET,
    Booth,
    Gate,
    all_said,
    closed_exchange,
    closed_spawn,
    one,
    pass_time_until,
    recorded,
    speak,
    texts,
)

ASKER, ASKED = "agent:main:notes", "agent:ops:notes"

Change = Callable[[SessionSystem, str], None]


def reset(system: SessionSystem, key: str) -> None:
    assert system.gateway.call("sessions.reset", {"key": key})["ok"]


def deleted_and_opened_anew(system: SessionSystem, key: str) -> None:
    assert system.gateway.call("sessions.delete", {"key": key})["deleted"]
    opened(system, key)


def opened(system: SessionSystem, *keys: str) -> None:
    for key in keys:
        assert system.gateway.call("sessions.patch", {"key": key, "thinkingLevel": "low"})["ok"]


def send(system: SessionSystem) -> str:
    answer = system.tools(ASKER).call(
        "sessions_send", {"sessionKey": ASKED, "message": "how is it?", "timeoutSeconds": 0}
    )
    return str(answer["runId"])


def sent_and_changed(system: SessionSystem, gate: Gate, change: Callable[[], object]) -> list[Event]:
    """Send, change something while an agent stands at the gate, and return the events of the exchange."""
    opened(system, ASKER, ASKED)
    run_id = send(system)
    gate.reached()
    change()
    gate.open()
    return closed_exchange(system, run_id)


def said(system: SessionSystem, key: str) -> list[tuple[str, str]]:
    return texts(system.gateway.call("chat.history", {"sessionKey": key}))


def stopping_at(gate: Gate, step: str, agent_id: str) -> Callable[[Turn], str | Reply]:
    def agent(turn: Turn) -> str | Reply:
        if (turn.step, turn.agent_id) == (step, agent_id):
            gate.stop(turn)
        return "words"

    return agent


CHANGES = pytest.mark.parametrize("change", [reset, deleted_and_opened_anew])


@pytest.mark.clause("HIST-6", "LOOP-2")
@CHANGES
def test_a_turn_never_reaches_the_conversation_that_took_the_targets_place(
    booth: Booth, change: Change
) -> None:
    gate = Gate()
    agent = stopping_at(gate, "reply", "main")
    system = booth.start({"main": agent, "ops": agent})

    events = sent_and_changed(system, gate, lambda: change(system, ASKED))

    assert one(events, LoopEnded).reason == "target_gone"
    assert one(events, ExchangeClosed).reason == "target_gone"
    assert said(system, ASKED) == []


@pytest.mark.clause("HIST-6", "ANN-1")
@CHANGES
def test_an_announce_turn_never_reaches_the_conversation_that_took_the_targets_place(
    booth: Booth, change: Change
) -> None:
    gate = Gate()

    def agent(turn: Turn) -> str | Reply:
        if turn.step == "reply":
            gate.stop(turn)
            return Reply.skip()
        return "words"

    system = booth.start({"main": agent, "ops": agent})

    events = sent_and_changed(system, gate, lambda: change(system, ASKED))

    assert one(events, LoopEnded).reason == "reply_skip"
    assert one(events, ExchangeClosed).reason == "target_gone"
    assert said(system, ASKED) == []


@pytest.mark.clause("HIST-6", "LOOP-2", "ANN-1")
@CHANGES
def test_a_turn_never_reaches_the_conversation_that_took_the_requesters_place(
    booth: Booth, change: Change
) -> None:
    gate = Gate()
    agent = stopping_at(gate, "message", "ops")
    system = booth.start({"main": agent, "ops": agent})

    events = sent_and_changed(system, gate, lambda: change(system, ASKER))

    assert one(events, LoopEnded).reason == "requester_gone"
    assert one(events, ExchangeClosed).reason == "no_route", "the target was asked to announce all the same"
    assert said(system, ASKER) == []


@pytest.mark.clause("LOOP-2", "HIST-7")
@pytest.mark.parametrize(
    ("speaker", "agent_id", "reason"), [(ASKER, "main", "requester_gone"), (ASKED, "ops", "target_gone")]
)
def test_who_is_deleted_in_its_own_turn_is_gone(
    booth: Booth, speaker: str, agent_id: str, reason: str
) -> None:
    gate = Gate()
    agent = stopping_at(gate, "reply", agent_id)
    system = booth.start({"main": agent, "ops": agent})

    events = sent_and_changed(system, gate, lambda: system.gateway.call("sessions.delete", {"key": speaker}))

    assert one(events, LoopEnded).reason == reason


@pytest.mark.clause("HIST-6", "SPAWN-9")
@CHANGES
def test_a_result_never_reaches_the_conversation_that_took_the_requesters_place(
    booth: Booth, change: Change
) -> None:
    gate = Gate()
    agent = gate.saying("the result")
    system = booth.start({"main": agent})
    opened(system, ASKER)
    spawned: Any = system.tools(ASKER).call("sessions_spawn", {"task": "look"})
    gate.reached()
    change(system, ASKER)
    gate.open()

    events = closed_spawn(system, spawned["runId"])

    assert one(events, SpawnClosed).reason == "requester_gone"
    assert said(system, ASKER) == []


@pytest.mark.clause("HIST-6", "SPAWN-11")
def test_a_child_that_was_reset_is_not_archived_with_what_was_said_since(booth: Booth) -> None:
    clock = ManualClock()
    system = booth.start({"main": lambda turn: turn.step}, clock=clock)
    opened(system, ASKER)
    spawned: Any = system.tools(ASKER).call("sessions_spawn", {"task": "look"})
    closed_spawn(system, spawned["runId"])
    reset(system, spawned["childSessionKey"])

    pass_time_until(system, clock, 10 * 60_000, ChildArchived)

    assert recorded(system, SessionArchived) == []
    assert system.service.sessions.get(spawned["childSessionKey"]) is not None


@pytest.mark.clause("GATE-2", "GATE-5")
def test_a_reset_stops_what_the_session_is_at_as_a_deletion_does(booth: Booth) -> None:
    gate = Gate()
    system = booth.start({"main": gate.saying("me"), "ops": gate.saying("never heard")}, None, QUIET)
    given = {"sessionKey": "agent:ops:notes", "timeoutSeconds": 0}
    system.gateway.call("sessions.patch", {"key": "agent:ops:notes", "label": "notes"})
    sent = [
        system.tools("agent:main:main").call("sessions_send", {**given, "message": text}) for text in "ab"
    ]
    gate.reached()

    reset = system.gateway.call("sessions.reset", {"key": "agent:ops:notes"})
    gate.open()
    ends = [system.gateway.call("agent.wait", {"runId": one.get("runId")}) for one in sent]
    after = system.tools("agent:main:main").call(
        "sessions_send", {**given, "message": "anew", "timeoutSeconds": 10}
    )

    assert reset["ok"]
    assert [end["status"] for end in ends] == ["aborted", "error"]
    assert ends[1]["error"] == "target_gone: the session was reset"
    assert after["status"] == "ok"
    closed = [one(closed_exchange(system, str(each.get("runId"))), ExchangeClosed) for each in sent]
    assert [event.reason for event in closed] == ["aborted", "run_failed"]
    for each in sent:
        assert system.debug.replay(str(each.get("runId")))["same"]


@pytest.mark.clause("KEY-9", "INB-1")
def test_a_run_after_a_reset_is_of_the_new_generation(booth: Booth) -> None:
    system = booth.start({"main": echo()})
    speak(system, "before")
    assert system.gateway.call("sessions.reset", {"key": "main"})["ok"]
    speak(system, "after")

    before, after = [event.session_id for event in recorded(system, RunQueued)]
    (opened,) = recorded(system, SessionOpened)
    assert before == opened.session_id
    assert after != before
    said = [event for event in all_said(system) if event.message.role == "user"]
    assert [event.session_id for event in said] == [before, after]
