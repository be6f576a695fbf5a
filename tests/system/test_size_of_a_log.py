"""How much a chat takes in the file of a log, as the page on that says."""

from pathlib import Path

import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_events.facts import ExchangeClosed, TurnEnded
from intersession_events.log import parts_in
from intersession_events.stores import SqliteLog
from support.running import WAIT, wait_for

LINE = "it has forty-four characters, as is counted."


def answer(_turn: Turn) -> str:
    return LINE[::-1]


def with_chats(path: Path, number: int) -> tuple[int, int]:
    """Return how many events so many chats of one message and one answer make, and how large the file of the log is."""
    with SessionSystem(
        f"sqlite:///{path}", agents={"main": answer}, channels={"telegram": MemoryChannel()}
    ) as system:
        for chat in range(number):
            system.inbound(
                channel="telegram", chat_id=str(chat), chat_type="group", sender="ann", text=LINE, wait=WAIT
            )
    with SqliteLog(path, read_only=True) as log:
        events = sum(1 for one in log.all() if one.stream.startswith(("session:", "delivery:")))
    return events, path.stat().st_size


@pytest.mark.ci
@pytest.mark.sqlite("the size of its file is what is measured")
def test_a_chat_makes_eight_events_and_takes_less_than_seven_kilobytes(tmp_path: Path) -> None:
    assert len(LINE) == 44
    few, small = with_chats(tmp_path / "few.db", 20)
    many, large = with_chats(tmp_path / "many.db", 220)

    assert many - few == 200 * 8
    assert large - small < 200 * 7_000


@pytest.mark.clause("C7")
def test_the_decision_records_of_a_turn_have_at_most_200_bytes_together(log_url: str) -> None:
    config = {
        "tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}},
        "agents": {"list": [{"id": "main", "default": True}, {"id": "other"}]},
    }
    with SessionSystem(
        log_url,
        agents={"main": answer, "other": answer},
        channels={"telegram": MemoryChannel()},
        config=config,
    ) as system:
        system.inbound(channel="telegram", chat_id="1", sender="ann", text=LINE, agent_id="main", wait=WAIT)
        sent = {"sessionKey": "agent:other:main", "message": LINE, "timeoutSeconds": WAIT}
        system.tools("agent:main:main").call("sessions_send", sent)
        wait_for(system, ExchangeClosed)
        events = list(parts_in(system.log.all()))

    turns = sum(isinstance(one.event, TurnEnded) and one.event.turn > 0 for one in events)
    closed = [one for one in events if isinstance(one.event, ExchangeClosed)]
    of_turns = {
        one.id: one.decision for one in events if one.correlation == closed[0].correlation and one.decision
    }
    assert (turns, len(closed)) == (5, 1)
    # The first run, each turn and the announce, with its delivery.
    assert 0 < sum(len(record.encode()) for record in of_turns.values()) <= 200 * (turns + 2)
