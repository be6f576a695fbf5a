"""What a log holds when memory ran out under its process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.sqlite.log import SqliteLog
from support.paths import TESTS

# The interpreter's own switch for failing allocations; not every build has it.
pytest.importorskip("_testcapi")

CHILD = TESTS / "support" / "processes" / "starved_child.py"
LAST = 2000
"""No append makes as many allocations."""
STUCK_S = 10


def starve(log: Path, acks: Path, first: int, step: int) -> int:
    """Run the child to its end, or to where it died; return where to go on."""
    paths = [str(TESTS), *sys.path]
    child = subprocess.Popen(
        [sys.executable, str(CHILD), str(log), str(acks), str(first), str(LAST), str(step)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        said, _ = child.communicate(timeout=STUCK_S)
    except subprocess.TimeoutExpired:  # a library went round in circles: that acknowledges nothing either
        child.kill()
        said, _ = child.communicate()
    return LAST if child.returncode == 0 else int(said.split()[-1]) + step


@pytest.mark.clause("D6")
@pytest.mark.parametrize(
    "step", [293, pytest.param(13, marks=[pytest.mark.nightly, pytest.mark.timeout(600)])]
)
def test_what_was_acknowledged_while_memory_ran_out_is_stored(tmp_path: Path, step: int) -> None:
    path, acks = tmp_path / "log.db", tmp_path / "acks"
    place = 1
    while place < LAST:
        place = starve(path, acks, place, step)

    acknowledged = acks.read_text().split()
    with SqliteLog(path) as log:
        stored = [event.id for event in log.all()]
        report = verify_log(log)
    assert set(acknowledged) <= set(stored)
    assert len(stored) == len(set(stored))
    assert report.counts == {}
    assert acknowledged
