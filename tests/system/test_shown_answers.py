"""Answers that a channel shows while they are said, by editing their message: how they begin, end, and come through a restart."""

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from intersession import (
    Channel,
    DeliveryInDoubt,
    DeliveryLater,
    DeliveryRefused,
    Outbound,
    SessionSystem,
    Turn,
)
from intersession_actors.outside.channels.caller import CUT_OFF
from intersession_events import facts
from support.edited_chat import Chat, talking
from support.history.check import broken
from support.history.evidence import Evidence
from support.running import QUIET, WAIT, Booth, Gate, merged, recorded, wait_for

NOTICE = "No answer."
CONFIG = merged(QUIET, {"runs": {"failureText": NOTICE}})


def said_to(system: SessionSystem, **more: Any) -> str:
    told = system.inbound(channel="chat", chat_id="42", sender="ann", text="Hello", **more)
    return str(told.get("runId"))


def begun(system: SessionSystem) -> facts.AnswerShown:
    """Wait until the receipt of a begun message is on record."""
    return wait_for(system, facts.AnswerShown, lambda shown: shown.receipt is not None)


def replays(system: SessionSystem) -> bool:
    """Return whether the rules decide the same again; the laws of each log hold as well."""
    assert broken(Evidence(events=list(system.log.all()))) == []
    return system.debug.replay()["firstDifference"] is None


@pytest.mark.clause("STREAM-5")
def test_a_message_is_begun_grows_and_becomes_the_answer(booth: Booth, gate: Gate) -> None:
    chat = Chat()
    system = booth.start({"main": talking(gate, "Good ", "morning.")}, {"chat": chat.channel}, CONFIG)
    said_to(system)
    chat.until("Good ")
    shown = begun(system)
    gate.open()
    done = wait_for(system, facts.DeliveryDone)
    (decided,) = recorded(system, facts.DeliveryDecided)

    chat.until("Good morning.")
    assert (shown.receipt, decided.edits, done.receipt) == ('{"id":1}', '{"id":1}', '{"id":1}')
    assert (decided.text, decided.purpose) == ("Good morning.", "auto_reply")
    assert chat.calls[0] == ("deliver", "Good ", True)
    assert chat.calls[-1] == ("edit", "Good morning.", False)
    assert replays(system)


@pytest.mark.clause("STREAM-5")
def test_an_unfinished_answer_is_escaped_once(booth: Booth, gate: Gate) -> None:
    """Before: what was shown of it was escaped, and escaped again."""
    chat = Chat()
    channel = Channel(
        deliver=chat.deliver, edit=chat.edit, edit_every=0.0, escape=lambda text: text.replace("&", "&amp;")
    )
    system = booth.start({"main": talking(gate, "you & ", "me")}, {"chat": channel}, CONFIG)
    said_to(system)
    chat.until("you &amp; ")
    gate.open()
    chat.until("you &amp; me")


@pytest.mark.clause("STREAM-5")
def test_no_more_than_two_events_are_of_an_answer_that_is_shown(passing_url: str, gate: Gate) -> None:
    chat, pieces = Chat(), [f"{number} " for number in range(200)]
    gate.open()
    with SessionSystem(
        passing_url, agents={"main": talking(gate, *pieces)}, channels={"chat": chat.channel}, config=CONFIG
    ) as system:
        said_to(system, wait=WAIT)
        wait_for(system, facts.DeliveryDone)
        assert len(recorded(system, facts.AnswerShown)) <= 2

    chat.until("".join(pieces))


@pytest.mark.clause("STREAM-5")
def test_a_run_that_fails_ends_its_message_with_the_notice(booth: Booth, gate: Gate) -> None:
    chat = Chat()
    failing = talking(gate, "Half of", error=OSError("gone"))
    system = booth.start({"main": failing}, {"chat": chat.channel}, CONFIG)
    said_to(system)
    begun(system)
    gate.open()

    chat.until(f"Half of\n\n{NOTICE}")
    assert replays(system)


@pytest.mark.clause("STREAM-5")
@pytest.mark.parametrize("ends", ["abort", "reset", "silence"])
def test_a_message_whose_answer_does_not_come_ends_in_words(booth: Booth, gate: Gate, ends: str) -> None:
    chat = Chat()
    silent = talking(gate, "Let me", "…") if ends != "silence" else _changing_its_mind(gate)
    system = booth.start({"main": silent}, {"chat": chat.channel}, CONFIG)
    run_id = said_to(system)
    begun(system)
    match ends:
        case "abort":
            system.abort(run_id)
        case "reset":
            system.gateway.call("sessions.reset", {"key": "agent:main:main"})
        case _:
            gate.open()

    chat.until("[stopped]" if ends == "silence" else "Let me\n\n[stopped]")
    assert replays(system)


