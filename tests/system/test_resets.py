"""Conversations begin anew by the clock, or at an owner's word; each reset is an event that says why."""

from typing import Any

import pytest

from intersession import MemoryChannel, Turn
from intersession_events.facts import Frame, RunAborted, SessionReset, text_of
from support.explained import decided_alike
from support.fakes import ManualClock
from support.running import WAIT, Booth, Gate, all_said, closed_exchange, ended, recorded, speak

HOUR = 3_600_000
IDLE: dict[str, Any] = {"session": {"reset": {"mode": "idle", "idleMinutes": 60}}}
DAILY: dict[str, Any] = {"session": {"reset": {"mode": "daily", "atHour": 4}}}
NINE = 1_700_038_800_000  # 2023-11-15 09:00 UTC


def heard(turn: Turn) -> str:
    """Say what the agent was given before the message."""
    return f"{[text_of(said) for said in turn.transcript if said.role == 'user']}"


@pytest.mark.clause("RESET-2")
def test_a_silence_ends_a_conversation_over_a_restart_too(booth: Booth) -> None:
    clock = ManualClock(NINE)
    system = booth.start({"main": heard}, None, IDLE, clock=clock)
    speak(system, "one")
    clock.advance(HOUR)
    assert speak(system, "two")["reply"] == "['one']"
    system.close()
    clock.advance(HOUR + 1)
    system = booth.start({"main": heard}, None, IDLE, clock=clock)
    answer = speak(system, "three", message_id="m3")

    assert answer["reply"] == "[]"
    (reset,) = recorded(system, SessionReset)
    assert (reset.reason, reset.by, reset.due_ms) == ("idle", None, NINE + 2 * HOUR)
    assert speak(system, "three", message_id="m3")["runId"] == answer["runId"]
    assert len(recorded(system, SessionReset)) == 1
    assert all_said(system)[-2].session_id == reset.session_id
    assert decided_alike(system)


@pytest.mark.clause("RESET-2")
def test_the_hour_ends_a_conversation_of_the_day_before_but_none_of_agents(booth: Booth) -> None:
    clock = ManualClock(NINE)
    system = booth.start({"main": heard}, {"telegram": MemoryChannel()}, DAILY, clock=clock)
    speak(system, "one")
    clock.advance(20 * HOUR)
    sent = system.tools().call("sessions_send", {"sessionKey": "agent:main:main", "message": "note"})
    assert sent["reply"] == "['one']"
    closed_exchange(system, sent["runId"])
    assert speak(system, "two")["reply"] == "[]"
    assert speak(system, "three")["reply"] == "['two']"

    (reset,) = recorded(system, SessionReset)
    assert (reset.reason, reset.due_ms) == ("daily", NINE + 19 * HOUR)
    at = next(item.position for item in system.log.all() if item.event == reset)
    (why,) = system.debug.why(at)["explanations"]
    assert (why["code"], why["inputs"][0]["value"]) == ("daily", reset.due_ms)
    assert "daily, due since 2023-11-16 04:00:00" in (reset.in_words(Frame()).how or "")
    assert decided_alike(system)


@pytest.mark.clause("RESET-2")
def test_a_run_under_way_is_not_cut_by_the_clock(booth: Booth) -> None:
    clock, gate = ManualClock(NINE), Gate()
    system = booth.start({"main": gate.saying("done")}, None, IDLE, clock=clock)
    first = speak(system, "one", wait=None)
    gate.reached()
    clock.advance(2 * HOUR)
    second = speak(system, "two", wait=None)
    gate.open()

    for answer in (first, second):
        assert ended(system, answer["runId"])["reply"] == "done"
    assert recorded(system, SessionReset) == []


@pytest.mark.clause("RESET-3")
def test_an_owner_begins_anew_with_the_text_behind_the_word(booth: Booth) -> None:
    gate, telegram = Gate(), MemoryChannel()
    system = booth.start(
        {"main": lambda turn: gate.stop(turn) if turn.message == "one" else heard(turn)},
        {"telegram": telegram},
    )
    first = speak(system, "one", wait=None)
    gate.reached()
    answer = speak(system, "/New two", owner=True)

    assert answer["reply"] == "[]"
    (reset,) = recorded(system, SessionReset)
    assert (reset.reason, reset.by, reset.due_ms) == ("/new", "telegram:ann", None)
    assert ended(system, first["runId"])["status"] == "aborted"
    assert [event.reset for event in recorded(system, RunAborted)] == [True]
    assert decided_alike(system)
    gate.open()


@pytest.mark.clause("RESET-3")
def test_a_bare_word_is_answered_without_a_run_and_is_text_of_anybody_else(booth: Booth) -> None:
    telegram = MemoryChannel()
    system = booth.start({"main": heard}, {"telegram": telegram})
    speak(system, "one")
    assert speak(system, "/new")["reply"] == "['one']"
    answer = speak(system, "/new", owner=True, message_id="m")

    assert "runId" not in answer
    assert speak(system, "/new", owner=True, message_id="m") == answer
    assert telegram.wait_for(3, timeout=WAIT)[-1].text == "A new conversation has begun."
    (reset,) = recorded(system, SessionReset)
    assert all_said(system)[-1].session_id == reset.previous_session_id
    assert speak(system, "two")["reply"] == "[]"
    assert decided_alike(system)


@pytest.mark.clause("RESET-1")
def test_without_settings_nothing_is_looked_at(booth: Booth) -> None:
    clock = ManualClock(NINE)
    system = booth.start({"main": heard}, clock=clock)
    speak(system, "one")
    clock.advance(1000 * HOUR)

    assert speak(system, "two")["reply"] == "['one']"
    assert not any('"renewal"' in item.decision for item in system.log.all())
