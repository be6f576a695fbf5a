"""Ping-pongs on PostgreSQL, beside DBOS on the same server, by turns in one run; also with a network of 1 and 5 ms between.

DBOS has an environment of its own, as in the contest; where that can't be made it is left out, in words.
"""

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks.contest import OURS, PAIRS, ROUNDS, Contender, Task, better, python_of, run_one
from benchmarks.figures import Figure, progress
from benchmarks.postgres import ROUND_TRIPS_MS, far_from
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
        for trip_ms in ROUND_TRIPS_MS if most > 1 else ROUND_TRIPS_MS[:1]:
            with ExitStack() as stack:
                url = server.url
                if trip_ms:
                    port = stack.enter_context(far_from(server, trip_ms))
                    url = f"postgresql://postgres@127.0.0.1:{port}/postgres?connect_timeout=30"
                for pairs in PAIRS:
                    if pairs <= most:
                        # A lone pair far away waits nearly all the time.
                        task = Task(pairs, min(exchanges, (32 if trip_ms < 5 else 4) * pairs))
                        best = _best(pythons, task, directory, rounds=rounds, url=url)
                        figures += _figures(best, f"{task.name}, {trip_ms} ms away")
    return figures


def _best(
    pythons: Mapping[Contender, Path | None], task: Task, directory: Path, *, rounds: int, url: str
) -> Mapping[str, Mapping[str, float]]:
    best: dict[str, Mapping[str, float]] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(dir=directory, prefix="pairs_") as folder:
            for one, python in pythons.items():
                if python is not None:
                    took = run_one(one, python, task, Path(folder), url=url)
                    best[one.name] = better(best.get(one.name), took)
    return best


def _figures(best: Mapping[str, Mapping[str, float]], where: str) -> list[Figure]:
    found = [
        Figure(
            benchmark=NAME,
            name=f"{where}: {name}",
            value=took["rate"],
            unit="turns/s",
            cpu_ms=took["cpu_ms"],
            ratios={
                other: took["rate"] / one["rate"] for other, one in best.items() if name == OURS != other
            },
        )
        for name, took in best.items()
    ]
    for figure in found:
        beside = "".join(f", {ratio:.2f} of {of}" for of, ratio in figure.ratios.items())
        progress(f"{figure.name}: {figure.value:,.0f} turns/s{beside}")
    return found
