"""`intersession replay --sealed` decides a run, or the whole log, again; `export-test` makes a test of that."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from intersession_actors.owners.exchange import rules
from support.doors.command_line import DemoLog, ran


@pytest.mark.clause("SEAL-3")
def test_the_demo_is_decided_as_it_was_as_a_whole_and_run_by_run(demo_log: DemoLog) -> None:
    whole = ran("replay", "--all", "--sealed", "--store", demo_log.path, "--json")

    assert whole.exit_code == 0
    assert set(whole.json) == {
        "run", "events", "decided", "given", "same", "walked", "notJudged", "firstDifference",
    }  # fmt: skip
    assert (whole.json["same"], whole.json["run"], whole.json["firstDifference"]) == (True, None, None)
    assert whole.json["decided"] > 0.9 * whole.json["events"]
    told = ran("replay", demo_log.exchange[:8], "--sealed", "--store", demo_log.path)
    assert told.exit_code == 0
    assert f"same: run {demo_log.exchange}" in told.out


@pytest.mark.clause("SEAL-2", "SEAL-3")
def test_a_rule_that_was_changed_is_exit_code_4_and_said_field_by_field(
    demo_log: DemoLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rules._end_loop
    monkeypatch.setattr(
        rules, "_end_loop", lambda state, now, _, **more: before(state, now, "aborted", **more)
    )

    told = ran("replay", demo_log.exchange, "--sealed", "--store", demo_log.path)

    assert told.exit_code == 4
    assert "different: run" in told.out
    assert "'aborted'" in told.out
    assert "the command was RunEnded" in told.out


@pytest.mark.clause("SEAL-3")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--all",), "--all goes with --sealed"),
        (("--sealed",), "name a run"),
        (("x", "--all", "--sealed"), "--all goes with --sealed"),
        (("x", "--sealed", "--steps"), "no option of the story"),
        ((), "name a run or a session"),
    ],
)
def test_what_can_not_be_meant_is_refused(demo_log: DemoLog, given: tuple[str, ...], said: str) -> None:
    told = ran("replay", *given, "--store", demo_log.path)

    assert told.exit_code == 2
    assert said in told.err


@pytest.mark.clause("SEAL-3")
def test_a_run_becomes_a_test_that_runs_elsewhere(demo_log: DemoLog, tmp_path: Path) -> None:
    test = tmp_path / "test_the_demo.py"
    written = ran("export-test", demo_log.exchange, "-o", str(test), "--store", demo_log.path, "--json")
    assert written.exit_code == 0, written.err
    assert set(written.json) == {"run", "test", "recording", "events"}
    again = ran("export-test", demo_log.exchange, "-o", str(test), "--store", demo_log.path)
    assert (again.exit_code, "exists already" in again.err) == (2, True)

    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test.name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 passed" in run.stdout


@pytest.mark.clause("SEAL-3")
def test_a_test_that_can_not_be_written_leaves_no_recording_behind(demo_log: DemoLog, tmp_path: Path) -> None:
    test = tmp_path / "test_the_demo.py"
    test.symlink_to(tmp_path / "nowhere" / "at_all.py")  # is not there, and can't be made

    done = ran("export-test", demo_log.exchange, "-o", str(test), "--store", demo_log.path)

    assert (done.exit_code, "can't be written" in done.err) == (2, True)
    assert [file.name for file in tmp_path.iterdir() if not file.is_symlink()] == []
