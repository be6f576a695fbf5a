"""Children that begin with their requester's transcript (CHILD-6)."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_actors.owners.spawn import inheritance
from intersession_events.facts import (
    AttachmentsReady,
    RunCompleted,
    RunQueued,
    SpawnAccepted,
    SpawnClosed,
    TranscriptGiven,
    text_of,
)
from support.running import WAIT, Booth, recorded, wait_for, wait_for_number

CHAT = "agent:main:chat:group:1"
SECRET = "the harbour code is nine four two seven"
STAFF: dict[str, Any] = {
    "agents": {"list": [{"id": "main", "subagents": {"allowAgents": ["*"]}}, {"id": "other"}]}
}


class Crew:
    """Notes what children are shown. The agent starts one with what follows `fork`, and notes the answer."""

    def __init__(self, **more: Any) -> None:
        self.shown: list[list[str]] = []
        self.prompts: list[str] = []
        self.answers: list[Any] = []
        self.more = more

    def __call__(self, turn: Turn) -> str:
        if ":subagent:" in turn.session_key and turn.step != "compaction":
            if turn.step == "message":
                self.shown.append([text_of(one) for one in turn.transcript])
                self.prompts.append(turn.prompt())
            return "done"
        if turn.step == "compaction":
            return f"a summary for {turn.session_key}"
        if turn.step == "message" and turn.message.startswith("fork"):
            spawn = {"task": "use the code", "context": "fork", **self.more}
            self.answers.append(turn.tools.call("sessions_spawn", spawn))
        return f"heard {turn.message}"


def start(booth: Booth, crew: Crew, *config: dict[str, Any]) -> SessionSystem:
    return booth.start({"main": crew, "other": crew}, {"chat": MemoryChannel()}, *config)


def say(system: SessionSystem, *said: str) -> None:
    for text in said:
        system.inbound(channel="chat", chat_id="1", chat_type="group", sender="ann", text=text, wait=WAIT)


def erase(system: SessionSystem, *messages: str) -> None:
    """Erase the session, or some messages of it, as soon as nothing is under way."""
    for _ in system.follow(0, timeout=WAIT):
        flows = system.service.flows
        if not (flows.open_deliveries() or flows.open_spawns() or system.service.runs.open_runs()):
            break
    chosen = {"messageIds": [*messages]} if messages else {}
    answer = system.gateway.call("sessions.erase", {"key": CHAT, "unsent": "giveUp", **chosen})
    assert "code" not in answer, answer


@pytest.mark.clause("CHILD-6")
def test_forked_child_begins_with_what_was_said_and_can_be_asked_about(log_url: str) -> None:
    crew = Crew()
    with Booth(log_url) as booth:
        system = start(booth, crew)
        say(system, SECRET, "fork it")
        wait_for(system, SpawnClosed)
        (given,) = recorded(system, TranscriptGiven)
        (accepted,) = recorded(system, SpawnAccepted)
        lens = system.debug.lens(accepted.run_id)
        story = system.debug.replay()

    assert crew.shown[0][1:] == [SECRET, f"heard {SECRET}", "fork it"]
    assert crew.shown[0][0].startswith(f"You begin with what was said in the session {CHAT}")
    assert SECRET in crew.prompts[0]
    assert (given.requester, given.left_out, len(given.given)) == (CHAT, 0, 4)
    assert accepted.given == ()  # the child's own stream has them
    assert lens["asRecorded"]
    assert SECRET in str(lens)
    assert story["same"], story["firstDifference"]


@pytest.mark.clause("CHILD-6")
def test_child_is_given_nothing_unless_it_is_asked_for(log_url: str) -> None:
    crew = Crew(context="isolated")
    with Booth(log_url) as booth:
        system = start(booth, crew)
        say(system, SECRET, "fork it")
        wait_for(system, SpawnClosed)
        given = recorded(system, TranscriptGiven)

    assert crew.shown == [[]]
    assert not given


@pytest.mark.clause("CHILD-6")
def test_child_that_waits_for_its_files_has_the_transcript_as_of_the_spawn(
    log_url: str, tmp_path: Path
) -> None:
    crew = Crew(attachments=[{"name": "notes.txt", "content": "milk"}])
    config = {
        "agents": {"defaults": {"workspace": str(tmp_path / "files")}},
        "tools": {"sessions_spawn": {"attachments": {"enabled": True}}},
    }
    with Booth(log_url) as booth:
        system = start(booth, crew, config)
        say(system, SECRET, "fork it")
        wait_for(system, SpawnClosed)
        ready = recorded(system, AttachmentsReady)
        replayed = system.debug.replay()

    assert ready
    assert crew.shown[0][1:] == [SECRET, f"heard {SECRET}", "fork it"]
    assert replayed["same"], replayed["firstDifference"]


@pytest.mark.clause("CHILD-6")
def test_oldest_messages_are_left_out_where_there_are_too_many(log_url: str) -> None:
    crew = Crew()
    with Booth(log_url) as booth, patch.object(inheritance, "MOST_BYTES", 1200):
        system = start(booth, crew)
        say(system, *(f"number {number}" for number in range(6)), "fork it")
        wait_for(system, SpawnClosed)
        (given,) = recorded(system, TranscriptGiven)

    begins, *rest = crew.shown[0]
    assert given.left_out == 13 - len(rest) > 0
    assert f"{given.left_out} more messages are left out" in begins
    assert rest[0].startswith("number ")
    assert rest[-1] == "fork it"


@pytest.mark.clause("CHILD-6")
@pytest.mark.parametrize("enabled", [True, False])
def test_other_agents_child_is_given_a_transcript_only_where_agents_may_reach_each_other(
    log_url: str, enabled: bool
) -> None:
    crew = Crew(agentId="other")
    config = STAFF | {"tools": {"agentToAgent": {"enabled": enabled}}}
    with Booth(log_url) as booth:
        system = start(booth, crew, config)
        say(system, SECRET, "fork it")
        begun = recorded(system, SpawnAccepted)
        replayed = system.debug.replay()

    (answer,) = crew.answers
    assert bool(begun) is enabled
    assert replayed["same"], replayed["firstDifference"]
    if not enabled:
        assert (answer["status"], answer["code"]) == ("forbidden", "forbidden")
        assert "tools.agentToAgent.enabled" in answer["error"]


@pytest.mark.clause("CHILD-6")
def test_operator_without_a_session_has_no_transcript_to_give(booth: Booth) -> None:
    system = start(booth, Crew())
    answer: Any = system.tools().call("sessions_spawn", {"task": "count", "context": "fork"})

    assert (answer["status"], answer["code"]) == ("error", "invalid_request")
    assert "sessionKey" in answer["error"]


@pytest.mark.clause("CHILD-6", "ERASE-1")
@pytest.mark.parametrize("alone", [True, False])
def test_erased_words_are_gone_in_the_child_that_was_given_them(log_url: str, alone: bool) -> None:
    crew = Crew()
    with Booth(log_url) as booth:
        system = start(booth, crew)
        say(system, "short", SECRET, "fork it")
        wait_for(system, SpawnClosed)
        (first, *_) = recorded(system, RunQueued)
        assert first.message is not None
        erase(system, *([first.message.id] if alone else ()))
        (given,) = recorded(system, TranscriptGiven)
        (accepted,) = recorded(system, SpawnAccepted)
        said = str([one.event for one in system.log.all()])
        shown = str(system.debug.lens(accepted.run_id))

    assert {text_of(one) for one in given.given} == {"[erased]"}
    assert SECRET not in shown
    assert (SECRET in said) is alone


LONG = "What about the weather in Oslo, and in Bergen, and further north? " * 4
SMALL: dict[str, Any] = {"contextTokens": 8_000}


@pytest.mark.clause("CHILD-6", "CTX-5")
def test_summary_of_the_requester_stands_for_the_same_messages_in_the_child(booth: Booth) -> None:
    crew = Crew()
    system = start(booth, crew, {"agents": {"defaults": SMALL}})
    say(system, *(f"{number}. {LONG}" for number in range(30)), "fork it")
    wait_for(system, SpawnClosed)
    *_, summary = (one for one in recorded(system, RunCompleted) if one.covers is not None)
    replayed = system.debug.replay()
    (first, *_) = recorded(system, RunQueued)
    assert first.message is not None
    erase(system, first.message.id)
    (given,) = recorded(system, TranscriptGiven)

    begins, *rest = crew.shown[0]
    assert summary.covers is not None
    assert f"Of its {summary.covers.messages} oldest messages this is left:" in begins
    assert summary.reply
    assert summary.reply in begins
    assert {text_of(one) for one in given.given} == {"[erased]"}  # it may say what the erased message said
    assert rest[-1] == "fork it"
    assert len(rest) == 61 - summary.covers.messages
    assert replayed["same"], replayed["firstDifference"]


@pytest.mark.clause("CHILD-6", "ERASE-1")
def test_summary_that_a_child_made_of_what_it_was_given_goes_with_a_message_of_it(booth: Booth) -> None:
    crew = Crew(agentId="other")
    staff = [{"id": "main", "subagents": {"allowAgents": ["*"]}}, {"id": "other", **SMALL}]
    system = start(booth, crew, {"agents": {"list": staff, "defaults": {"contextTokens": 200_000}}})
    say(system, *(f"{number}. {LONG}" for number in range(30)), "fork it")
    wait_for(system, SpawnClosed)
    (first, *_) = recorded(system, RunQueued)
    assert first.message is not None
    before = [one.reply for one in recorded(system, RunCompleted) if one.covers is not None]
    erase(system, first.message.id)
    after = [one.reply for one in recorded(system, RunCompleted) if one.covers is not None]

    assert len(before) == 1
    assert before != ["[erased]"]
    assert after == ["[erased]"]


@pytest.mark.clause("CHILD-6", "ERASE-1")
@pytest.mark.parametrize("alone", [True, False])
def test_erased_words_are_gone_in_the_child_of_a_child_as_well(booth: Booth, alone: bool) -> None:
    def agent(turn: Turn) -> str:
        if turn.step == "message" and (turn.message == "fork it" or turn.message.startswith("start")):
            more = "start another" if turn.message == "fork it" else "use the code"
            turn.tools.call("sessions_spawn", {"task": more, "context": "fork"})
        return "well"

    config: dict[str, Any] = {
        "agents": {"defaults": {"subagents": {"maxSpawnDepth": 2}}},
        "tools": {"subagents": {"tools": {"alsoAllow": ["sessions_spawn"]}}},
    }
    system = booth.start({"main": agent}, {"chat": MemoryChannel()}, config)
    say(system, "the code is walrus", "fork it")
    wait_for_number(system, SpawnClosed, 2)
    before = recorded(system, TranscriptGiven)
    (first, *_) = recorded(system, RunQueued)
    assert first.message is not None
    erase(system, *([first.message.id] if alone else ()))
    after = recorded(system, TranscriptGiven)

    assert ["walrus" in str(given) for given in before] == [True, True]
    assert ["walrus" in str(given) for given in after] == [False, False]


@pytest.mark.clause("CHILD-6")
def test_fork_of_a_childs_run_gives_it_the_same_transcript(booth: Booth) -> None:
    crew = Crew()
    system = start(booth, crew)
    say(system, SECRET, "fork it")
    wait_for(system, SpawnClosed)
    (accepted,) = recorded(system, SpawnAccepted)
    again = Crew()
    with system.fork(accepted.run_id, at="start", agents={"main": again}) as fork:
        fork.carried_on(WAIT)

    assert again.shown == crew.shown
