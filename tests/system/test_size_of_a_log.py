"""How much a chat takes in the file of a log, as the page on that says."""

from pathlib import Path

import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_events.stores import SqliteLog
from support.running import WAIT

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
def test_a_chat_makes_ten_events_and_takes_less_than_eight_kilobytes(tmp_path: Path) -> None:
    assert len(LINE) == 44
    few, small = with_chats(tmp_path / "few.db", 20)
    many, large = with_chats(tmp_path / "many.db", 220)

    assert many - few == 200 * 10
    assert large - small < 200 * 8_000
