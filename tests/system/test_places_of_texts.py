"""In how many events a text stands: where it was said and where it was heard. All others name the run that has it."""

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

import msgspec

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_events.facts import (
    Event,
    ExchangeClosed,
    ExchangeHeld,
    ExchangeReleased,
    RunQueued,
    SpawnClosed,
    encode,
)
from support.running import Booth, wait_for, wait_for_number

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
    """Return in which events each text stands, but for what an announce turn is told beside its message, which quotes."""
    events = [(one.topic, encode(_without_quotes(one.event)).decode()) for one in system.log.all()]
    records = [("record", one.decision) for one in system.log.all()]
    return {text: [name for name, stored in (*events, *records) if text in stored] for text in said}


def _without_quotes(event: Event) -> Event:
    return msgspec.structs.replace(event, instructions=None) if isinstance(event, RunQueued) else event


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
    assert too_often(found) == {}
    assert all("exchange_released.1" in found[text] for text in anew)
    assert sum(isinstance(one.event, ExchangeReleased) for one in system.log.all()) == len(anew)
