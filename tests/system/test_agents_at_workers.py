"""What tests say of exchanges, chains, spawns, holds and budgets, with every agent at a worker (I6)."""

import os
import subprocess
import sys

import pytest

from support.paths import ROOT

OF_THE_PROCESS = (
    # These are about an agent that shares its process with the writer: its doors, its clock, its garbage, its threads.
    "by_a_door_of_the_system or thread_of_an_agents_own or task_takes_in or systems_actor "
    "or garbage or asks_once_for_its_target or rule_that_says_nothing or wall_clock_of_a_chain "
    "or held_counts_for_no_limit or in_what_an_agent_says_it_called "
    # What a stop cuts off in the process goes on at a worker.
    "or rule_that_was_asked_when_the_process_ended or hold_outlives_the_process"
)
EVERY_DAY = ("tests/system/test_budgets.py", "tests/system/test_send.py")
AT_NIGHT = (
    "tests/system/test_chain_limits.py",
    "tests/system/test_compaction.py",
    "tests/system/test_generations.py",
    "tests/system/test_holds.py",
    "tests/system/test_loop_and_announce.py",
    "tests/system/spawn",
)


@pytest.mark.parametrize(
    "files",
    [pytest.param(EVERY_DAY, marks=pytest.mark.ci), pytest.param(AT_NIGHT, marks=pytest.mark.nightly)],
    ids=["ci", "nightly"],
)
@pytest.mark.clause("WORK-6")
@pytest.mark.timeout(1_200)
@pytest.mark.sqlite("each of the tests opens a log of its own")
def test_the_same_is_so_of_agents_at_workers(files: tuple[str, ...]) -> None:
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "1",
            "-p",
            "support.at_workers",
            "-k",
            f"not ({OF_THE_PROCESS})",
            *files,
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout[-4_000:] + ran.stderr[-2_000:]
