"""Places on the command line: the state at one, what differs between two, and stories as far as they had come."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem
from support.doors.command_line import DemoLog, ran
from support.golden_logs import GoldenLog


@pytest.fixture(scope="module")
def exchange(demo_log: DemoLog) -> str:
    found = ran("runs", "--kind", "exchange", "--limit", "1", "--store", demo_log.path, "--json").json
    return str(found["runs"][0]["id"])


def answer(demo_log: DemoLog, *tokens: object) -> Any:
    done = ran(*tokens, "--store", demo_log.path, "--json")
    return done.json | {"exit": done.exit_code}


@pytest.mark.clause("PLACE-1", "PLACE-3", "PLACE-5")
def test_the_state_of_a_run_is_shown_where_it_was_by_the_beginning_of_its_id(
    demo_log: DemoLog, exchange: str
) -> None:
    short = exchange[:8]
    shown = ran("state", short, "--at", f"{short}@turn:2", "--store", demo_log.path).out
    found = answer(demo_log, "state", short, "--at", f"{short}@turn:2")

    assert shown.startswith("after turn 2: research has answered, main has not yet")
    assert f"next: #{found['next']['position']}  main is asked for turn 3" in shown
    assert set(found["place"]) == {"position", "eventId", "timeMs", "text"}
    assert [one["turns"] for one in found["exchanges"]] == [2]
    assert answer(demo_log, "state", short, "--at", f"event:{found['place']['eventId']}") == found


@pytest.mark.clause("PLACE-3")
def test_what_differs_between_two_places_is_shown_by_path(demo_log: DemoLog, exchange: str) -> None:
    between = ("--from", f"{exchange}@turn:1", "--to", f"{exchange}@turn:2")
    found = answer(demo_log, "state", "research", *between)
    shown = ran("state", "research", *between, "--store", demo_log.path).out

    assert set(found) == {"from", "to", "changes", "exit"}
    turns = {"path": f"exchanges/{exchange}/turns", "before": 1, "after": 2}
    assert turns in found["changes"]
    assert f"exchanges/{exchange[:8]}/turns  1 → 2" in shown
    assert "nothing → session agent:main:main: Does that hold for a van of 3.2 tonnes" in shown


@pytest.mark.clause("PLACE-2")
@pytest.mark.parametrize("command", [("state",), ("sessions",), ("history", "main"), ("replay", "main")])
def test_every_command_takes_the_same_places_and_refuses_what_is_none(
    demo_log: DemoLog, exchange: str, command: tuple[str, ...]
) -> None:
    position = answer(demo_log, "state", "--at", f"{exchange}@reply")["place"]["position"]
    for place in (position, "-3", "head", f"{exchange[:8]}@reply", f"{exchange}@turn:2-1"):
        assert answer(demo_log, *command, "--at", place)["exit"] == 0
    refused = answer(demo_log, *command, "--at", "noon")
    assert (refused["exit"], refused["code"]) == (1, "invalid_request")
    assert "RUN@turn:3" in refused["error"]


@pytest.mark.clause("PLACE-3")
def test_a_story_is_told_as_far_as_it_had_come(demo_log: DemoLog, exchange: str) -> None:
    whole = answer(demo_log, "replay", exchange)
    early = answer(demo_log, "replay", exchange, "--at", f"{exchange}@turn:2")
    place = answer(demo_log, "state", "--at", f"{exchange}@turn:2", "--messages", "0")["place"]

    assert (whole["state"], early["state"], early["turns"]) == ("closed", "open", 2)
    assert early["beats"] == whole["beats"][: len(early["beats"])]
    assert max(beat["position"] for beat in early["beats"]) <= place["position"]
    assert answer(demo_log, "replay", exchange, "--at", "1")["code"] == "invalid_request"


@pytest.mark.clause("PLACE-3")
def test_the_story_of_a_session_is_read_as_far_as_the_place(
    demo_log: DemoLog, monkeypatch: pytest.MonkeyPatch, rows_read: Counter[str]
) -> None:
    """The whole session was read for any place of it: a second, of 34,000 events (issue 10)."""
    monkeypatch.setattr("intersession.cli.commands.replay._PAGE", 4)
    whole = answer(demo_log, "replay", "main")["beats"]
    head = answer(demo_log, "state", "--messages", "0")["place"]["position"]
    own = rows_read["session:agent:main:main"]

    for place in range(whole[0]["position"], head + 1, 5):
        rows_read.clear()
        early = answer(demo_log, "replay", "main", "--at", place)["beats"]
        assert early == [beat for beat in whole if beat["position"] <= place]
        assert rows_read["session:agent:main:main"] <= own
    rows_read.clear()
    answer(demo_log, "replay", "main", "--at", whole[0]["position"])
    assert rows_read["session:agent:main:main"] <= 4 < own // 4
    assert not [stream for stream in rows_read if stream.startswith(("exchange:", "delivery:", "spawn:"))]


@pytest.mark.clause("LENS-1")
def test_a_lens_reads_a_long_transcript_once(tmp_path: Path, rows_read: Counter[str]) -> None:
    """In a model's dialect, and held against another run, it was read from the log twice (issue 10)."""
    path = tmp_path / "long.db"
    with SessionSystem(path, agents={"main": lambda _: "fine"}) as system:
        runs = [
            system.inbound(channel="x", chat_id="1", text="and now?", sender="ann", wait=20)["runId"]
            for _ in range(60)
        ]

    def lens(*more: str) -> int:
        rows_read.clear()
        assert ran("lens", runs[-1], *more, "--store", path).exit_code == 0
        return rows_read["session:agent:main:main"]

    once = lens()
    assert once > 170
    assert [lens("--dialect", dialect) for dialect in ("openai", "anthropic", "prompt")] == [once] * 3
    assert lens("--than", runs[0]) < once + 20


