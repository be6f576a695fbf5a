"""A fork that is cut between what a call of a tool did and its answer: done again, it is not done twice (FORK-4)."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import pytest

from intersession import MemoryChannel, SessionSystem, ToolRefused, Turn
from intersession_actors.hindsight.forking.carrying import carry_on
from intersession_events.facts import (
    DeliveryDecided,
    ExchangeAccepted,
    Message,
    MessageRecorded,
    RunCompleted,
    RunQueued,
    RunStarted,
    SpawnAccepted,
    TextBlock,
    calls_of,
    message_in,
    text_of,
)
from intersession_events.log.log import Log
from intersession_events.log.recorded import parts_in
from intersession_projections.views.run_outcomes.replies import told_in
from support.running import SEES_ALL, WAIT, merged, recorded

MAIN, DESK = "agent:main:main", "agent:desk:main"
CONFIG = merged(
    SEES_ALL,
    {
        "agents": {
            "list": [{"id": "main", "default": True}, {"id": "desk"}],
            "defaults": {"subagents": {"maxChildrenPerAgent": 2}},
        },
        "session": {"agentToAgent": {"maxPingPongTurns": 0, "announce": "routed"}},
    },
)


def busy(turn: Turn) -> str:
    """Do one thing after the other that a fork could do twice."""
    if turn.step != "message" or ":subagent:" in turn.session_key or turn.message != "go":
        return "done" if turn.step == "message" else turn.skip_word
    own = turn.record_call("weather", {"city": "Oslo"})
    turn.record_result(own, "weather", {"degrees": 3})
    turn.recorder.said((TextBlock(text="now for the others"),))
    spawned = turn.tools.call("sessions_spawn", {"task": "look it up"})
    turn.tools.call(
        "sessions_send",
        {"sessionKey": DESK, "message": "when?", "timeoutSeconds": 10, "idempotencyKey": "once"},
    )
    again = turn.tools.call("sessions_spawn", {"task": "and that", "idempotencyKey": "and that"})
    turn.tools.call("sessions_send", {"sessionKey": DESK, "message": "thanks", "timeoutSeconds": 0})
    return f"{spawned.get('childSessionKey')} {again.get('childSessionKey')}"


class Source(NamedTuple):
    """A run that was busy, in a log that is open: what it did, and where."""

    system: SessionSystem
    run: str
    positions: list[int]
    """From its start up to its end."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    path = tmp_path_factory.mktemp("busy") / "log.db"
    agents = {"main": busy, "desk": lambda _: "at nine"}
    with SessionSystem(path, agents=agents, channels={"x": MemoryChannel()}, config=CONFIG) as system:
        said: dict[str, Any] = {
            "channel": "x",
            "chat_id": "1",
            "text": "go",
            "sender": "ann",
            "message_id": "m1",
        }
        run = system.inbound(**said, wait=WAIT)["runId"]
        carry_on(system.service, "", timeout=WAIT)
        begun, ended = (
            next(
                one.position
                for one in parts_in(system.log.all())
                if isinstance(one.event, kind) and one.event.run_id == run
            )
            for kind in (RunStarted, RunCompleted)
        )
        yield Source(system, run, list(range(begun, ended)))


def messages_of(log: Log, run: str) -> list[Message]:
    return [
        message
        for one in log.stream(f"session:{MAIN}")
        if (message := message_in(one.event)) is not None and message.run_id == run
    ]


def check_done_once(source: Source, at: int, system: SessionSystem | None = None) -> None:
    """Fork the run, or a fork of it, and carry it on with what was recorded."""
    with (system or source.system).fork(source.run, at=at, agents={"*": "recorded"}) as fork:
        carried = fork.carried_on(WAIT)
        assert (carried.state, carried.divergence) == ("ended", None), at
        accepted = {one.run_id: one for one in recorded(fork, SpawnAccepted)}
        assert [one.task for one in accepted.values()] == ["look it up", "and that"], at
        assert [one.message for one in recorded(fork, ExchangeAccepted)] == ["when?", "thanks"], at
        messages = messages_of(fork.log, source.run)
        calls = Counter(call for message in messages for call in calls_of(message))
        results = Counter(message.tool_call_id for message in messages if message.role == "toolResult")
        assert len(calls) == 5
        assert calls == results, at
        assert set(calls.values()) == {1}, at
        assert sum(text_of(message) == "now for the others" for message in messages) == 1, at
        # What the agent was told of a child is the child that was accepted.
        told = [text_of(message) for message in messages if message.role == "toolResult"]
        assert all(sum(one.child in text for text in told) == 1 for one in accepted.values()), at


def behind_effects(source: Source) -> list[int]:
    """Return where something had just been accepted or recorded, and nobody had been told."""
    kinds = (SpawnAccepted, ExchangeAccepted, RunQueued, MessageRecorded)
    at = {one.position: one for one in source.system.log.all()}
    return [position for position in source.positions if isinstance(at[position].event, kinds)]


