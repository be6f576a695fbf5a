"""In how many events a text stands: where it was said and where it was heard. All others name the run that has it."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

import pytest

from intersession import MemoryChannel, Reply, SessionSystem, Turn
from intersession_events.facts import (
    ExchangeClosed,
    ExchangeHeld,
    ExchangeReleased,
    Instructions,
    Message,
    Quote,
    RunQueued,
    SpawnClosed,
    encode,
)
from support.history.check import check_sealed
from support.running import Booth, Gate, wait_for, wait_for_number
from support.unrendered import unfence

MAIN, OPS = "agent:main:main", "agent:ops:main"
MOST = 2


def talking() -> tuple[list[str], Callable[[Turn], str]]:
    """Return an agent that says something else each time, and the list of what it has said."""
    said: list[str] = []
    numbers = count(1)

    def agent(turn: Turn) -> str:
        said.append(f"the words of {turn.agent_id}, number {next(numbers)}.")
        return said[-1]

    return said, agent


def started(booth: Booth, agent: Callable[[Turn], str], **settings: Any) -> SessionSystem:
    talk = {"session": {"agentToAgent": {"maxPingPongTurns": 3, **settings}}}
    system = booth.start({"main": agent, "ops": agent}, {"chat": MemoryChannel()}, talk)
    for name in ("main", "ops"):
        system.inbound(channel="chat", chat_id=name, sender="ann", text="hi", agent_id=name, deliver=False)
    wait_for_rest(system)
    return system


def wait_for_rest(system: SessionSystem) -> None:
    while system.service.runs.open_runs():
        system.log.wait_for(system.log.head() + 1, timeout=0.05)


def sent(system: SessionSystem) -> str:
    given = {"sessionKey": OPS, "message": "the words that begin it.", "timeoutSeconds": 0}
    return str(system.tools(MAIN).call("sessions_send", given)["runId"])


def places(system: SessionSystem, said: Iterable[str]) -> dict[str, list[str]]:
    """Return in which events each text stands."""
    events = [(one.topic, encode(one.event).decode()) for one in system.log.all()]
    records = [("record", one.decision) for one in system.log.all()]
    return {text: [name for name, stored in (*events, *records) if text in stored] for text in said}


def too_often(found: dict[str, list[str]]) -> dict[str, list[str]]:
    assert all(found.values())
    return {text: names for text, names in found.items() if len(names) > MOST}


def test_the_texts_of_an_exchange_stand_where_they_were_said_and_heard(booth: Booth) -> None:
    said, agent = talking()
    system = started(booth, agent)
    sent(system)
    wait_for(system, ExchangeClosed)

    found = places(system, ["the words that begin it.", *said])
    assert len(said) == 1 + 3 + 1
    assert too_often(found) == {}
    assert found["the words that begin it."] == ["run_queued.1"], "nobody's run said it"
    assert found[said[-1]] == ["run_completed.1", "delivery_decided.1"]


def test_the_texts_of_a_sub_agent_stand_where_they_were_said_and_heard(booth: Booth) -> None:
    said, agent = talking()
    system = started(booth, agent)
    system.tools(MAIN).call("sessions_spawn", {"task": "the words that begin it."})
    wait_for(system, SpawnClosed)

    found = places(system, ["the words that begin it.", *said])
    assert too_often(found) == {}
    assert found["the words that begin it."] == ["run_queued.1"]
    assert found[said[-2]] == ["run_completed.1"]
    assert found[said[-1]] == ["run_completed.1", "delivery_decided.1"]


def test_the_result_that_a_session_is_handed_stands_in_its_message(booth: Booth) -> None:
    said, agent = talking()
    system = booth.start({"main": agent, "ops": agent})
    system.tools(MAIN).call("sessions_spawn", {"task": "the words that begin it."})
    wait_for(system, SpawnClosed)
    wait_for_rest(system)

    found = places(system, ["the words that begin it.", *said])
    assert too_often(found) == {}
    assert found[said[1]] == ["run_completed.1", "run_queued.1"]


def test_what_was_held_and_written_anew_stands_in_the_release_and_where_it_was_heard(booth: Booth) -> None:
    said, agent = talking()
    system = started(booth, agent, hold="every-turn")
    run_id = sent(system)
    for number in range(1, 5):
        wait_for_number(system, ExchangeHeld, number)
        system.release(run_id, text=f"words anew, {number}.")
    wait_for(system, ExchangeClosed)

    anew = [f"words anew, {number}." for number in range(1, 5)]
    found = places(system, [*said, *anew])
    both_hear = {"words anew, 1.": ["exchange_released.1", "run_queued.1", "run_queued.1"]}
    assert too_often(found) == both_hear, "the target is told the first reply that the requester has heard"
    assert all("exchange_released.1" in found[text] for text in anew)
    assert sum(isinstance(one.event, ExchangeReleased) for one in system.log.all()) == len(anew)


def quoted_at(context: str) -> list[int]:
    return [at for at in range(len(context)) if context.startswith("\n[[quote ", at - 1)]


def told_in_announce(system: SessionSystem, told: Sequence[Turn]) -> tuple[Instructions, list[str]]:
    """Return what the announce turn has in its event, and the texts that its agent was given as quotes."""
    queued = [one.event for one in system.log.all() if isinstance(one.event, RunQueued)]
    (event,) = [one for one in queued if one.step == "announce"]
    (turn,) = [one for one in told if one.run_id == event.run_id]
    assert event.instructions is not None
    quoted = [unfence(turn.system_context, at).text for at in quoted_at(turn.system_context)]
    return event.instructions, quoted


ANSWERS = {
    "the requester speaks last": (1, ["first.", "turn 1."], ["turn 1."]),
    "the target speaks last": (2, ["first.", "turn 1.", "turn 2."], ["turn 2."]),
    "the requester has no more to say": (2, ["first.", "REPLY_SKIP"], ["first."]),
    "the target has no more to say": (2, ["first.", "turn 1.", "REPLY_SKIP"], ["turn 1."]),
    "the texts are not those of its messages": (2, ["first.", "turn 1.", "turn 2."], ["turn 2."]),
}


@pytest.mark.parametrize(("turns", "answers", "latest"), ANSWERS.values(), ids=ANSWERS)
@pytest.mark.clause("ANN-1", "PROV-4")
def test_an_announce_quotes_what_the_transcript_has_by_its_place(
    booth: Booth, request: pytest.FixtureRequest, turns: int, answers: list[str], latest: list[str]
) -> None:
    told: list[Turn] = []
    left = iter([*answers, "what people hear."])
    is_message = "not those" not in request.node.name

    def agent(turn: Turn) -> Reply:
        told.append(turn)
        said = Message(id="", role="assistant", content="Done.", timestamp=0)
        return Reply(text=next(left), messages=None if is_message else (said,))

    talk = {"session": {"agentToAgent": {"maxPingPongTurns": turns}}}
    system = booth.start({"main": agent, "ops": agent}, {"chat": MemoryChannel()}, talk)
    system.tools(MAIN).call("sessions_send", {"sessionKey": OPS, "message": "Ask.", "timeoutSeconds": 0})
    wait_for(system, ExchangeClosed)

    given, quoted = told_in_announce(system, told)
    assert quoted == ["Ask.", "first.", *latest]
    assert isinstance(given.asked, Quote)
    assert isinstance(given.replied, Quote) is is_message, "a text of no message is given in full"
    assert isinstance(given.latest, Quote) is (is_message and turns > 1), "nobody has told it the last turn"
    assert check_sealed(system.log.log_id, list(system.log.all())) == []


@pytest.mark.clause("ANN-1", "PROV-4")
def test_a_quote_that_is_not_at_hand_any_more_is_read_from_the_log(booth: Booth) -> None:
    """Between the exchange's first run and its announce, the target is told more than what is kept of its transcript."""
    told: list[Turn] = []
    gate = Gate()

    def agent(turn: Turn) -> str:
        told.append(turn)
        if turn.step == "reply":
            gate.stop(turn)
        return {"message": "first.", "reply": "turn 1."}.get(turn.step, "what people hear.")

    talk = {"session": {"agentToAgent": {"maxPingPongTurns": 1}}}
    system = booth.start({"main": agent, "ops": agent}, {"chat": MemoryChannel()}, talk)
    system.tools(MAIN).call("sessions_send", {"sessionKey": OPS, "message": "Ask.", "timeoutSeconds": 0})
    gate.reached()
    long = "so many words. " * 23_000  # six of them are more than a MiB
    for number in range(6):
        text = f"{number} {long}"
        system.inbound(channel="chat", chat_id="ops", sender="ann", text=text, agent_id="ops", deliver=False)
    gate.open()
    wait_for(system, ExchangeClosed)

    given, quoted = told_in_announce(system, told)
    assert quoted == ["Ask.", "first.", "turn 1."]
    assert (type(given.asked), type(given.replied), given.latest) == (Quote, Quote, "turn 1.")
    assert check_sealed(system.log.log_id, list(system.log.all())) == []


def test_an_exchange_of_five_turns_with_an_announce_is_thirty_four_events(booth: Booth) -> None:
    """Four a turn; as docs/explanation/path-of-a-message.md tells them."""
    system = started(booth, lambda _turn: "It is done.", maxPingPongTurns=5)
    first = system.log.head()
    system.tools(MAIN).call("sessions_send", {"sessionKey": OPS, "message": "Is it?", "timeoutSeconds": 30})
    wait_for(system, ExchangeClosed)

    told = Counter(type(one.event).__name__ for one in system.log.all() if one.position > first)
    turns = {"RunQueued": 7, "RunStarted": 7, "RunCompleted": 7, "TurnEnded": 6}
    once = ("ExchangeAccepted", "AccessRecorded", "AnnounceDecided", "DeliveryDecided", "DeliveryStarted")
    assert told - Counter({"CheckpointTaken": 1}) == turns | dict.fromkeys(
        (*once, "DeliveryDone", "ExchangeClosed"), 1
    )
    assert sum(turns.values()) + 7 == 34
