"""Ping-pongs and waited sends beside what people would use instead: each in an environment of its own, all in turns, in one run.

An environment is made when it is first needed, in `$XDG_CACHE_HOME/intersession-benchmarks` (`~/.cache`), from the index that pip is
set up with. Where that can't be done, the contender is left out, in words. A slower disk is a library that is loaded into each
contender alike and adds a time to each `fsync` and `fdatasync`; it needs a C compiler.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.figures import Figure

NAME = "contest"
PAIRS = (1, 8, 64)
SLOWER_MS = (1, 5)
ROUNDS = 3
TESTS = Path(__file__).parents[1]
SLOW_SYNC = Path(__file__).with_name("rivals") / "slow_sync.c"
PATIENCE_S = 600.0
OURS, RAW, ROWS, PLAIN = (
    "Intersession",
    "raw sqlite3",
    "raw sqlite3, our rows and commits",
    "pykka + eventsourcing",
)


class Contender(NamedTuple):
    """Who takes part: a module of `rivals/`, and what has to be installed for it (nothing: our own environment will do)."""

    name: str
    module: str
    packages: tuple[str, ...] = ()


CONTENDERS = (
    Contender(OURS, "ours_pairs"),
    Contender(RAW, "raw_pairs"),
    Contender(ROWS, "rows_pairs"),
    Contender(PLAIN, "plain_pairs"),
    Contender(
        "LangGraph, SqliteSaver, durability sync",
        "langgraph_pairs",
        ("langgraph", "langgraph-checkpoint-sqlite"),
    ),
    Contender("DBOS on SQLite", "dbos_pairs", ("dbos",)),
)


class Task(NamedTuple):
    """What all do: so many pairs at once, so many exchanges in all, each of so many turns, on a disk so much slower."""

    pairs: int
    exchanges: int
    turns: int = 7
    slower_ms: int = 0

    @property
    def name(self) -> str:
        what = f"ping-pong, {self.pairs} pairs" if self.turns > 1 else f"waited sends, {self.pairs} senders"
        return what + (f", a sync {self.slower_ms} ms slower" if self.slower_ms else "")


def tasks(exchanges: int, most: int) -> Iterator[Task]:
    """Return all tasks of at most so many exchanges, and so many pairs at once."""
    at_once = [pairs for pairs in PAIRS if pairs <= most]
    for pairs in at_once:
        yield Task(pairs, min(exchanges, 32 * pairs))
    for senders in sorted({at_once[0], at_once[-1]}):
        yield Task(senders, min(4 * exchanges, 64 * senders), turns=1)
    for slower_ms in SLOWER_MS if len(at_once) > 1 else ():
        for pairs in at_once:
            yield Task(pairs, min(exchanges, 8 * pairs), slower_ms=slower_ms)


def measure(
    directory: Path, *, exchanges: int = 256, rounds: int = ROUNDS, most: int = PAIRS[-1]
) -> list[Figure]:
    """Let all do each task in turns; the best of the rounds counts, for whatever else the machine does makes a turn slower."""
    slow_sync = _compiled(directory)
    figures: list[Figure] = []
    pythons = {one: python_of(one) for one in CONTENDERS if most > 1 or not one.packages}
    for task in tasks(exchanges, most):
        if task.slower_ms and slow_sync is None:
            continue
        best: dict[str, Mapping[str, float]] = {}
        for _ in range(1 if task.slower_ms else rounds):
            with tempfile.TemporaryDirectory(dir=directory) as folder:
                for one, python in pythons.items():
                    if python is not None and not (task.turns == 1 and one.name == ROWS):
                        took = run_one(one, python, task, Path(folder), slow_sync)
                        best[one.name] = better(best.get(one.name), took)
        figures += _figures(task, best)
    return figures


def better(one: Mapping[str, float] | None, other: Mapping[str, float]) -> Mapping[str, float]:
    """Return the better of each of two contenders' figures."""
    if one is None:
        return other
    return {
        name: max(one[name], value) if name == "rate" else min(one[name], value)
        for name, value in other.items()
    }


def _figures(task: Task, best: Mapping[str, Mapping[str, float]]) -> Iterator[Figure]:
    for name, took in best.items():
        others = {other: found for other, found in best.items() if other != name} if name == OURS else {}
        by_time = task.turns == 1 and task.pairs == 1
        yield Figure(
            benchmark=NAME,
            name=f"{task.name}: {name}",
            value=took["p50_ms"] if by_time else took["rate"],
            unit="ms, p50" if by_time else "turns/s" if task.turns > 1 else "sends/s",
            cpu_ms=took["cpu_ms"],
            kib=took["kib"],
            ratios={
                other: took["p50_ms"] / found["p50_ms"] if by_time else took["rate"] / found["rate"]
                for other, found in others.items()
            },
        )


def run_one(
    one: Contender, python: Path, task: Task, folder: Path, slow_sync: Path | None = None, **more: str
) -> Mapping[str, float]:
    """Have a contender do a task in a folder, told `more` than its sizes, and return what it took."""
    directory = folder / one.module
    directory.mkdir()
    sizes = {
        "pairs": task.pairs,
        "exchanges": task.exchanges,
        "turns": task.turns,
        "source": str(folder / "ours_pairs"),
        **more,
    }
    environment = dict(os.environ)
    environment["PYTHONPATH"] = (
        str(TESTS) if one.packages else os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    )
    if task.slower_ms and slow_sync is not None:
        environment |= {"LD_PRELOAD": str(slow_sync), "SLOW_SYNC_US": str(1000 * task.slower_ms)}
    command = [str(python), "-m", f"benchmarks.rivals.{one.module}", str(directory), json.dumps(sizes)]
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    if ended.returncode:
        raise RuntimeError(f"{one.name} failed at {task.name}: {ended.stderr[-2000:]}")
    took: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return took


def python_of(one: Contender) -> Path | None:
    """Return the interpreter of a contender's environment, made if need be; None where it can't be made."""
    if not one.packages:
        return Path(sys.executable)
    name = hashlib.sha256(" ".join((sys.version, *one.packages)).encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "intersession-benchmarks"
    place = cache / f"{one.packages[0]}-{name}"
    python, whole = place / "bin" / "python", place / "whole"
    if not whole.exists():
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(place)],
            [str(python), "-m", "pip", "install", "-q", *one.packages],
        ):
            if not _ran(command):
                sys.stderr.write(f"{one.name} is left out: {' '.join(one.packages)} could not be installed\n")
                return None
        whole.touch()
    return python


def _compiled(directory: Path) -> Path | None:
    """Return the library that makes syncs slower; None where there is no compiler."""
    library = directory / "slow_sync.so"
    if _ran(["cc", "-shared", "-fPIC", "-O2", str(SLOW_SYNC), "-o", str(library), "-ldl"]):
        return library
    sys.stderr.write("slower disks are left out: there is no C compiler `cc`\n")
    return None


def _ran(command: Sequence[Any]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE_S).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
