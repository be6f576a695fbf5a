"""A worker makes the turn of an attempt from its session's stream, and makes the same one as the log's writer (WORK-11)."""

import random
from typing import Any

import pytest

from intersession import Reply, SessionSystem, Turn
from intersession.worker.sessions import Sessions
from support.worker_turns import Reads, offer_of, rebuilt

SMALL: dict[str, Any] = {
    "tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}},
    "agents": {
        "defaults": {"contextTokens": 9_000, "compaction": {"reserveTokensFloor": 0, "reserveTokens": 0}}
    },
    "session": {"agentToAgent": {"maxPingPongTurns": 1}},
    "runs": {"shutdownGraceSeconds": 0},
}


def differs(turn: Turn, made: Turn) -> list[str]:
    """Return which parts of a turn are others where it was made anew."""
    alike = (
        "session_key step asked run_id transcript context attempt deadline model thinking settings partial refused "
        "context_tokens fit summary held_before whole_context shown"
    )
    found = [name for name in alike.split() if getattr(turn, name) != getattr(made, name)]
    return found + ([] if turn.prompt() == made.prompt() else ["prompt"])


def played(store: str, seed: int) -> tuple[int, list[str]]:
    """Play a random history; return how many turns there were, and what differed in those that a worker made."""
    chance = random.Random(seed)  # noqa: S311 - the same each time
    found: list[str] = []
    turns = 0

    def speak(turn: Turn) -> str | Reply:
        nonlocal turns
        turns += 1
        try:
            found.extend(differs(turn, rebuilt(sessions, offer_of(system.log, turn))))
        except Exception as error:  # noqa: BLE001 - the agent's would be an event, and no finding
            found.append(repr(error))
        if turn.step == "compaction":
            return "what was said, in short"
        if turn.step == "message" and chance.random() < 0.3:
            given = {"sessionKey": "agent:ops:main", "message": "and you?", "timeoutSeconds": 0}
            turn.tools.call("sessions_send", given)
        if chance.random() < 0.1:
            raise ValueError("out of order")
        return "answer " * chance.choice((1, 30, 300))

    with SessionSystem(store, agents={"main": speak, "ops": speak}, config=SMALL) as system:
        sessions = Sessions(Reads(system.log))
        key = {"key": "agent:main:main"}
        for number in range(8):
            match chance.randrange(8):
                case 0:
                    system.gateway.call("sessions.reset", key)
                case 1:
                    system.gateway.call("sessions.compact", key)
                case 2:
                    system.gateway.call("sessions.erase", key)
                case _:
                    words = f"words {number} " * chance.choice((1, 40, 400))
                    system.inbound(channel="chat", chat_id="1", sender="mia", text=words, wait=20)
    return turns, found


@pytest.mark.clause("WORK-11")
@pytest.mark.parametrize("seed", range(30))
def test_the_turn_that_a_worker_makes_is_the_writers(seed: int) -> None:
    turns, found = played(":memory:", seed)

    assert found == []
    assert turns


@pytest.mark.nightly
@pytest.mark.clause("WORK-11")
@pytest.mark.parametrize("thousands", range(10))
def test_so_it_is_in_a_thousand_histories(thousands: int) -> None:
    assert [played(":memory:", seed)[1] for seed in range(100 * thousands + 30, 100 * thousands + 130)] == [
        []
    ] * 100
