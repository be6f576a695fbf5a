"""An agent that answers from a recording does what was done when it was given the same, and says where that ends."""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intersession import Reply, SessionSystem, Turn, echo
from intersession_actors.outside.agents.recorded import Divergence, RecordedAgent
from intersession_actors.outside.agents.recording import RecordedAttempt, Recording
from intersession_actors.rules.prompt.meaning import Meanings
from intersession_events import facts
from intersession_events.log.log import Log
from support.running import SEES_ALL, closed_exchange, merged

MAIN, RESEARCH = "agent:main:main", "agent:research:main"
LISTED = {"agents": {"list": [{"id": "main", "default": True}, {"id": "research"}]}}
TWO_TURNS = {"session": {"agentToAgent": {"maxPingPongTurns": 2}}}
CONFIG = merged(SEES_ALL, LISTED, TWO_TURNS)


def main_agent(turn: Turn) -> str | Reply:
    if turn.step != "message":
        return "thanks, and how sure are you?" if turn.step == "reply" else Reply.skip()
    call = turn.record_call("weather", {"city": "Oslo"})
    turn.record_result(call, "weather", {"degrees": 3})
    answer = turn.tools.call("sessions_send", {"agentId": "research", "message": "is it cold?"})
    turn.tools.call("sessions_list")
    return Reply(f"they say {answer.get('reply')}", usage=facts.Usage(input=7, output=2))


def research_agent(turn: Turn) -> str | Reply:
    match turn.step:
        case "message" | "compaction":
            said = facts.Message(id="", role="assistant", content="it is", timestamp=0, stop_reason="stop")
            return Reply("it is", messages=(said,), model="small")
        case "reply":
            return "very sure"
        case "announce":
            return Reply.skip()


