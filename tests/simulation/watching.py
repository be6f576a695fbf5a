"""Watches a run of many seeds: how far it is, what it has seen, and whether somebody has stopped it."""

import signal
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Final

from simulation.faults import Tally
from simulation.world import Outcome

TELLS_EVERY_S: Final = 30.0
"""So often a run says how far it is where nobody looks at a bar."""
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """Somebody has stopped the run, by a signal of this number."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def stoppable() -> Generator[None]:
    """Raise `Stopped` in this block at Ctrl-C, or at a signal that would end the process without a word."""

    def stop(number: int, _: FrameType | None) -> None:
        for one in SIGNALS:
            signal.signal(one, signal.SIG_IGN)  # what is told now is told to its end
        raise Stopped(number)

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield
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


def watched(outcomes: Iterator[Outcome], seen: Seen) -> Iterator[Outcome]:
    """Count what comes, and show how far it is: as a bar on a terminal, else now and then as a line, on standard error."""
    if sys.stderr.isatty():
        yield from _behind_a_bar(outcomes, seen)
        return
    told = -TELLS_EVERY_S
    for outcome in outcomes:
        seen.take(outcome)
        if seen.passed - told > TELLS_EVERY_S:
            told = seen.passed
            sys.stderr.write(f"of {seen.seeds}: {seen.words()}\n")
            sys.stderr.flush()
        yield outcome


def _behind_a_bar(outcomes: Iterator[Outcome], seen: Seen) -> Iterator[Outcome]:
    from rich import progress  # noqa: PLC0415 - only where somebody looks
    from rich.console import Console  # noqa: PLC0415 - only where somebody looks

    columns = (progress.TextColumn("{task.description}"), progress.BarColumn())
    rest = (progress.MofNCompleteColumn(), progress.TimeRemainingColumn())
    with progress.Progress(*columns, *rest, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("seeds", total=seen.seeds)
        for outcome in outcomes:
            seen.take(outcome)
            bar.update(task, completed=seen.done, description=f"seeds, {seen.failed} failed")
            yield outcome
