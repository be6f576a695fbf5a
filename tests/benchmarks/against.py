"""`python -m tests.benchmarks against COMMIT`: this tree beside another commit, by turns, on one processor."""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from benchmarks.core import PARTS
from benchmarks.figures import Figure, progress

HERE = Path(__file__).resolve().parents[2]
NAME = "against"
ROUNDS = 3
TINY: Mapping[str, float] = {"rounds": 1, "scale": 0.01}
_PACKAGES = ("actors", "events", "projections", "tests")


class Row(NamedTuple):
    """One figure of one tree."""

    name: str
    unit: str
    value: float


def measure(other: str, *, rounds: float = ROUNDS, scale: float = 1.0) -> list[Figure]:
    """Measure both trees part by part, the least of some rounds each. The other one is a commit, or a folder that has one.

    What can't be measured in the other one has no ratio.

    Raises:
        LookupError: there is no such commit.
    """
    with tempfile.TemporaryDirectory(prefix="against-") as folder:
        there = Path(other)
        if not there.is_dir():
            there = Path(folder)
            _extract(other, there)
        figures: list[Figure] = []
        for part in PARTS:
            ours, theirs = dict[str, Row](), dict[str, Row]()
            for turn in range(int(rounds)):
                progress(f"{part}, round {turn + 1} of {int(rounds)}")
                for tree, found in ((there, theirs), (HERE, ours)):
                    for row in _rows(tree, part, scale):
                        found[row.name] = min(row, found.get(row.name, row), key=lambda each: each.value)
            figures += [_beside(row, theirs, other) for row in ours.values()]
    return figures


def _beside(row: Row, theirs: Mapping[str, Row], other: str) -> Figure:
    their = theirs.get(row.name)
    ratios = {other: row.value / their.value} if their is not None and their.value else {}
    return Figure(benchmark=NAME, name=row.name, value=row.value, unit=row.unit, ratios=ratios)


def _extract(commit: str, folder: Path) -> None:
    command = ["git", "-C", str(HERE), "archive", commit]
    archive = subprocess.run(command, capture_output=True, check=False)
    if archive.returncode:
        raise LookupError(f"{commit} is no commit here: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")


def _rows(tree: Path, part: str, scale: float) -> Sequence[Row]:
    """Run one part in a process of its own, with the packages of a tree, on the first processor that we may use."""
    made = subprocess.run(
        [sys.executable, str(HERE / "tests" / "benchmarks" / "core.py"), part, str(scale)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(tree / each) for each in _PACKAGES)},
        preexec_fn=_bind,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        progress(f"{part} can't be measured there: {made.stderr.strip().splitlines()[-1]}")
    return [Row(*json.loads(line)) for line in made.stdout.splitlines()]


def _bind() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