@pytest.mark.clause("FORK-4", "FORK-7")
def test_what_a_call_had_done_before_the_cut_is_what_it_answers_behind_it(source: Source) -> None:
    cuts = behind_effects(source)
    for at in cuts[3:-1:4]:
        check_done_once(source, at)


@pytest.mark.nightly
@pytest.mark.clause("FORK-4", "FORK-7")
def test_nothing_is_done_twice_wherever_a_run_is_cut(source: Source) -> None:
    for at in source.positions:
        check_done_once(source, at)


def accepted_at(system: SessionSystem, task: str) -> int:
    return next(
        one.position
        for one in told_in(system.log, system.log.all())
        if isinstance(one.event, SpawnAccepted) and one.event.task == task
    )


@pytest.mark.clause("FORK-4", "FORK-9")
def test_a_fork_of_a_fork_knows_what_the_first_log_had_done(source: Source) -> None:
    at = accepted_at(source.system, "look it up")
    with source.system.fork(source.run, at=at, agents={"*": "recorded"}) as fork:
        assert fork.carried_on(WAIT).state == "ended"
        check_done_once(source, accepted_at(fork, "and that"), fork)


@pytest.mark.clause("FORK-4", "SEND-11", "INB-1")
def test_a_key_that_was_used_before_the_cut_stands_for_the_same_in_the_fork(tmp_path: Path) -> None:
    channel = MemoryChannel()
    agents = {"main": lambda _: "ok"}
    sent = {"sessionKey": MAIN, "message": "hello", "idempotencyKey": "k"}
    texts = {
        "sessionKey": MAIN,
        "channel": "x",
        "to": "1",
        "message": "by the way",
        "idempotencyKey": "t",
    }
    said: dict[str, Any] = {
        "channel": "x",
        "chat_id": "1",
        "text": "hi",
        "sender": "ann",
        "message_id": "m",
        "wait": WAIT,
    }
    with SessionSystem(tmp_path / "log.db", agents=agents, channels={"x": channel}, config=CONFIG) as system:
        run = system.inbound(**said)["runId"]
        chat = system.gateway.call("chat.send", sent)["runId"]
        text = system.gateway.call("send", texts)
        carry_on(system.service, "", timeout=WAIT)
        with system.fork(run, at="head", agents={"main": "main"}, deliver=["x"]) as fork:
            fork.carried_on(WAIT)
            before = fork.log.head()
            assert system.inbound(**said)["runId"] == fork.inbound(**said)["runId"] == run
            assert fork.gateway.call("chat.send", sent)["runId"] == chat
            assert fork.gateway.call("send", texts) == text
            with pytest.raises(ToolRefused, match="another text"):
                fork.gateway.perform("send", {**texts, "message": "something else"})
            with pytest.raises(ToolRefused, match="another message"):
                fork.gateway.perform("chat.send", {**sent, "message": "something else"})
            carry_on(fork.service, "", timeout=WAIT)
            kinds = (RunQueued, DeliveryDecided)
            assert [one for one in parts_in(fork.log.all(after=before)) if isinstance(one.event, kinds)] == []


@pytest.mark.ci
@pytest.mark.clause("FORK-7")
def test_a_wait_that_ran_out_runs_out_again_though_a_recording_answers_at_once(tmp_path: Path) -> None:
    """Agents take their time; what is recorded of them does not. So a what-if without an edit left the recording."""
    told = Event()

    def asks(turn: Turn) -> str:
        if turn.step != "message":
            return "and now?" if turn.step == "reply" else turn.skip_word
        sent = {"sessionKey": DESK, "message": "when?", "timeoutSeconds": 1}
        status = turn.tools.call("sessions_send", sent)["status"]
        told.set()
        return f"the desk: {status}"

    def answers(turn: Turn) -> str:
        told.wait(WAIT)
        return "at nine" if turn.step != "announce" else turn.skip_word

    config = merged(CONFIG, {"session": {"agentToAgent": {"maxPingPongTurns": 2, "announce": "always"}}})
    with SessionSystem(tmp_path / "log.db", agents={"main": asks, "desk": answers}, config=config) as system:
        system.inbound(channel="x", chat_id="1", sender="ann", text="hello", agent_id="desk", deliver=False)
        run = system.gateway.call("agent", {"message": "go", "idempotencyKey": "go"})["runId"]
        assert system.gateway.call("agent.wait", {"runId": run})["reply"] == "the desk: timeout"
        carry_on(system.service, "", timeout=WAIT)
        (exchange,) = (row["id"] for row in system.debug.runs(kind=["exchange"])["runs"])
        for flow in (exchange, run):
            with system.fork(flow, at="start", agents={"*": "recorded"}) as fork:
                carried = fork.carried_on(WAIT)
                assert (carried.state, carried.divergence) == ("ended", None)
                assert system.debug.diff(flow, fork.log.log_id)["same"]
