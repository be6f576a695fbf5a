"""Watches a run of many seeds: how far it is, what it has seen, and whether somebody has stopped it."""

import signal
import sys
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Final

from simulation.faults import Tally
from simulation.seed import Outcome

TELLS_EVERY_S: Final = 30.0
"""So often a run says how far it is where nobody looks at a bar."""
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """Somebody has stopped the run, by a signal of this number."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Stops:
    """Whether somebody has stopped the run."""

    def __init__(self) -> None:
        self.number: int | None = None
        """The signal that has."""

    def check(self) -> None:
        """Raise `Stopped` if so."""
        if self.number is not None:
            raise Stopped(self.number)


@contextmanager
def stoppable() -> Generator[Stops]:
    """Hear of Ctrl-C in this block, and of signals that would end the process without a word.

    The second raises `Stopped` wherever it comes. The first does not, for a simulation in this process may take that for an
    error of its own: it is asked between two seeds whether somebody has stopped the run.
    """
    stops = Stops()

    def stop(number: int, _: FrameType | None) -> None:
        is_first, stops.number = stops.number is None, number
        if not is_first:
            stops.check()

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield stops
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass
class Seen:
    """What a run has seen so far. `seeds` are all that it is asked for, `first` is the first of them."""

    first: int
    seeds: int
    tally: Tally = field(default_factory=Tally)
    done: int = 0
    failed: int = 0
    slowest: tuple[float, int] = (0.0, 0)
    """The most processor time that a seed took, in seconds, and which one it was."""
    began: float = field(default_factory=time.monotonic)

    def take(self, outcome: Outcome) -> None:
        """Count a seed."""
        self.done += 1
        self.failed += bool(outcome.findings)
        self.tally.take(outcome.tally)
        self.slowest = max(self.slowest, (outcome.seconds, outcome.seed))

    @property
    def passed(self) -> float:
        """How long it has lasted, in seconds."""
        return time.monotonic() - self.began

    def words(self) -> str:
        """Return what it comes to, in a line."""
        passed, (most, seed) = self.passed, self.slowest
        return (
            f"{self.done} seeds from {self.first} on, {self.failed} failed, {passed:.0f} s, "
            f"{self.done / max(passed, 0.001):.1f} seeds/s, slowest seed {seed}: {most:.1f} s"
        )


def watched(outcomes: Iterable[Outcome], seen: Seen, stops: Stops) -> Iterator[Outcome]:
    """Count what comes, and show how far it is: as a bar on a terminal, else now and then as a line, on standard error.

    Raises:
        Stopped: somebody has stopped the run. The seed that was under way is not counted.
    """
    if sys.stderr.isatty():
        yield from _behind_a_bar(outcomes, seen, stops)
        return
    told = -TELLS_EVERY_S
    for outcome in outcomes:
        stops.check()
        seen.take(outcome)
        if seen.passed - told > TELLS_EVERY_S:
            told = seen.passed
            sys.stderr.write(f"of {seen.seeds}: {seen.words()}\n")
            sys.stderr.flush()
        yield outcome


def _behind_a_bar(outcomes: Iterable[Outcome], seen: Seen, stops: Stops) -> Iterator[Outcome]:
    from rich import progress  # noqa: PLC0415 - only where somebody looks
    from rich.console import Console  # noqa: PLC0415 - only where somebody looks

    columns = (progress.TextColumn("{task.description}"), progress.BarColumn())
    rest = (progress.MofNCompleteColumn(), progress.TimeRemainingColumn())
    with progress.Progress(*columns, *rest, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("seeds", total=seen.seeds)
        for outcome in outcomes:
            stops.check()
            seen.take(outcome)
            bar.update(task, completed=seen.done, description=f"seeds, {seen.failed} failed")
            yield outcome
