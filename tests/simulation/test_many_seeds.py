"""A run of many seeds shows how far it is, says what it has seen where it is stopped, and no seed can hold it up."""

import logging
import os
import pty
import signal
import subprocess
import sys
from subprocess import PIPE, Popen
from unittest.mock import patch

import pytest

from simulation import run
from simulation.faults import Tally
from simulation.seed import Outcome, simulate
from simulation.watching import Seen
from simulation.world import World
from support.paths import ROOT

MANY = [sys.executable, "-m", "tests.simulation", "--seeds", "100000", "--table"]


@pytest.mark.parametrize(
    ("number", "jobs"),
    [(signal.SIGINT, "2"), (signal.SIGTERM, "1"), (signal.SIGINT, "1"), (signal.SIGTERM, "2")],
)
@pytest.mark.ci
def test_a_run_that_is_stopped_says_what_it_had_seen(number: signal.Signals, jobs: str) -> None:
    with Popen([*MANY, "--jobs", jobs], cwd=ROOT, stdout=PIPE, stderr=PIPE, text=True) as running:
        assert running.stderr is not None
        first = running.stderr.readline()
        running.send_signal(number)
        told, _ = running.communicate()  # which no process of its own holds open any more

    assert first.startswith("of 100000: 1 seeds from 0 on, 0 failed")
    summary, *counted = told.splitlines()
    done = int(summary.split()[0])
    assert summary.endswith(f", stopped by {number.name} before {100_000 - done} others")
    assert any(line.startswith("fault: ") for line in counted)
    assert running.returncode == 128 + number


@pytest.mark.ci
def test_a_run_shows_a_bar_to_whoever_looks() -> None:
    ours, theirs = pty.openpty()
    with Popen([*MANY[:-3], "--seeds", "2"], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=theirs) as running:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 10_000):
                shown += piece
        except OSError:  # so a terminal says that nobody is at its other end any more
            pass
    os.close(ours)

    assert running.returncode == 0
    assert b"2/2" in shown


def test_a_seed_that_never_ends_is_a_finding() -> None:
    def never(*_: object, **__: object) -> Outcome:
        while True:
            pass

    with patch.object(run, "simulate", never), patch.object(run, "MOST_S", 0.05):
        outcome = run._timed(None, 7, sealed=False)

    assert (outcome.seed, outcome.law) == (7, "endless")


def test_a_system_that_comes_to_no_rest_is_a_finding_and_is_left() -> None:
    all_there = World._all_there

    def forever(world: World) -> None:
        while not world.findings:
            world.runtime._greenlets.give_way()

    def never_rests(self: World) -> None:
        all_there(self)
        self.runtime.spawn(lambda: forever(self))

    with patch.object(World, "_all_there", never_rests):
        assert simulate(0).law == "storm"


def test_a_run_keeps_count_of_what_is_seen() -> None:
    seen = Seen(first=5, seeds=10)
    tally = Tally()
    tally.add("fault", "power")
    for seed, seconds in ((5, 0.5), (6, 2.5), (7, 1.0)):
        seen.take(Outcome(seed, [], [], tally, "", seconds=seconds))

    assert seen.words().startswith("3 seeds from 5 on, 0 failed, ")
    assert seen.words().endswith(", slowest seed 6: 2.5 s")
    assert seen.tally.counts["fault power"] == 3


@pytest.mark.parametrize("quiet", ["--quiet", "--no-quiet"])
def test_what_the_system_itself_calls_a_fault_is_a_finding_also_where_nobody_is_shown_it(
    quiet: str, capsys: pytest.CaptureFixture[str]
) -> None:
    all_there = World._all_there

    def says(self: World) -> None:
        all_there(self)
        logging.getLogger("intersession.runtime").error("a word that must not be said")

    try:
        with (
            patch.object(World, "_all_there", says),
            patch.object(logging.getLogger(), "handlers", []),
            patch.object(logging, "lastResort", None),
        ):
            code = run.main(["--seeds", "1", "--no-shrink", quiet])
    finally:
        logging.disable(logging.NOTSET)

    assert code == 1
    assert "seed 0: told: a word that must not be said" in capsys.readouterr().out
