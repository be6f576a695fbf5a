"""What comes of a seed: its world, begun and judged, with what its log has decided again."""

import gc
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from intersession_events.basics.crash_points import arm
from intersession_events.log.recorded import Recorded
from simulation.faults import Tally
from simulation.hearing import hearing
from simulation.store import STORE
from simulation.world import World
from support.history import Finding, check_sealed

SEALED_EVERY: Final = 4
"""The log of each of so many seeds is replayed sealed: it takes a tenth of the time of a seed."""

Kept = tuple[str, list[Recorded]]
"""A log that is kept: its id and its events."""


@dataclass
class Outcome:
    """What came of a seed. `departures` are what was not of the plain course, `trace` is a hash over all that was recorded."""

    seed: int
    findings: list[Finding]
    departures: list[str]
    tally: Tally
    trace: str
    steps: int = 0
    seconds: float = 0.0
    """How much of the processor's time it took, where somebody has looked."""

    @property
    def law(self) -> str | None:
        """The first law that was broken."""
        return self.findings[0].law if self.findings else None


@contextmanager
def _uncollected() -> Generator[None]:
    """Collect no garbage meanwhile: that takes a third of the time, and a greenlet or coroutine may not end just anywhere."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def simulate(seed: int, keep: Collection[str] | None = None, *, sealed: bool | None = None) -> Outcome:
    """Simulate one seed; with `keep` only these departures from the plain course happen.

    With `sealed` what was recorded is decided again, too; unless it is said, so it is with each of a few seeds.
    """
    outcome, recorded = _simulated(World(seed, keep))
    if sealed or (sealed is None and seed % SEALED_EVERY == 0):
        outcome.tally.add("replayed", "sealed")
        outcome.findings += check_sealed(*recorded)
    return outcome


def recorded_in(seed: int) -> Kept:
    """Return the log of one seed."""
    return _simulated(World(seed))[1]


def _simulated(world: World) -> tuple[Outcome, Kept]:
    disarm = arm(world._pass)
    trace = ""
    events: list[Recorded] = []
    with (
        STORE.of(world._commit, None if world.is_new else world.log_id),
        world.disk.mounted(),
        _uncollected(),
        hearing() as heard,
        world.noting_starts(),
    ):
        try:
            world.happens()
            events = list(world.log.all())
            trace = world.trace(events)
            findings = world.judged(events)
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed has found it
            findings = [*world.findings, Finding("raised", f"{type(error).__name__}: {error}")]
        finally:
            disarm()
    findings += [Finding("told", words) for words in heard.said]
    outcome = Outcome(world.chance.seed, findings, world.chance.taken, world.tally, trace, world.steps)
    return outcome, (world.log_id, events)
