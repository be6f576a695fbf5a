"""Simulated systems break no law, whatever goes wrong round them; faults planted into the code are found."""

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from intersession_actors.errors import REFUSAL_CODES
from simulation.bugs import BUGS
from simulation.chance import typed
from simulation.faults import FAULTS, Tally
from simulation.seed import SEALED_EVERY, simulate
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

FOUND_BY = {
    "a1_spawns_are_outside_the_guard": 4,
    "a3_an_answer_is_given_up_at_once": 8,
    "a4_a_registration_cuts_off": 53,
    "a6_turns_come_to_whoever_has_the_key": 0,
    "a8_a_message_interrupts_before_it_is_accepted": 99,
    "a11_a_context_is_of_another_moment": 0,
    "a12_a_retry_is_judged_anew": 1314,
    "a17_deadlines_are_by_the_wall_clock": 27,
    "acknowledges_before_it_stores": 0,
    "draws_delivery_keys": 0,
    "has_no_fence": 8,
    "reads_nothing_back": 44,
    "forgets_where_a_view_is": 1,
    "skips_by_substring": 132,
    "carries_out_again_what_was_recorded_before": 13,
    "a_hold_stops_twice": 70,
    "starts_what_the_chain_cannot_pay": 105,
    "an_edit_of_an_announce_is_left_out": 26,
    "an_answer_stands_for_its_run": 16,
    "the_policy_is_asked_once": 366,
    "pauses_do_not_grow": 4,
    "what_is_denied_goes_out": 6,
    "an_announce_forgets_its_route": 0,
    "a_child_is_never_silent": 16,
    "a_child_that_failed_is_a_success": 2,
    "what_a_child_left_behind_is_lost": 4,
    "forgets_what_a_chain_has_used": 20,
    "hears_of_no_end_of_a_session": 1,
    "records_what_it_did_not_know": 0,
    "a_start_looks_at_no_chain": 22,
    "an_attempt_is_made_once": 0,
    "nobody_is_to_hear_of_a_failure": 0,
    "a_session_reads_another_clock": 0,
    "a_thread_stays_for_longer": 25,
    "an_attempt_is_younger_than_it_is": 85,
    "records_no_tools_that_were_left_out": 4,
    "records_no_time_of_a_session": 0,
    "sees_no_lineage": 17,
    "does_not_count_sub_agents": 4,
    "hears_of_no_setting_of_a_session": 6,
    "records_another_judgement": 1,
    "nobody_hears_an_answer": 0,
    "nobody_hears_of_a_failure": 0,
    "an_attempt_has_twice_its_time": 0,
    "a_hop_is_not_counted": 0,
    "a_chain_forgets_its_way": 4,
    "a_message_says_other_hops": 0,
    "a_child_is_opened_at_no_depth": 0,
}
"""A seed that finds each planted fault."""


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Let nobody format what agents that fail make the system say."""
    caplog.set_level(logging.CRITICAL)


@pytest.mark.clause(
    "C3", "C5", "SEAL-1", "SEAL-2", "O1", "O2", "O3", "O4", "O5", "O6", "O7", "L1", "L2", "L8"
)
@pytest.mark.parametrize("seed", every_day([*range(SEEDS), *KEPT], 0, 1, 32, 190, 5075))
def test_a_simulated_system_breaks_no_law(seed: int) -> None:
    outcome = simulate(seed, sealed=True)

    assert outcome.findings == [], command(outcome)


@pytest.mark.clause("C2")
@pytest.mark.parametrize(
    ("bug", "seed"),
    every_day(
        {bug: (bug, seed) for bug, seed in FOUND_BY.items()},
        "a6_turns_come_to_whoever_has_the_key",
        "acknowledges_before_it_stores",
        "draws_delivery_keys",
        "records_what_it_did_not_know",
    ),
)
def test_a_fault_that_is_planted_is_found(bug: str, seed: int) -> None:
    with BUGS[bug]():
        assert simulate(seed).findings


def test_each_planted_fault_has_a_seed_that_finds_it() -> None:
    assert FOUND_BY.keys() == BUGS.keys()


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
        found = simulate(FOUND_BY[bug])
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