def live(path: Path, agents: dict[str, Any], text: str = "is it cold?") -> tuple[SessionSystem, str]:
    system = SessionSystem(path, agents=agents, config=CONFIG)
    answer = system.inbound(channel="x", chat_id="1", text=text, sender="ann", wait=20)
    assert answer["status"] == "ok", answer
    (stream,) = system.log.streams("exchange:")
    (accepted, *_) = system.log.stream(stream)
    assert isinstance(accepted.event, facts.ExchangeAccepted)
    closed_exchange(system, accepted.event.run_id)
    return system, answer["runId"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    system, _ = live(
        tmp_path_factory.mktemp("recorded") / "log.db", {"main": main_agent, "research": research_agent}
    )
    with system:
        yield system.log


def story(log: Log) -> list[tuple[str, Any]]:
    """What was said and how each step ended, stream by stream, without ids and times."""
    return [
        (stream, told)
        for stream in (*sorted(log.streams("session:")), *log.streams("exchange:"))
        for recorded in log.stream(stream)
        for told in (_message(recorded.event), _said(recorded.event) or recorded.topic)
    ]


def _message(event: facts.Event) -> Any:
    message = facts.message_in(event)
    if message is None:
        return None
    blocks = () if isinstance(message.content, str) else message.content
    words = "" if message.role == "toolResult" else facts.text_of(message)
    return message.role, words, message.tool_name, [type(block).__name__ for block in blocks]


def _said(event: facts.Event) -> Any:
    match event:
        case facts.RunCompleted() as end:
            return end.reply, end.usage, end.model, end.stop_reason, end.attempt
        case facts.TurnEnded(text=text):
            return "said", text
        case _:
            return None


@pytest.mark.clause("FORK-7")
def test_what_was_given_again_is_answered_as_it_was(source: Log, tmp_path: Path) -> None:
    recording = Recording.of(source)
    agents = {name: RecordedAgent(recording, match="meaning") for name in ("main", "research")}
    system, _ = live(tmp_path / "again.db", agents)
    with system:
        assert [told for _, told in story(system.log)] == [told for _, told in story(source)]


@pytest.mark.clause("FORK-7")
def test_another_message_diverges_and_says_where(source: Log, tmp_path: Path) -> None:
    seen: list[Divergence] = []

    def otherwise(turn: Turn, divergence: Divergence) -> str:
        seen.append(divergence)
        return f"live: {turn.message}"

    agent = RecordedAgent(Recording.of(source), match="meaning", otherwise=otherwise)
    with SessionSystem(tmp_path / "other.db", agents={"main": agent}, config=CONFIG) as system:
        answer = system.inbound(channel="x", chat_id="1", text="is it warm?", sender="ann", wait=20)
    assert answer["reply"] == "live: is it warm?"
    (divergence,) = seen
    assert (divergence.kind, divergence.session_key, divergence.step) == ("context", MAIN, "message")
    assert (divergence.recorded, divergence.now) == ("they say it is", "is it warm?")


@pytest.mark.clause("FORK-7")
def test_a_tool_that_gives_something_else_is_where_a_recording_ends(source: Log, tmp_path: Path) -> None:
    seen: list[Divergence] = []

    def otherwise(turn: Turn, divergence: Divergence) -> str:
        seen.append(divergence)
        return f"live {turn.step}"

    main = RecordedAgent(Recording.of(source), match="meaning", otherwise=otherwise)
    system, _ = live(tmp_path / "tool.db", {"main": main, "research": echo("not at all: ")})
    system.close()
    assert seen[0].kind == "tool"
    assert "it is" in (seen[0].recorded or "")
    assert "not at all" in (seen[0].now or "")


@pytest.mark.clause("FORK-7")
def test_a_place_is_enough_where_only_the_place_has_to_be_the_same(source: Log, tmp_path: Path) -> None:
    recording = Recording.of(source)
    agents = {name: RecordedAgent(recording, match="place") for name in ("main", "research")}
    system, _ = live(tmp_path / "loose.db", agents, text="is it warm?")
    with system:
        replies = [
            recorded.event.reply
            for recorded in system.log.all()
            if isinstance(recorded.event, facts.RunCompleted)
        ]
    assert "they say it is" in replies


@pytest.mark.clause("FORK-7")
def test_an_attempt_is_known_by_the_hash_that_was_recorded(source: Log) -> None:
    starts = [
        (recorded.stream.removeprefix("session:"), recorded.event)
        for recorded in source.all()
        if isinstance(recorded.event, facts.RunStarted)
    ]
    recording = Recording.of(source)
    for key, started in starts:
        attempt = recording.run(key, started.run_id, started.attempt)
        assert isinstance(attempt, RecordedAttempt)
        assert recording.with_context(attempt.session_key, started.context_hash) == (attempt,)
    key, begun = starts[0]
    first = recording.run(key, begun.run_id, 1)
    assert first is not None
    assert [message.role for message in first.done] == ["assistant", "toolResult"] * 3
    assert first.answered is None


@pytest.mark.clause("FORK-7")
def test_a_transcript_that_grows_is_taken_in_message_by_message(monkeypatch: pytest.MonkeyPatch) -> None:
    said = [facts.Message(id=f"m{n}", role="user", content=f"word {n}", timestamp=n) for n in range(40)]
    digests = Counter[str]()
    plain = Meanings._digest

    def counted(meanings: Meanings, message: facts.Message) -> bytes:
        digests[message.id] += 1
        return plain(meanings, message)

    monkeypatch.setattr(Meanings, "_digest", counted)
    one = Meanings()
    grown = [one.of(said[:n], said[n], [], "") for n in range(40)]

    assert max(digests.values()) == 2  # as what was asked, and then as a part of the transcript
    assert grown == [Meanings().of(said[:n], said[n], [], "") for n in range(40)]


@pytest.mark.clause("FORK-7")
def test_transcripts_of_several_sessions_and_generations_are_told_apart() -> None:
    sessions = [
        [facts.Message(id=f"{name}{n}", role="user", content=f"{name} {n}", timestamp=n) for n in range(9)]
        for name in "abc"
    ]
    dice = random.Random(7)  # noqa: S311 - dice, not secrets
    one = Meanings()
    for _ in range(200):
        said = dice.choice(sessions)
        first, last = sorted(dice.sample(range(9), 2))
        given = (said[first:last], said[last], said[:first], "context")
        assert one.of(*given) == Meanings().of(*given)
