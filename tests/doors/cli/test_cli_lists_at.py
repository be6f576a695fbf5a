"""`runs --at` and `deliveries --at` list what had begun by a place, as it stood there."""

from typing import Any

import pytest

from intersession import open_log
from support.doors.command_line import DemoLog, ran


def listed(demo_log: DemoLog, command: str, *given: object) -> list[Any]:
    found = ran(command, "--store", demo_log.path, "--json", *given)
    assert found.exit_code == 0, found.err
    return list(found.json[command])


@pytest.mark.ci
@pytest.mark.clause("FIND-2", "PLACE-3")
def test_at_every_place_the_lists_have_what_had_begun_and_is_open_there(demo_log: DemoLog) -> None:
    with open_log(demo_log.path) as log:
        head = log.log.head()
        for place in range(0, head + 1, 9):
            open_then = log.debug.state(at=place)["open"]
            begun = {row["id"] for row in listed(demo_log, "runs", "--until", place)}
            runs = listed(demo_log, "runs", "--at", place)
            assert {row["id"] for row in runs} == begun
            unfinished = {row["id"] for row in listed(demo_log, "runs", "--at", place, "--open")}
            assert unfinished == {row["id"] for row in runs if row["state"] == "open"}
            flows = {row["id"] for row in runs if row["kind"] != "run" and row["state"] == "open"}
            assert flows == {*open_then["exchanges"], *open_then["spawns"]}
            sent = listed(demo_log, "deliveries", "--at", place)
            assert {row["id"] for row in sent} == {
                row["id"] for row in listed(demo_log, "deliveries", "--until", place)
            }
            pending = listed(demo_log, "deliveries", "--at", place, "--pending")
            assert {row["id"] for row in pending} == set(open_then["deliveries"])
        assert listed(demo_log, "runs", "--at", "head") == listed(demo_log, "runs")


@pytest.mark.clause("FIND-2", "PLACE-2")
def test_how_a_run_stood_is_said_and_filters_hold_there(demo_log: DemoLog) -> None:
    run = demo_log.exchange[:8]
    at = ("--at", f"{run}@turn:2")

    (exchange,) = listed(demo_log, "runs", *at, "--kind", "exchange")
    assert (exchange["turns"], exchange["state"], "loopEnd" in exchange) == (2, "open", False)
    shown = ran("runs", *at, "--kind", "exchange", "--store", demo_log.path).out
    assert "2 turns; not over yet" in shown
    assert "the next start goes on" not in shown
    assert listed(demo_log, "runs", *at, "--end", "turn_limit") == []
    assert listed(demo_log, "runs", "--at", "head", "--end", "turn_limit") != []
    assert listed(demo_log, "runs", *at, "--words", "before noon") == []
    assert listed(demo_log, "runs", "--words", "before noon") != []
    assert len(listed(demo_log, "deliveries", *at, "--limit", 1)) == 1


def test_what_can_not_be_listed_there_is_said(demo_log: DemoLog) -> None:
    for command in ("runs", "deliveries"):
        nowhere = ran(command, "--at", "noon", "--store", demo_log.path)
        assert (nowhere.exit_code, nowhere.out) == (1, "")
        assert "RUN@turn:3" in nowhere.err
