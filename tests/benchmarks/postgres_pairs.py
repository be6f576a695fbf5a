"""Ping-pongs on PostgreSQL, beside DBOS on the same server, by turns in one run.

DBOS has an environment of its own, as in the contest; where that can't be made it is left out, in words.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from benchmarks.contest import OURS, PAIRS, ROUNDS, Contender, Task, better, python_of, run_one
from benchmarks.figures import Figure
from support.postgres.server import postgres_server

NAME: Final = "postgres-pairs"
DBOS: Final = "DBOS"
CONTENDERS: Final = (
    Contender(OURS, "ours_pairs"),
    Contender(DBOS, "dbos_pairs", ("dbos",)),
)


def measure(
    directory: Path, *, exchanges: int = 256, rounds: int = ROUNDS, most: int = PAIRS[-1]
) -> list[Figure]:
    """Let both talk in turns; the best of the rounds counts, for whatever else the machine does makes a turn slower."""
    pythons = {one: python_of(one) for one in CONTENDERS if most > 1 or not one.packages}
    figures: list[Figure] = []
    with postgres_server() as server:
        for task in (Task(pairs, min(exchanges, 32 * pairs)) for pairs in PAIRS if pairs <= most):
            best: dict[str, Mapping[str, float]] = {}
            for _ in range(rounds):
                with tempfile.TemporaryDirectory(dir=directory, prefix="pairs_") as folder:
                    for one, python in pythons.items():
                        if python is not None:
                            took = run_one(one, python, task, Path(folder), url=server.url)
                            best[one.name] = better(best.get(one.name), took)
            figures += [
                Figure(
                    benchmark=NAME,
                    name=f"{task.name}: {name}",
                    value=took["rate"],
                    unit="turns/s",
                    cpu_ms=took["cpu_ms"],
                    ratios={
                        other: took["rate"] / found["rate"]
                        for other, found in best.items()
                        if name == OURS != other
                    },
                )
                for name, took in best.items()
            ]
    return figures
