"""The command `python -m tests.simulation`."""

import argparse
import gc
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial

from simulation.bugs import BUGS
from simulation.faults import Tally
from simulation.shrinking import command, shrunk
from simulation.table import missing, table
from simulation.world import Outcome, simulate


def main(arguments: Sequence[str]) -> int:
    """Simulate what is asked for; 0 if nothing was found, and everything happened often enough."""
    given = _parsed(arguments)
    logging.disable(logging.ERROR if given.quiet else logging.NOTSET)
    logging.lastResort = None
    if given.keep is not None:
        outcome = _with_bug(given.bug, given.seed, given.keep.split(","), sealed=given.sealed)
        return _told(outcome, shrink=False, bug=given.bug)
    began, tally, failed, done = time.monotonic(), Tally(), 0, 0
    for outcome in _outcomes(given):
        done += 1
        tally.take(outcome.tally)
        if outcome.findings:
            failed += 1
            _told(outcome, shrink=not given.no_shrink, bug=given.bug)
            if given.bug is not None:
                break
        if time.monotonic() - began > given.seconds:
            break
    passed = time.monotonic() - began
    sys.stdout.write(
        f"{done} seeds from {given.seed} on, {failed} failed, {passed:.0f} s, {done / passed:.1f} seeds/s\n"
    )
    if given.table:
        sys.stdout.write(table(tally))
    rare = missing(tally, given.at_least) if given.at_least else []
    for line in rare:
        sys.stdout.write(f"too rare: {line}\n")
    return 1 if failed or rare else 0


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--seed", type=int, default=0, help="the first of them")
    parser.add_argument("--seconds", type=float, default=1e9, help="end after so many seconds")
    parser.add_argument("--jobs", type=int, default=1, help="in so many processes")
    parser.add_argument("--bug", choices=sorted(BUGS), help="plant this bug, and end when it is found")
    parser.add_argument(
        "--keep", help="of one seed only these departures from the plain course, as a failure prints them"
    )
    parser.add_argument(
        "--sealed", action="store_true", help="replay what each seed recorded, and not only some"
    )
    parser.add_argument("--no-shrink", action="store_true", help="print failures as they are")
    parser.add_argument("--table", action="store_true", help="print how often what has happened")
    parser.add_argument("--at-least", type=int, default=0, help="fail where something happened less often")
    parser.add_argument(
        "--quiet", action=argparse.BooleanOptionalAction, default=True, help="without the system's own words"
    )
    return parser.parse_args(arguments)


def _outcomes(given: argparse.Namespace) -> Iterator[Outcome]:
    seeds = range(given.seed, given.seed + given.seeds)
    if given.jobs == 1:
        gc.freeze()
        yield from (_with_bug(given.bug, seed, None, sealed=given.sealed) for seed in seeds)
        return
    with ProcessPoolExecutor(given.jobs, initializer=gc.freeze) as pool:
        yield from pool.map(
            partial(_with_bug, given.bug, keep=None, sealed=given.sealed), seeds, chunksize=20
        )


def _with_bug(bug: str | None, seed: int, keep: Sequence[str] | None, *, sealed: bool) -> Outcome:
    with BUGS[bug]() if bug is not None else nullcontext():
        return simulate(seed, keep, sealed=sealed or None)


def _told(outcome: Outcome, *, shrink: bool, bug: str | None) -> int:
    """Print what a seed has found, and how to have it again."""
    if outcome.findings and shrink:
        with BUGS[bug]() if bug is not None else nullcontext():
            outcome = shrunk(outcome)
    for finding in outcome.findings[:5]:
        sys.stdout.write(f"seed {outcome.seed}: {finding.law}: {finding.words}\n")
    if outcome.findings:
        sys.stdout.write(f"  {command(outcome, bug)}\n")
    sys.stdout.flush()
    return 1 if outcome.findings else 0
