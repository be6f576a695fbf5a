"""Forks that left their recording: each says where, and what differs there; a loose caller goes on past what a tool gives now."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem
from intersession_actors.hindsight.forking.carrying import Carried
from intersession_actors.hindsight.forking.listing import forks_of
from intersession_actors.rules.prompt.meaning import TurnInput, prompts_differing, results_differing
from intersession_events.facts import ForkEdit, Message, Provenance, RecordingLeft, RunCompleted
from intersession_events.log.log import Log
from intersession_events.stores.opened import open_log
from support.forks_played import CONFIG, DESK, WAIT, Conversation, answers, asks, conversation

MAIN = "agent:main:main"
FEWER = ForkEdit(kind="set", key="session.agentToAgent.maxPingPongTurns", value="2")
TOKEN = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conversation]:
    made = conversation(tmp_path_factory.mktemp("left"))
    yield made
    made.system.close(grace=0)


def forked(talk: Conversation, at: str, *edits: ForkEdit, loose: bool = False) -> tuple[str, Carried]:
    with talk.system.fork(talk.exchange, at=at, edits=edits, agents={"*": "recorded"}, loose=loose) as fork:
        carried = fork.carried_on(WAIT)
        path = fork.log.path
    return path, carried


def outcome(talk: Conversation, path: str) -> dict[str, Any]:
    rows: Any = forks_of(talk.log.place).as_json()["forks"]
    (row,) = [row for row in rows if row["id"] == Path(path).stem]
    found: dict[str, Any] = row["outcome"]
    return found


def left_in(log: Log) -> list[RecordingLeft]:
    return [one.event for one in log.stream("log") if isinstance(one.event, RecordingLeft)]


@pytest.mark.clause("FORK-7", "FORK-9")
def test_a_fork_that_left_its_recording_is_listed_with_its_place_and_what_differs(talk: Conversation) -> None:
    path, carried = forked(talk, "reply", FEWER)

    divergence = carried.divergence
    assert (carried.state, divergence is not None) == ("diverged", True)
    assert divergence is not None
    assert divergence.differs == ("system context",)
    assert "This is turn 1 of 4." in divergence.differs_then[0]
    assert "This is turn 1 of 2." in divergence.differs_now[0]
    found = outcome(talk, path)
    assert (found["state"], found["left"]["turn"], found["left"]["sessionKey"]) == ("diverged", 1, MAIN)
    assert found["left"]["text"] == f"left the recording at turn 1 of {MAIN}: system context"
    assert found["left"]["differs"][0]["part"] == "system context"
    with open_log(path, read_only=True) as log:
        assert left_in(log) == [divergence]
        (event,) = [one for one in log.stream("log") if isinstance(one.event, RecordingLeft)]
        assert event.causation is not None


@pytest.mark.clause("FORK-7")
def test_a_fork_that_left_its_recording_and_was_carried_on_since_is_over_and_still_says_where(
    talk: Conversation,
) -> None:
    path, _ = forked(talk, "turn:1", ForkEdit(kind="reply", value="is it late?"))
    assert outcome(talk, path)["state"] == "diverged"

    with SessionSystem(path, agents={"main": asks, "desk": answers}, config=CONFIG) as fork:
        assert fork.carried_on(WAIT).state == "ended"

    found = outcome(talk, path)
    assert (found["state"], found["left"]["turn"]) == ("closed", 2)
    # A fork of it stands where that was cut, and has left nothing yet.
    with (
        SessionSystem(path, agents={"main": asks, "desk": answers}, config=CONFIG) as fork,
        fork.fork(talk.exchange, at="turn:2", agents={"*": "recorded"}) as second,
    ):
        assert second.carried_on(WAIT).divergence is None
        assert left_in(second.log) == []


@pytest.mark.clause("FORK-7")
def test_a_loose_caller_goes_on_with_what_it_had_said_and_that_is_marked(talk: Conversation) -> None:
    path, carried = forked(talk, "reply", ForkEdit(kind="reply", value="at ten"), loose=True)

    assert (carried.state, carried.outcome.end, carried.outcome.turns) == ("ended", "turn_limit", 4)
    divergence = carried.divergence
    assert divergence is not None
    assert (divergence.kind, divergence.goes_on) == ("tool", True)
    assert (divergence.differs, divergence.differs_then, divergence.differs_now) == (
        ("sessions_send: reply",),
        ("at nine",),
        ("at ten",),
    )
    with open_log(path, read_only=True) as log:
        said = [
            one.event.reply for one in log.stream(f"session:{MAIN}") if isinstance(one.event, RunCompleted)
        ]
        assert said[0] == "the desk says at nine"
        assert [left.goes_on for left in left_in(log)] == [True]
    found = outcome(talk, path)
    assert (found["state"], found["left"]["goesOn"]) == ("closed", True)
    assert found["left"]["text"] == (
        f"went on past a difference at the answer of {MAIN}: sessions_send: reply"
    )


@pytest.mark.clause("FORK-7", "ERASE-1")
def test_what_a_fork_says_of_a_session_where_it_left_its_recording_is_erased_with_it(
    talk: Conversation,
) -> None:
    path, _ = forked(talk, "turn:1", ForkEdit(kind="reply", value="does it leave from quay seven?"))
    with SessionSystem(path, agents={"main": asks, "desk": answers}, config=CONFIG) as fork:
        assert fork.carried_on(WAIT).state == "ended"
        (before,) = left_in(fork.log)
        assert before.session_key == DESK
        assert any("quay seven" in text for text in before.differs_now)
        answer = fork.gateway.perform("sessions.erase", {"key": DESK})
        assert answer["ok"] is True, answer
        (after,) = left_in(fork.log)
    assert (after.recorded, after.now, set(after.differs_now)) == ("[erased]", "[erased]", {"[erased]"})
    assert after.differs == before.differs
    assert outcome(talk, path)["left"]["now"] == "[erased]"


def message(text: str, *, sender: str | None = None) -> Message:
    origin = None if sender is None else Provenance(kind="external_user", sender=sender)
    return Message(id=text, role="user", content=text, timestamp=0, provenance=origin)


@pytest.mark.clause("FORK-7")
def test_each_part_of_a_prompt_that_differs_is_named() -> None:
    same = [message("one"), message("two"), message("three")]
    then = TurnInput(same, message("well?", sender="ann"), (), "You are main.")
    assert prompts_differing(then, then) == ()

    now = TurnInput(
        [same[0], message("2"), same[2]], message("well?", sender="ben"), (same[1],), "You are desk."
    )
    assert [(part.name, part.then, part.now) for part in prompts_differing(then, now)] == [
        ("system context", "You are main.", "You are desk."),
        ("message 2 of the transcript", "user: two", "user: 2"),
        ("sender of message", "external_user ann", "external_user ben"),
        ("earlier attempts, message 1", "", "user: two"),
    ]
    fewer = TurnInput(same[1:], message("well?", sender="ann"), (), "You are main.")
    assert [part[:] for part in prompts_differing(then, fewer)] == [
        ("message 1 of the transcript", "user: one", "")
    ]


@pytest.mark.clause("FORK-7")
def test_what_is_told_of_a_difference_is_cut_and_has_no_secret() -> None:
    long = "so it goes, " * 1_000
    then = TurnInput([message(f"{long} {n}") for n in range(30)], message(f"key {TOKEN}"), (), long)
    now = TurnInput(
        [message(f"{long} {n}!") for n in range(30)], message(f"no key {TOKEN}"), (), f"{long} on"
    )
    parts = prompts_differing(then, now)
    assert [part.name for part in parts][-2:] == ["message 7 of the transcript", "24 more"]
    assert all(len(text) <= 242 for part in parts for text in part[1:])
    assert TOKEN not in str(
        prompts_differing(TurnInput((), then.message, (), ""), TurnInput((), now.message, (), ""))
    )
    result = results_differing(
        "weather", f'{{"token": "{TOKEN}", "at": 3}}', f'{{"token": "{TOKEN}x", "at": 4}}'
    )
    assert "weather: at" in [part.name for part in result]
    assert TOKEN not in str(result)


@pytest.mark.clause("FORK-9")
@pytest.mark.parametrize("name", ["00000000-0000-4000-8000-000000000000", "what if it had said no", "copy"])
def test_a_fork_under_another_name_alone_is_named_and_a_copy_beside_it_is_not(
    tmp_path: Path, name: str
) -> None:
    talk = conversation(tmp_path)
    try:
        with talk.system.fork(talk.exchange, at="reply") as fork:
            path = Path(fork.log.path)
    finally:
        talk.system.close(grace=0)
    other = path.with_stem(name)

    shutil.copy(path, other)
    copied = forks_of(talk.log.place)
    path.unlink()
    alone: Any = forks_of(talk.log.place).as_json()

    assert ([one.id for one in copied.forks], copied.unread) == ([path.stem], [])
    assert alone["forks"] == []
    assert alone["unread"] == [
        {"id": other.stem, "problem": f"{other} holds the log {path.stem}: give the file that name again"}
    ]
