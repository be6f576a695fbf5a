"""How much a chat takes in the file of a log, as the page on that says."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_actors.calls.tools.registry import TOOLS
from intersession_events.facts import SESSION_TOOLS, ExchangeAccepted, ExchangeClosed, RunQueued, encode
from intersession_events.log.recorded import Recorded
from intersession_events.stores.sqlite.log import SqliteLog
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


@pytest.fixture
def exchange(log_url: str) -> list[Recorded]:
    """The events of an exchange of five turns, with what it announces."""
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
        events = list(system.log.all())
    (accepted,) = [one for one in events if isinstance(one.event, ExchangeAccepted)]
    return [one for one in events if one.correlation == accepted.correlation]


def turns_in(exchange: list[Recorded]) -> int:
    """Return how many runs are asked for: the first one, each turn, and the announce."""
    runs = sum(isinstance(one.event, RunQueued) for one in exchange)
    assert runs == 1 + 5 + 1
    return runs


@pytest.mark.clause("C7")
def test_the_decision_records_of_a_turn_have_at_most_200_bytes_together(exchange: list[Recorded]) -> None:
    assert 0 < sum(len(one.decision.encode()) for one in exchange) <= 200 * turns_in(exchange)


def test_what_a_turn_says_has_at_most_1_760_bytes(exchange: list[Recorded]) -> None:
    assert sum(len(encode(one.event)) for one in exchange) <= 1_760 * turns_in(exchange)


def test_no_field_is_stored_that_equals_its_default(exchange: list[Recorded]) -> None:
    assert [
        told for one in exchange for told in stored_defaults(one.event, msgspec.to_builtins(one.event))
    ] == []
    # The others are there only where settings name them.
    assert tuple(TOOLS)[: len(SESSION_TOOLS)] == SESSION_TOOLS


def stored_defaults(fact: msgspec.Struct, stored: dict[str, Any]) -> Iterator[str]:
    for field in msgspec.structs.fields(fact):
        value = getattr(fact, field.name)
        if field.encode_name in stored and value == field.default:
            yield f"{type(fact).__name__}.{field.name}"
        elif isinstance(value, msgspec.Struct) and field.encode_name in stored:
            yield from stored_defaults(value, stored[field.encode_name])
