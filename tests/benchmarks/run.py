"""Runs the benchmarks, each in a process of its own, and prints their figures."""

import argparse
import multiprocessing
import os
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import (
    actors,
    against,
    appends,
    audit,
    beside_openclaw,
    browser,
    commands,
    contest,
    doors,
    event_loop,
    flood,
    forks,
    listing,
    oracle,
    pingpong,
    postgres,
    postgres_pairs,
    postgres_reading,
    reading,
    recovery,
    replaying,
    scaling,
    send,
    size,
    waking,
    workers,
)
from benchmarks.figures import Figure, table

BENCHMARKS: Mapping[str, Callable[..., list[Figure]]] = {
    "appends": appends.measure,
    "send": send.measure,
    "pingpong": pingpong.measure,
    "contest": contest.measure,
    "list": listing.measure,
    "history": reading.measure,
    "loop": event_loop.measure,
    "actors": actors.measure,
    "audit": audit.measure,
    "size": size.measure,
    "oracle": oracle.measure,
    "recovery": recovery.measure,
    "replay": replaying.measure,
    "waking": waking.measure,
    "flood": flood.measure,
    "doors": doors.measure,
    "forks": forks.measure,
    "browser": browser.measure,
    commands.NAME: commands.measure,
    postgres.NAME: postgres.measure,
    postgres_pairs.NAME: postgres_pairs.measure,
    postgres_reading.NAME: postgres_reading.measure,
    scaling.NAME: scaling.measure,
    workers.NAME: workers.measure,
    beside_openclaw.NAME: beside_openclaw.measure,
}

ON_DEMAND: frozenset[str] = frozenset({beside_openclaw.NAME})
"""What installs some 800 MB: run when it is named."""

LARGE: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "list-100000": ("list", {"sessions": 100_000}),
    "list-1000000": ("list", {"sessions": 1_000_000}),
    "size-1000000": ("size", {"sessions": 1_000_000, "messages": 1}),
    "size-10000000": ("size", {"sessions": 100_000, "messages": 99}),
    "history-1000000": ("history", {"messages": 1_000_000}),
    "browser-1000000": ("browser", {"events": 0, "long": 0, "log": 1_000_000}),
    "forks-1000000": ("forks", {"others": 500_000}),
}
"""Sizes that take minutes to make: run when they are named."""

TINY: Mapping[str, Mapping[str, int]] = {
    "appends": {"appends": 600},
    "postgres": {"seconds": 1, "rounds": 1},
    "postgres-pairs": {"exchanges": 1, "rounds": 1, "most": 1},
    "postgres-reading": {"sessions": 20, "messages": 60, "calls": 2},
    "send": {"sends": 10},
    "pingpong": {"exchanges": 2},
    "contest": {"exchanges": 1, "rounds": 1, "most": 1},
    "list": {"sessions": 80, "calls": 2},
    "history": {"messages": 200, "calls": 2},
    "loop": {"sends": 4, "at_once": 2},
    "actors": {"actors": 20},
    "audit": {"sessions": 2, "messages": 4},
    "size": {"sessions": 60, "messages": 2, "calls": 2},
    "oracle": {"pairs": 5},
    "recovery": {"sessions": 6, "messages": 2, "flows": 3},
    "replay": {"people": 1},
    "waking": {"messages": 20, "times": 2},
    "flood": {"messages": 5, "at_once": 3},
    "doors": {"calls": 5},
    "forks": {"events": 60, "others": 40, "times": 2},
    "scaling": {"exchanges": 1, "pairs": 1, "sessions": 1_000, "schemas": 2, "systems": 2},
    "workers": {"runs": 4, "turns": 8, "most": 2},
    "browser": {"events": 60, "long": 60, "log": 60, "times": 2},
    "commands": {"messages": 20, "sessions": 10, "calls": 1},
    "beside-openclaw": {"calls": 5, "sends": 1, "rounds": 1, "sessions": 40, "messages": 20},
}
"""Sizes at which they only show that they work."""


def measure(name: str, directory: Path, **sizes: int) -> list[Figure]:
    """Run one benchmark here, on files in a directory."""
    return BENCHMARKS[name](directory, **sizes)


def measure_apart(name: str, directory: Path | None, sizes: Mapping[str, int]) -> list[Figure]:
    """Run one benchmark in a process of its own, so that none leaves its memory or threads to the next."""
    spawn = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(dir=directory, prefix="benchmark-") as folder,
        ProcessPoolExecutor(1, mp_context=spawn) as pool,
    ):
        return pool.submit(measure, name, Path(folder), **sizes).result()


def machine() -> dict[str, Any]:
    """Say what the figures were measured on."""
    return {
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": platform.system(),
        "load": os.getloadavg()[0],
    }


def _printed_against(names: Sequence[str], parser: argparse.ArgumentParser, *, tiny: bool) -> int:
    if len(names) != 1:
        parser.error("against takes one commit")
    try:
        figures = against.measure(names[0], **(against.TINY if tiny else {}))
    except LookupError as error:
        parser.error(str(error))
    sys.stdout.write(f"{table(figures)}\n")
    return 0


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for and print it; 0 if all went through."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"some of {', '.join(BENCHMARKS)}; all but the last if none. Large: {', '.join(LARGE)}. Or "
        f"{against.NAME} COMMIT: the path of a message, beside another commit",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--tiny", action="store_true", help="only show that they work")
    parser.add_argument(
        "--in", dest="directory", type=Path, help="the disk to measure; the temporary one if not given"
    )
    given = parser.parse_args(arguments)
    if given.names[:1] == [against.NAME]:
        return _printed_against(given.names[1:], parser, tiny=given.tiny)
    if unknown := sorted(set(given.names) - {*BENCHMARKS, *LARGE}):
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    before, figures = machine(), []
    for name in given.names or [name for name in BENCHMARKS if name not in ON_DEMAND]:
        if not given.json:
            sys.stderr.write(f"{name} …\n")
        benchmark, sizes = LARGE.get(name, (name, {}))
        figures += measure_apart(benchmark, given.directory, TINY[benchmark] if given.tiny else sizes)
    if given.json:
        printed = msgspec.json.format(msgspec.json.encode({"machine": before, "figures": figures})).decode()
    else:
        printed = f"{', '.join(f'{name} {value}' for name, value in before.items())}\n\n{table(figures)}"
    sys.stdout.write(f"{printed}\n")
    return 0