@pytest.mark.clause("PLACE-1", "PLACE-2")
@pytest.mark.parametrize("command", ["state", "show", "replay"])
def test_a_run_and_a_place_of_it_are_typed_as_one(demo_log: DemoLog, exchange: str, command: str) -> None:
    place = f"{exchange[:8]}@turn:2"

    as_one = answer(demo_log, command, place)

    assert as_one == answer(demo_log, command, exchange, "--at", place)
    assert as_one["exit"] == 0
    twice = answer(demo_log, command, place, "--at", "head")
    assert (twice["exit"], twice["code"]) == (1, "invalid_request")
    assert "is a place already, leave the other one out" in twice["error"]
    for nowhere in (f"{exchange}@turn:9", "research@turn:1"):
        assert answer(demo_log, command, nowhere)["code"] == "invalid_request"


@pytest.mark.clause("PLACE-3", "LENS-3")
def test_an_imported_run_is_shown_at_each_place_and_says_what_was_not_recorded(tmp_path: Path) -> None:
    store = GoldenLog("0.1.0", "restricted").unpack(tmp_path)
    run = ran("runs", "--kind", "exchange", "--store", store, "--json").json["runs"][0]
    name = run["id"][:8]

    assert ran("show", f"{name}@turn:1", "--store", store).out.startswith("after turn 1: main has answered")
    for at, is_open in (("start", True), ("turn:1", True), ("end", False)):
        stood = ran("state", run["id"], "--at", f"{name}@{at}", "--store", store, "--json").json
        assert stood["open"]["exchanges"] == ([run["id"]] if is_open else []), at
    told = ran("replay", f"{name}@turn:1", "--store", store).out
    assert ("not over yet" in told, "the next start goes on" in told) == (True, False)
    for typed in (name, f"{name}@turn:1", f"{name}@start", run["runId"]):
        found = ran("lens", typed, "--store", store)
        assert (found.exit_code, found.err) == (0, "")
        assert "imported: what had been said up to there is as the source kept it" in found.out
        assert "system context\n  (not recorded)" in found.out
    assert ran("show", run["runId"], "--store", store, "--json").json["run"] == run["id"]
