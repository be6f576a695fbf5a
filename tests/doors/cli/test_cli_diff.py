"""`intersession diff` says where two runs part, what changed in which words, and what came of each."""

from pathlib import Path

import pytest

from support.doors.command_line import DemoLog, ran
from support.story import MAIN, Story

TURN = {"turn", "kind", "a", "b"}


@pytest.mark.clause("DIFF-1", "DIFF-2")
def test_two_places_of_a_run_differ_in_the_turns_between(demo_log: DemoLog) -> None:
    run = demo_log.exchange[:8]

    same = ran("diff", run, run, "--store", demo_log.path)
    assert (same.exit_code, "no difference" in same.out) == (0, True)
    assert "= start, reply … end (11)" in same.out

    given = ("diff", f"{run}@turn:2", f"{run}@turn:4", "--store", demo_log.path)
    told = ran(*given)
    assert told.exit_code == 1
    assert "first difference: turn:3  #" in told.out
    assert "turn:3  main" in told.out
    assert "= turn:2" not in told.out
    assert "= turn:2  research" in ran(*given, "--all").out
    found = ran(*given, "--json").json
    assert set(found) == {"same", "firstDivergence", "turns", "totals", "a", "b"}
    assert set(found["firstDivergence"]) == {"turn", "kind", "place", "a", "b"}
    assert all(set(turn) >= TURN for turn in found["turns"])
    assert [turn["kind"] for turn in found["turns"]] == ["same"] * 4 + ["changed", "only_b", "only_b"]
    assert set(found["totals"]["a"]) == {
        "turns", "loopEnd", "end", "tokens", "costMicros", "durationMs", "deliveries",
    }  # fmt: skip


@pytest.mark.clause("DIFF-1", "DIFF-2")
def test_a_run_of_another_log_is_compared_by_what_it_means_and_exactly(
    demo_log: DemoLog, tmp_path: Path
) -> None:
    other = DemoLog(tmp_path / "other.db")
    given = ("diff", demo_log.exchange, other.exchange, "--store", demo_log.path, "--other", other.path)

    assert ran(*given).exit_code == 0
    exactly = ran(*given, "--exact", "--json")
    assert exactly.exit_code == 1
    assert exactly.json["firstDivergence"]["turn"] == "start"
    unknown = ran(
        "diff", demo_log.exchange, demo_log.exchange, "--store", demo_log.path, "--other", other.path
    )
    assert (unknown.exit_code, unknown.out) == (1, "")
    assert unknown.err.startswith("error (invalid_request): B: no exchange, spawn or run is called")


@pytest.mark.clause("DIFF-1")
def test_changed_words_are_marked_and_steer_no_terminal(tmp_path: Path) -> None:
    story = Story(tmp_path / "log.db")
    story.open()
    story.run(MAIN, "run-one", "Is it \x1b[31mopen?", "Up to 3.5 tonnes.\n\x1b]0;x\x07[red]")
    story.run(MAIN, "run-two", "Is it \x1b[31mopen?", "Up to 2.8 tonnes.\n\x1b]0;x\x07[red]")
    story.close()

    shown = ran("diff", "run-one", "run-two", "--store", tmp_path / "log.db")

    assert shown.exit_code == 1
    assert "text: Up to [-3.5-]{+2.8+} tonnes. ⏎ \\x1b]0;x\\x07[red]" in shown.out
    assert "\x1b" not in shown.out


@pytest.mark.clause("DIFF-1", "PLACE-2")
def test_what_is_no_run_is_refused_and_a_log_that_is_not_there_is_not_made(
    demo_log: DemoLog, tmp_path: Path
) -> None:
    refused = ran("diff", demo_log.exchange, "412", "--store", demo_log.path)
    assert (refused.exit_code, refused.out) == (1, "")
    assert "B: no exchange, spawn or run is called '412'" in refused.err
    none = tmp_path / "none.db"
    gone = ran("diff", demo_log.exchange, "x", "--store", demo_log.path, "--other", none)
    assert (gone.exit_code, none.exists()) == (3, False)
