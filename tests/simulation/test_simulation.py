"""Simulated systems break no law, whatever goes wrong round them; faults planted into the code are found."""

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from intersession_actors.rules.errors import REFUSAL_CODES
from simulation.bugs import BUGS
from simulation.chance import typed
from simulation.faults import FAULTS, Tally
from simulation.seed import SEALED_EVERY, simulate
from simulation.shown import KINDS, is_shown, seeds
from simulation.shrinking import command, shrunk
from simulation.table import (
    ENDS_ELSEWHERE,
    PASSED_ELSEWHERE,
    POINTS,
    REFUSED_ELSEWHERE,
    ends,
    expected,
    missing,
    table,
)
from support.every_day import every_day
from support.paths import DOCS, ROOT

# What a process had begun to await when it crashed, nobody awaits.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")

KEPT = [int(line.split()[0]) for line in Path(__file__).with_name("seeds.txt").read_text().splitlines()]
"""Seeds that failed once. They stay for ever."""

SEEDS = 20
EVERY_NIGHT = 20_000
"""What happens most seldom (a channel that opens a thread too slowly) happens in one of five hundred."""


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Let nobody format what agents that fail make the system say."""
    caplog.set_level(logging.CRITICAL)


@pytest.mark.clause(
    "C3",
    "C5",
    "SEAL-1",
    "SEAL-2",
    "O1",
    "O2",
    "O3",
    "O4",
    "O5",
    "O6",
    "O7",
    "L1",
    "L2",
    "L8",
    "DOOR-3",
    "STBY-3",
)
@pytest.mark.parametrize("seed", every_day([*range(SEEDS), *KEPT], 0, 1, 32, 190, 5075))
def test_a_simulated_system_breaks_no_law(seed: int) -> None:
    outcome = simulate(seed, sealed=True)

    assert outcome.findings == [], command(outcome)


@pytest.mark.clause("C2", "C8")
@pytest.mark.parametrize(
    "bug",
    every_day(
        [*BUGS],
        "a6_turns_come_to_whoever_has_the_key",
        "acknowledges_before_it_stores",
        "draws_delivery_keys",
        "records_what_it_did_not_know",
        "hears_of_no_end_of_a_session",
        "a_session_reads_another_clock",
        "does_not_count_sub_agents",
        "records_another_judgement",
    ),
)
def test_a_fault_that_is_planted_is_found(bug: str) -> None:
    assert is_shown("fault", bug)


def test_a_seed_is_written_down_for_all_that_is_planted() -> None:
    for kind, (_, names) in KINDS.items():
        assert seeds(kind).keys() == set(names)


@pytest.mark.ci
@pytest.mark.clause("C5", "SEAL-2")
def test_what_some_seeds_recorded_is_replayed_sealed_and_all_of_it_where_that_is_asked_for() -> None:
    replayed = [simulate(seed).tally.counts["replayed sealed"] for seed in range(SEALED_EVERY + 1)]

    assert replayed == [1, *[0] * (SEALED_EVERY - 1), 1]
    assert simulate(1, sealed=True).tally.counts["replayed sealed"] == 1


@pytest.mark.clause("C1")
def test_a_seed_is_the_same_again() -> None:
    assert simulate(3).trace == simulate(3).trace != simulate(4).trace


@pytest.mark.ci
def test_a_failing_seed_is_shrunk_to_what_it_needs() -> None:
    bug = "skips_by_substring"
    with BUGS[bug]():
        found = simulate(seeds("fault")[bug])
        small = shrunk(found, most=8)
        again = simulate(small.seed, list(map(typed, small.departures)))

    assert len(small.departures) < len(found.departures)
    assert (again.law, again.trace) == (found.law, small.trace)
    assert command(small, bug).startswith(
        f"python -m tests.simulation --seed {found.seed} --bug {bug} --keep '"
    )


def test_what_happens_too_seldom_is_named() -> None:
    tally = Tally()
    for name in expected():
        tally.counts[name] = 20
    tally.counts["crash S4"] = 19

    assert missing(tally, 20) == ["crash S4: 19"]
    assert "S4 19" in table(tally)
    assert {f"fault {fault}" for fault in FAULTS} - set(expected()) == {"fault reorder"}


def test_every_crash_point_of_the_code_is_counted_or_passed_elsewhere() -> None:
    """Refusals, ends and guards are those of the code by themselves (`table.py`)."""
    matrix = (DOCS / "reliability.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| ([A-Z]\d) \|.*\| named \|", matrix, re.MULTILINE)

    assert sorted(listed) == sorted({*POINTS, *PASSED_ELSEWHERE})
    assert not REFUSED_ELSEWHERE.keys() - set(REFUSAL_CODES)
    assert not ENDS_ELSEWHERE.keys() & set(ends())


@pytest.mark.nightly
@pytest.mark.clause("C3")
@pytest.mark.timeout(7_200)
def test_many_simulated_systems_break_no_law_and_everything_happens() -> None:
    command_line = [sys.executable, "-m", "tests.simulation", "--jobs", "2", "--at-least", "20", "--table"]
    subprocess.run([*command_line, "--seeds", str(EVERY_NIGHT)], cwd=ROOT, check=True)


@pytest.mark.nightly
@pytest.mark.clause("C1")
def test_a_seed_is_the_same_in_another_process_whatever_order_its_sets_have() -> None:
    traces = {
        subprocess.run(
            [
                sys.executable,
                "-c",
                "from simulation.seed import simulate; print([simulate(s).trace for s in range(100)])",
            ],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "99")
    }
    assert len(traces) == 1