def _changing_its_mind(gate: Gate) -> Any:
    def agent(turn: Turn) -> str:
        turn.stream("Let me")
        gate.stop(turn)
        return "NO_REPLY"

    return agent


@pytest.mark.clause("STREAM-5")
def test_a_second_attempt_goes_on_with_the_message_of_the_first(booth: Booth, gate: Gate) -> None:
    chat = Chat()
    first = booth.start({"main": talking(gate, "Wrong")}, {"chat": chat.channel}, CONFIG)
    said_to(first)
    begun(first)
    first.close(grace=0)
    gate.open()

    second = booth.start({"main": talking(gate, "Right", ".")}, {"chat": chat.channel}, CONFIG)
    wait_for(second, facts.DeliveryDone)

    chat.until("Right.")
    assert replays(second)


@pytest.mark.clause("STREAM-5")
def test_a_begun_message_that_is_not_known_after_a_crash_is_told_of_in_words(
    booth: Booth, gate: Gate
) -> None:
    """The process ended while the channel was called for the first words."""
    chat, called, over = Chat(), threading.Event(), threading.Event()

    def hanging(out: Outbound) -> Mapping[str, int]:
        answer = chat.deliver(out)
        called.set()
        over.wait(WAIT)
        return answer

    channel = Channel(deliver=hanging, edit=chat.edit)
    first = booth.start({"main": talking(gate, "Once")}, {"chat": channel}, CONFIG)
    said_to(first)
    assert called.wait(WAIT)
    first.close(grace=0)
    over.set()
    gate.open()

    second = booth.start({"main": talking(gate, "Once ", "more")}, {"chat": chat.channel}, CONFIG)
    wait_for(second, facts.DeliveryDone)

    chat.until("Once", f"{CUT_OFF}\n\nOnce more")
    assert replays(second)


@pytest.mark.clause("STREAM-5")
def test_an_edit_that_was_cut_off_is_made_again_and_nothing_is_in_doubt(booth: Booth, gate: Gate) -> None:
    chat, called, over = Chat(), threading.Event(), threading.Event()

    def hanging(out: Outbound) -> None:
        if not out.unfinished:
            called.set()
            over.wait(WAIT)
        chat.edit(out)

    channel = Channel(deliver=chat.deliver, edit=hanging)
    first = booth.start({"main": talking(gate, "Good ", "morning.")}, {"chat": channel}, CONFIG)
    said_to(first)
    begun(first)
    gate.open()
    assert called.wait(WAIT)
    first.close(grace=0)

    second = booth.start({"main": talking(gate, "x")}, {"chat": chat.channel}, CONFIG)
    wait_for(second, facts.DeliveryDone)
    over.set()

    chat.until("Good morning.")
    assert recorded(second, facts.DeliveryUnknown) == []


@pytest.mark.clause("STREAM-5")
def test_a_message_that_can_not_be_edited_any_more_is_answered_below(booth: Booth, gate: Gate) -> None:
    chat = Chat()
    system = booth.start({"main": talking(gate, "Good ", "morning.")}, {"chat": chat.channel}, CONFIG)
    said_to(system)
    begun(system)
    chat.refuses = DeliveryRefused("the message is gone")
    gate.open()
    wait_for(system, facts.DeliveryDone)

    chat.until("Good ", "Good morning.")


@pytest.mark.ci
@pytest.mark.clause("STREAM-5")
def test_a_channel_that_asks_for_a_pause_is_left_alone_and_has_the_end_in_time(
    booth: Booth, gate: Gate
) -> None:
    chat = Chat()
    system = booth.start({"main": talking(gate, "a", "b", "c", "d")}, {"chat": chat.channel}, CONFIG)
    said_to(system)
    begun(system)
    chat.refuses = DeliveryLater(1)
    gate.open()
    failed = wait_for(system, facts.DeliveryFailed)
    chat.refuses = None
    wait_for(system, facts.DeliveryDone)

    chat.until("abcd")
    assert failed.later_ms == 1000
    assert len([call for call in chat.calls if call[2]]) <= 2


