"""What an agent was given in a run: rebuilt from the log to the hash that was recorded, whoever wrote the log."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from intersession import MemoryChannel, SessionSystem, ToolRefused, Turn, open_log
from intersession_events.facts import DeliveryDone, RunStarted
from support.any_log import Logs
from support.as_caller import as_session
from support.golden_logs import GoldenLog, golden_logs
from support.running import SEES_ALL, closed_exchange, merged, recorded, wait_for

MAIN, RESEARCH, DESK = "agent:main:main", "agent:research:main", "agent:desk:main"
SECRET = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
LISTED = {"agents": {"list": [{"id": "main", "default": True}, {"id": "research"}, {"id": "desk"}]}}
TWO_TURNS = {"session": {"agentToAgent": {"maxPingPongTurns": 2}}}


def plain(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


class Seen:
    """Turns, as the agents got them."""

    def __init__(self) -> None:
        self.turns: dict[str, dict[str, Any]] = {}

    def __call__(self, turn: Turn) -> str:
        self.turns[turn.run_id] = {
            "prompt": turn.prompt(),
            "openai": turn.messages("openai"),
            "anthropic": turn.messages("anthropic"),
            "messages": plain(list(turn.transcript)),
            "message": plain(turn.asked),
            "systemContext": turn.context,
            "tools": turn.tools.schemas("json-schema"),
            "deadlineMs": turn.deadline,
        }
        return f"{turn.agent_id} has {SECRET}"


@pytest.fixture(scope="module")
def told(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SessionSystem, Seen, str]]:
    seen = Seen()
    path: Path = tmp_path_factory.mktemp("lens")
    agents = {"main": seen, "research": seen, "desk": seen}
    with SessionSystem(logs.at(path), agents=agents, config=merged(SEES_ALL, LISTED, TWO_TURNS)) as system:
        for number in range(3):
            system.inbound(channel="x", chat_id="1", text=f"hi {number}", sender="ann", wait=20)
        system.inbound(channel="x", chat_id="2", text="hi", sender="ben", agent_id="desk", wait=20)
        asked = {"agentId": "research", "message": "what is it?", "timeoutSeconds": 20}
        run_id = system.tools(MAIN).call("sessions_send", asked)["runId"]
        closed_exchange(system, run_id)
        yield system, seen, run_id


@pytest.mark.clause("LENS-1", "PROV-4")
def test_every_run_is_seen_as_its_agent_saw_it(told: tuple[SessionSystem, Seen, str]) -> None:
    system, seen, _ = told
    runs = [started.run_id for started in recorded(system, RunStarted)]
    assert len(runs) == len(seen.turns) == 8

    for run in runs:
        lens, got = system.debug.lens(run, dialect="prompt"), seen.turns[run]
        assert lens["asRecorded"]
        assert lens["rebuiltHash"] == lens["contextHash"]
        for name in ("prompt", "messages", "message", "systemContext", "tools", "deadlineMs"):
            assert lens[name] == got[name], name
        assert not {"total", "before"} & lens.keys()
        for dialect in ("openai", "anthropic"):
            assert system.debug.lens(run, dialect=dialect)["rendered"] == got[dialect]


@pytest.mark.clause("LENS-1", "PLACE-1")
def test_a_run_of_an_exchange_is_named_by_its_place(told: tuple[SessionSystem, Seen, str]) -> None:
    system, _, run = told
    exchange = system.debug.show(run)["run"]

    first = system.debug.lens(f"{exchange[:8]}@reply")
    turn = system.debug.lens(f"{run}@turn:2")

    assert first["run"] == system.debug.lens(run)["run"] == system.debug.lens(exchange)["run"] == run
    assert (turn["sessionKey"], first["sessionKey"]) == (RESEARCH, RESEARCH)
    assert turn["place"]["position"] > first["place"]["position"]
    with pytest.raises(ToolRefused, match="no agent was asked for that"):
        system.debug.lens(f"{run}@turn:3")
    with pytest.raises(ToolRefused, match="names no place"):
        system.debug.lens(f"{run}@noon")


@pytest.mark.clause("LENS-1")
def test_two_runs_are_compared_by_what_the_other_had_not_seen(told: tuple[SessionSystem, Seen, str]) -> None:
    system, _, run = told
    turn = system.debug.lens(f"{run}@turn:2", than=f"{run}@reply")
    assert [message["id"] for message in turn["fresh"]] == [
        message["id"] for message in (*turn["messages"], turn["message"])[1:]
    ]
    assert system.debug.lens(run, than=run)["fresh"] == []


@pytest.mark.clause("LENS-1", "LENS-2")
def test_a_run_of_another_session_or_of_before_a_reset_has_seen_nothing_of_it(log_url: str) -> None:
    """Of one session id the messages before are known to be the same without a look; of others they are not."""
    agents = {"main": lambda _: "fine", "desk": lambda _: "fine"}
    with SessionSystem(log_url, agents=agents, config=LISTED) as system:

        def runs(agent: str = "main") -> list[str]:
            return [
                system.inbound(
                    channel="x", chat_id="1", sender="ann", agent_id=agent, text=f"and {number}?", wait=20
                )["runId"]
                for number in range(3)
            ]

        first = runs()
        system.gateway.call("sessions.reset", {"key": MAIN})
        second, elsewhere = runs(), runs("desk")

        for one, other in ((second, first), (first, second), (first, elsewhere), (elsewhere, second)):
            lens = system.debug.lens(one[-1], than=other[-1])
            assert len(lens["messages"]) == 4
            assert lens.get("fresh") == [*lens["messages"], lens["message"]]


@pytest.mark.clause("LENS-1", "HIST-4")
def test_a_stranger_reads_no_secrets(told: tuple[SessionSystem, Seen, str]) -> None:
    system, _, run = told
    assert SECRET in str(as_session(system, RESEARCH).lens(f"{run}@turn:2", dialect="prompt"))
    for dialect in ("prompt", "openai", "anthropic", "json"):
        lens = as_session(system, DESK).lens(f"{run}@turn:2", dialect=dialect)
        assert lens["asRecorded"]
        assert {name for name, value in lens.items() if SECRET in str(value)} == set()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"run": "nobody"}, "no exchange, spawn or run"),
        ({"attempt": 2}, "attempts 1 to 1"),
        ({"attempt": 0}, "attempt"),
    ],
)
def test_what_there_is_none_of_is_refused(
    told: tuple[SessionSystem, Seen, str], given: dict[str, Any], said: str
) -> None:
    system, _, run = told
    with pytest.raises(ToolRefused, match=said):
        system.debug.lens(**{"run": run, **given})


@pytest.mark.clause("LENS-1", "ERASE-1")
def test_what_was_erased_is_not_as_recorded_and_says_so(log_url: str) -> None:
    with SessionSystem(log_url, agents={"main": lambda _: "fine"}, channels={"x": MemoryChannel()}) as system:
        run = system.inbound(channel="x", chat_id="1", text="my number is 7", sender="ann", wait=20)["runId"]
        wait_for(system, DeliveryDone)
        said = system.debug.lens(run)["message"]
        system.erase(MAIN, message_ids=[said["id"]])

        lens = system.debug.lens(run)

        assert not lens["asRecorded"]
        assert "erased" in lens["problem"]
        assert "my number" not in str(lens)


@pytest.mark.clause("LENS-1", "E1")
@pytest.mark.parametrize("golden", golden_logs(), ids=lambda golden: f"{golden.version}-{golden.name}")
def test_runs_of_every_release_rebuild_to_their_hash(golden: GoldenLog, tmp_path: Path) -> None:
    """Before: a message that came between the reading of a context and its run's start made them differ."""
    with open_log(golden.unpack(tmp_path)) as log:
        events = log.debug.view.log.all()
        started = [item.event for item in events if isinstance(item.event, RunStarted)]
        seen = [log.debug.lens(one.run_id, attempt=one.attempt) for one in started]
    assert [one["run"] for one in seen if not one["asRecorded"]] == []
    assert [one["run"] for one in seen if one["tools"] is None] == []
