"""What becomes of a person's message while its session is at work: followup, collect, interrupt."""

from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem, Turn, load_config
from intersession_actors.calls.service.pending import Pending
from intersession_events.facts import RunAborted, RunStarted, text_of
from support.explained import decided_alike
from support.running import WAIT, Booth, Gate, ended, recorded, wait_for_number

MAIN = "agent:main:main"


def queue(mode: str, **more: Any) -> dict[str, Any]:
    return {"messages": {"queue": {"mode": mode, **more}}}


class Desk:
    """An agent that stops at its first message, and says what it was asked with all others."""

    def __init__(self) -> None:
        self.gate = Gate()

    def __call__(self, turn: Turn) -> str:
        if turn.message == "first":
            self.gate.stop(turn)
            return "first"
        asked = [text_of(said) for said in turn.transcript if said.role == "user"]
        return " ".join([*asked, turn.message])


def speak(system: SessionSystem, text: str, **given: Any) -> str:
    message = {"channel": "telegram", "chat_id": "42", "sender": "ann", **given}
    return str(system.inbound(text=text, **message).get("runId"))


@pytest.mark.clause("QUEUE-2")
def test_messages_that_wait_are_answered_by_one_run(booth: Booth) -> None:
    desk, telegram = Desk(), MemoryChannel()
    system = booth.start({"main": desk}, {"telegram": telegram}, queue("collect"))
    first = speak(system, "first")
    desk.gate.reached()
    others = [speak(system, text, message_id=text) for text in ("one", "two", "three")]
    desk.gate.open()
    answers = [ended(system, run_id) for run_id in others]

    assert [(answer["status"], answer["reply"]) for answer in answers] == [("ok", "first one two three")] * 3
    assert [answer.get("collectedInto") for answer in answers] == [others[2], others[2], None]
    assert [answer["runId"] for answer in answers] == others
    assert [said.text for said in telegram.wait_for(2, timeout=WAIT)] == ["first", "first one two three"]
    assert [event.run_id for event in recorded(system, RunStarted)] == [first, others[2]]
    assert [speak(system, text, message_id=text) for text in ("one", "two", "three")] == others
    assert "together" in str(system.debug.why(others[0]))
    assert decided_alike(system)


@pytest.mark.clause("QUEUE-2")
def test_a_wait_that_began_before_the_messages_were_collected_goes_on(booth: Booth) -> None:
    desk = Desk()
    system = booth.start({"main": desk}, {"telegram": MemoryChannel()}, queue("collect"))
    speak(system, "first")
    desk.gate.reached()
    one = speak(system, "one")
    begun = system._runs.begin(one, WAIT)
    assert isinstance(begun, Pending)
    two = speak(system, "two")
    desk.gate.open()

    assert begun.future.result(WAIT) is not None
    answer = begun.finish()
    assert isinstance(answer, dict)
    assert answer["collectedInto"] == two


@pytest.mark.clause("QUEUE-2")
def test_one_run_takes_no_more_than_its_cap_and_one_chat(booth: Booth) -> None:
    desk = Desk()
    system = booth.start({"main": desk}, {"telegram": MemoryChannel()}, queue("collect", cap=2))
    speak(system, "first")
    desk.gate.reached()
    others = [speak(system, text) for text in ("one", "two", "three")]
    others.append(speak(system, "four", chat_id="43"))
    desk.gate.open()

    assert [ended(system, run_id)["reply"] for run_id in others] == [
        "first one two",
        "first one two",
        "first one two three",
        "first one two three four",
    ]


@pytest.mark.clause("QUEUE-2")
def test_messages_are_collected_after_a_restart_too(booth: Booth) -> None:
    desk = Desk()
    system = booth.start({"main": desk}, {"telegram": MemoryChannel()}, queue("collect"))
    speak(system, "first")
    desk.gate.reached()
    others = [speak(system, text) for text in ("one", "two")]
    system.close(grace=0)
    again = Desk()
    again.gate.open()
    system = booth.start({"main": again}, {"telegram": MemoryChannel()})
    desk.gate.open()

    assert [ended(system, run_id)["reply"] for run_id in others] == ["first one two"] * 2
    assert decided_alike(system)


@pytest.mark.clause("QUEUE-3")
def test_a_message_stops_the_run_under_way_and_is_answered_next(booth: Booth) -> None:
    desk = Desk()
    agents = {"main": desk, "ops": lambda _: "REPLY_SKIP"}
    system = booth.start(agents, {"telegram": MemoryChannel()}, queue("interrupt"))
    first = speak(system, "first")
    desk.gate.reached()
    system.tools("agent:ops:main").call(
        "sessions_send", {"sessionKey": MAIN, "message": "note", "timeoutSeconds": 0}
    )
    one = speak(system, "one")

    assert ended(system, one)["reply"] == "first one"
    assert ended(system, first)["status"] == "aborted"
    (aborted,) = recorded(system, RunAborted)
    assert (aborted.run_id, aborted.by, aborted.into) == (first, "telegram:ann", None)
    wait_for_number(system, RunStarted, 3)
    assert [event.run_id for event in recorded(system, RunStarted, f"session:{MAIN}")][:2] == [first, one]
    assert decided_alike(system)
    desk.gate.open()


@pytest.mark.clause("QUEUE-1")
def test_an_owner_and_the_operator_set_it_for_a_session(booth: Booth) -> None:
    desk, telegram = Desk(), MemoryChannel()
    system = booth.start({"main": desk}, {"telegram": telegram})
    assert speak(system, "/queue collect", owner=True) == "None"
    assert telegram.wait_for(1, timeout=WAIT)[0].text == "Messages to this session wait by collect."
    assert system.gateway.call("sessions.list", {})["sessions"][0]["queueMode"] == "collect"
    speak(system, "first")
    desk.gate.reached()
    others = [speak(system, text) for text in ("one", "two")]
    system.gateway.call("sessions.patch", {"key": MAIN, "queueMode": None})
    others.append(speak(system, "three"))
    desk.gate.open()

    started = [(ended(system, run_id), run_id)[1] for run_id in others[1:]]
    assert [event.run_id for event in recorded(system, RunStarted)][1:] == started
    assert decided_alike(system)


@pytest.mark.clause("QUEUE-1")
def test_the_channel_decides_and_steering_is_followup() -> None:
    loaded = load_config(
        {"messages": {"queue": {"mode": "steer", "byChannel": {"discord": "collect", "irc": "queue"}}}}
    )

    queue = loaded.config.messages.queue
    assert (queue.mode, queue.by_channel) == ("followup", {"discord": "collect", "irc": "followup"})
    assert len([notice for notice in loaded.notices if "followup here" in notice]) == 2
