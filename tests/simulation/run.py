"""The command `python -m tests.simulation`."""

import argparse
import gc
import logging
import signal
import sys
import time
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import closing, nullcontext
from functools import partial
from itertools import repeat
from multiprocessing import active_children
from types import FrameType
from typing import Final

from simulation.bugs import BUGS
from simulation.faults import Tally
from simulation.seed import Outcome, simulate
from simulation.shown import find
from simulation.shrinking import command, shrunk
from simulation.table import missing, table
from simulation.watching import SIGNALS, Seen, Stopped, Stops, stoppable, watched
from support.history import Finding

AHEAD: Final = 20
"""So many seeds are handed to each process before the first of them is looked at: one that is slow holds up nobody."""
MOST_S: Final = 120.0
"""No seed may take longer. Most take 0.1 s, and the slowest a few seconds."""


_LOOKING_S: Final = 0.1


class Endless(BaseException):
    """A seed has taken all the time that it has."""


def main(arguments: Sequence[str]) -> int:
    """Simulate what is asked for; 0 if nothing was found, and everything happened often enough.

    Where it is stopped before its end, it says what it has seen until then, and returns what a shell says of the signal.
    """
    given = _parsed(arguments)
    _hush(quiet=given.quiet)
    if given.find:
        lost = 0
        for kind, name, seed in find(given.find, given.jobs):
            lost += seed is None
            sys.stdout.write(f"{kind} {name}: {'no seed shows it' if seed is None else f'seed {seed}'}\n")
            sys.stdout.flush()
        return 1 if lost else 0
    if given.keep is not None:
        outcome = _with_bug(given.bug, given.seed, given.keep.split(","), sealed=given.sealed)
        return _told(outcome, shrink=False, bug=given.bug)
    seen = Seen(given.seed, given.seeds)
    try:
        with stoppable() as stops:
            _simulate(given, seen, stops)
    except Stopped as stopped:
        sys.stdout.write(f"{seen.words()}, stopped by {stopped} before {seen.seeds - seen.done} others\n")
        if given.table:
            sys.stdout.write(table(seen.tally))
        return 128 + stopped.number
    sys.stdout.write(f"{seen.words()}\n")
    if given.table:
        sys.stdout.write(table(seen.tally))
    rare = missing(seen.tally, given.at_least) if given.at_least else []
    for line in rare:
        sys.stdout.write(f"too rare: {line}\n")
    return 1 if seen.failed or rare else 0


def _hush(*, quiet: bool) -> None:
    """Show nobody what the system itself says. Errors are logged all the same: a simulation listens to them (`Heard`)."""
    logging.disable(logging.WARNING if quiet else logging.NOTSET)
    logging.lastResort = None
    logging.getLogger().addHandler(logging.NullHandler() if quiet else logging.StreamHandler())


def _simulate(given: argparse.Namespace, seen: Seen, stops: Stops) -> None:
    with closing(_outcomes(given, stops)) as outcomes:
        for outcome in watched(outcomes, seen, stops):
            if outcome.findings:
                _told(outcome, shrink=not given.no_shrink, bug=given.bug)
                if given.bug is not None:
                    break
            if seen.passed > given.seconds:
                break


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
    parser.add_argument(
        "--find", type=int, default=0, help="look through so many seeds for what the tests plant (shown.txt)"
    )
    parser.add_argument("--no-shrink", action="store_true", help="print failures as they are")
    parser.add_argument("--table", action="store_true", help="print how often what has happened")
    parser.add_argument("--at-least", type=int, default=0, help="fail where something happened less often")
    parser.add_argument(
        "--quiet", action=argparse.BooleanOptionalAction, default=True, help="without the system's own words"
    )
    return parser.parse_args(arguments)


def _outcomes(given: argparse.Namespace, stops: Stops) -> Generator[Outcome]:
    """Yield what comes of each seed, in order."""
    seeds = range(given.seed, given.seed + given.seeds)
    simulated = partial(_timed, given.bug, sealed=given.sealed)
    if given.jobs == 1:
        gc.freeze()
        yield from map(simulated, seeds)
        return
    with ProcessPoolExecutor(given.jobs, initializer=_begin_worker) as pool:
        try:
            begun = deque(pool.submit(simulated, seed) for seed in seeds[: given.jobs * AHEAD])
            for seed in [*seeds[len(begun) :], *repeat(None, len(begun))]:
                yield _result(begun.popleft(), stops)
                if seed is not None:
                    begun.append(pool.submit(simulated, seed))
        finally:  # whoever has stopped does not wait for a seed that perhaps never ends
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in active_children():
                worker.terminate()


def _result(begun: Future[Outcome], stops: Stops) -> Outcome:
    """Wait for what comes of a seed, and look often whether somebody has stopped the run.

    A signal that raised would do so anywhere: in the middle of the pool's own work, it left a lock taken for good.
    """
    while not wait([begun], timeout=_LOOKING_S).done:
        stops.check()
    return begun.result()


def _begin_worker() -> None:
    """Leave it to the process that gives the work to say when it is over."""
    gc.freeze()
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)


def _timed(bug: str | None, seed: int, *, sealed: bool) -> Outcome:
    """Simulate a seed, which may take so much time; more is a finding."""
    began = time.process_time()

    def ends(_: int, __: FrameType | None) -> None:
        raise Endless

    before = signal.signal(signal.SIGPROF, ends)
    # More than once: the code that it strikes may take it for an error of its own.
    signal.setitimer(signal.ITIMER_PROF, MOST_S, 1.0)
    try:
        outcome = _with_bug(bug, seed, None, sealed=sealed)
    except Endless:
        words = f"it takes more than {MOST_S:.0f} s of the processor's time"
        outcome = Outcome(seed, [Finding("endless", words)], [], Tally(), "")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    outcome.seconds = time.process_time() - began
    return outcome


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
