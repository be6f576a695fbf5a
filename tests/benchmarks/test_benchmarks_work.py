"""The benchmarks stay alive: each runs, at a size at which its figures mean nothing."""

import json
import re
from pathlib import Path

import pytest

from benchmarks.against import HERE
from benchmarks.logs import open_sessions, session_key
from benchmarks.run import BENCHMARKS, ON_DEMAND, TINY, main, measure
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.sqlite.log import SqliteLog
from support.openclaw.client import npm

SLOW = {
    "contest",
    "browser",
    "postgres",
    "postgres-pairs",
    "postgres-reading",
    "scaling",
    "workers",
    *ON_DEMAND,
}


@pytest.mark.parametrize(
    "name",
    # The contest starts a process for each contender, the others a browser, a server and the original.
    [
        pytest.param(name, marks=[pytest.mark.nightly, pytest.mark.timeout(1_500)] if name in SLOW else [])
        for name in BENCHMARKS
    ],
)
@pytest.mark.ci
def test_a_benchmark_gives_figures(name: str, tmp_path: Path) -> None:
    if name in ON_DEMAND and npm() is None:
        pytest.skip("npm is needed to install the original")
    figures = measure(name, tmp_path, **TINY[name])

    assert figures
    assert all(figure.value >= 0 for figure in figures)


@pytest.mark.ci
def test_this_tree_is_measured_beside_another_commit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["against", str(HERE), "--tiny"]) == 0

    printed = capsys.readouterr()
    for each in ("a turn, 64 pairs", "events a turn", "an append with views, 512 writing", "modules"):
        assert re.search(rf"\| {each} +\|.* of {re.escape(str(HERE))} +\|", printed.out), printed.err


def test_a_commit_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["against", "no-such-commit"])

    assert ended.value.code == 2
    assert "no-such-commit is no commit here" in capsys.readouterr().err


@pytest.mark.nightly
@pytest.mark.clause("O8")
def test_whatever_was_open_in_a_long_log_is_carried_on(tmp_path: Path) -> None:
    # Each of the fifty that were open has ended, or the benchmark fails; how long that took is its figure.
    assert measure("recovery", tmp_path)


@pytest.mark.nightly
@pytest.mark.clause("V2")
def test_a_log_of_a_hundred_thousand_events_is_verified_whole(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        open_sessions(log, [session_key(number) for number in range(1000)], messages=99)
        report = verify_log(log)

    # How long that takes is a figure of the benchmark `audit`.
    assert (report.ok, report.events, report.streams) == (True, 100_000, 1000)


@pytest.mark.ci
def test_what_is_printed_as_json_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--tiny", "--json", "--in", str(tmp_path)]) == 0

    printed = json.loads(capsys.readouterr().out)
    assert {figure["benchmark"] for figure in printed["figures"]} == {"audit"}
    assert printed["machine"]["processors"] > 0


def test_a_benchmark_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["appendds"])

    assert "'appendds'" in capsys.readouterr().err


def test_what_can_not_be_installed_is_left_out_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert measure("beside-openclaw", tmp_path) == []
    (line,) = capsys.readouterr().err.splitlines()
    assert "OpenClaw could not be installed: there is no npm" in line
