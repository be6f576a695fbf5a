"""A what-if of a run that was held: it is released as it was then, and comes out as it was recorded."""

from pathlib import Path
from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem
from intersession_actors.hindsight.forking.carrying import carry_on
from intersession_events.facts import ExchangeReleased, ForkEdit
from intersession_events.log.log import Log
from support.every_day import every_day
from support.forks_played import CONFIG, WAIT, answers, asks
from support.running import merged

AGENTS = {"main": asks, "desk": answers}


def held(path: Path, hold: str, *releases: dict[str, Any]) -> tuple[SessionSystem, str]:
    """Have a conversation that is held, each hold released in one of these ways in turn, the last ones as they are."""
    config = merged(CONFIG, {"session": {"agentToAgent": {"maxPingPongTurns": 2, "hold": hold}}})
    system = SessionSystem(path / "held.db", agents=AGENTS, channels={"x": MemoryChannel()}, config=config)
    system.inbound(channel="x", chat_id="2", text="hello", sender="ben", agent_id="desk", deliver=False)
    system.inbound(channel="x", chat_id="1", text="when?", sender="ann")
    ways = [*releases]
    while (carried := carry_on(system.service, "", timeout=WAIT)).state == "held":
        (one,) = carried.held
        system.release(one.run, **(ways.pop(0) if ways else {}))
    assert carried.state == "ended", carried
    (stream,) = system.log.streams("exchange:")
    return system, stream.removeprefix("exchange:")


def released(log: Log, exchange: str) -> list[tuple[str, str | None, str]]:
    events = [one.event for one in log.stream(f"exchange:{exchange}")]
    return [(one.action, one.text, one.by) for one in events if isinstance(one, ExchangeReleased)]


def check_same(system: SessionSystem, exchange: str, at: str) -> None:
    with system.fork(exchange, at=at, agents={"*": "recorded"}) as fork:
        carried = fork.carried_on(WAIT)
        assert (carried.state, carried.divergence) == ("ended", None), at
        assert released(fork.log, exchange) == released(system.log, exchange), at
        found = system.debug.diff(exchange, fork.log.log_id)
        assert found["same"], (at, found["firstDivergence"])


@pytest.mark.clause("FORK-7", "LIVE-1")
@pytest.mark.parametrize(
    ("hold", "releases"),
    every_day(
        {
            "as it is": ("every-turn", [{}]),
            "edited and dropped": (
                "every-turn",
                [{}, {"text": "and is it cheap?"}, {"action": "drop"}],
            ),
            "another announce": ("announce", [{"text": "It leaves at ten."}]),
            "ended": ("reply", [{"action": "end"}]),
        },
        "edited and dropped",
        "ended",
    ),
)
def test_a_what_if_of_a_held_run_comes_out_as_it_was_recorded(
    tmp_path: Path, hold: str, releases: list[dict[str, Any]]
) -> None:
    system, exchange = held(tmp_path, hold, *releases)
    with system:
        check_same(system, exchange, "reply-1")
        check_same(system, exchange, "reply")


@pytest.mark.clause("FORK-7", "LIVE-1")
def test_what_is_held_with_other_words_than_then_stays_held(tmp_path: Path) -> None:
    system, exchange = held(tmp_path, "every-turn")
    edit = ForkEdit(kind="reply", value="is it late?")
    with system:
        with system.fork(exchange, at="turn:1", edits=[edit], agents={"*": "recorded"}) as fork:
            carried = fork.carried_on(WAIT)
            assert (carried.state, [one.turn for one in carried.held]) == ("held", [1])
        with system.fork(exchange, at="turn:1", edits=[edit], agents={"*": "recorded"}, loose=True) as fork:
            assert fork.carried_on(WAIT).state == "ended"