@pytest.mark.clause("STREAM-5")
@pytest.mark.parametrize("error", [DeliveryRefused("blocked"), DeliveryInDoubt("who knows")])
def test_first_words_that_are_not_taken_are_not_tried_again(
    booth: Booth, gate: Gate, error: Exception
) -> None:
    chat = Chat()
    chat.fails = error
    system = booth.start({"main": talking(gate, "Good ", "morning.")}, {"chat": chat.channel}, CONFIG)
    said_to(system)
    gate.reached()
    with chat.changed:
        assert chat.changed.wait_for(lambda: chat.calls, WAIT)
        chat.fails = None
    if isinstance(error, DeliveryRefused):
        wait_for(system, facts.AnswerShown, lambda shown: shown.error is not None)
    gate.open()
    wait_for(system, facts.DeliveryDone)

    in_words = "Good morning." if isinstance(error, DeliveryRefused) else f"{CUT_OFF}\n\nGood morning."
    chat.until(in_words)
    assert [call[0] for call in chat.calls] == ["deliver", "deliver"]


@pytest.mark.clause("STREAM-5", "POL-3")
def test_a_session_that_may_not_send_shows_nothing(booth: Booth, gate: Gate) -> None:
    chat = Chat()
    denied = merged(CONFIG, {"session": {"sendPolicy": {"default": "deny"}}})
    system = booth.start({"main": talking(gate, "Good ", "morning.")}, {"chat": chat.channel}, denied)
    said_to(system)
    gate.reached()
    gate.open()
    wait_for(system, facts.DeliveryDenied)

    assert chat.calls == []
    assert recorded(system, facts.AnswerShown) == []


@pytest.mark.clause("STREAM-5")
def test_a_text_that_is_too_long_is_edited_and_goes_on_below(booth: Booth, gate: Gate) -> None:
    chat = Chat()
    channel = Channel(deliver=chat.deliver, edit=chat.edit, edit_every=0.0, max_chars=10)
    system = booth.start({"main": talking(gate, "One two", " three four five")}, {"chat": channel}, CONFIG)
    said_to(system)
    begun(system)
    gate.open()
    wait_for(system, facts.DeliveryDone)

    chat.until("One two", "three four", "five")


@pytest.mark.clause("STREAM-5")
def test_a_channel_that_edits_no_more_has_the_answer_below_in_words(booth: Booth, gate: Gate) -> None:
    chat = Chat()
    first = booth.start({"main": talking(gate, "Once")}, {"chat": chat.channel}, CONFIG)
    said_to(first)
    begun(first)
    first.close(grace=0)
    gate.open()

    second = booth.start({"main": talking(gate, "Once ", "more")}, {"chat": chat.deliver}, CONFIG)
    wait_for(second, facts.DeliveryDone)

    chat.until("Once", f"{CUT_OFF}\n\nOnce more")


@pytest.mark.clause("STREAM-2", "FORK-5", "FORK-7")
def test_a_fork_of_an_answer_that_grows_shows_nothing_and_ends_as_the_answer_did(
    booth: Booth, gate: Gate
) -> None:
    chat = Chat()
    system = booth.start({"main": talking(gate, "Good ", "morning.")}, {"chat": chat.channel}, CONFIG)
    run_id = said_to(system)
    begun(system)
    gate.open()
    wait_for(system, facts.DeliveryDone)
    shown = next(item for item in system.log.all() if isinstance(item.event, facts.AnswerShown))
    calls = list(chat.calls)

    with system.fork(run_id, at=f"#{shown.position}", agents={"*": "recorded"}) as fork:
        fork.carried_on(WAIT)
        withheld = recorded(fork, facts.DeliveryWithheld)
        (end,) = recorded(fork, facts.RunCompleted)

    assert (len(withheld), end.reply) == (1, "Good morning.")
    assert chat.calls == calls


@pytest.mark.clause("STREAM-5", "ANN-5")
def test_nothing_is_begun_ahead_of_an_earlier_text(booth: Booth, gate: Gate) -> None:
    chat = Chat()
    chat.fails = DeliveryLater(1)
    agents = {"ops": lambda _: "first", "main": talking(gate, "Good ", "morning.")}
    system = booth.start(agents, {"chat": chat.channel}, CONFIG)
    said_to(system, agent_id="ops", wait=WAIT)
    wait_for(system, facts.DeliveryFailed)
    said_to(system, agent_id="main")
    gate.reached()
    wait_for(system, facts.AnswerShown)
    chat.fails = None
    gate.open()

    chat.until("first", "Good morning.")
    assert not [call for call in chat.calls if call[2]]


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"edit_every": -1}, "edit_every=-1 is no number of seconds"),
        ({"edit": 5}, "5 can't be called"),
        ({"edit": _changing_its_mind}, "not of a kind|outbound|gate"),
    ],
)
def test_a_channel_that_can_not_edit_is_refused(passing_url: str, fields: dict[str, Any], what: str) -> None:
    async def deliver(out: Outbound) -> None:
        del out

    with pytest.raises(Exception, match=what):
        SessionSystem(passing_url, channels={"chat": Channel(deliver=deliver, **fields)})
