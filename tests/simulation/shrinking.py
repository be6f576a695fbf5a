"""Makes a failing seed small: leaves out all departures from the plain course that its failure does not need."""

from collections.abc import Callable, Sequence
from itertools import groupby

from simulation.chance import typed
from simulation.seed import Outcome, simulate

Fails = Callable[[Sequence[str]], bool]


def shrunk(outcome: Outcome, *, most: int = 300) -> Outcome:
    """Return the same seed with the fewest departures that break the same law, after at most so many simulations."""
    tried = 0
    best = outcome

    def fails(keep: Sequence[str]) -> bool:
        nonlocal tried, best
        tried += 1
        again = simulate(outcome.seed, keep, sealed=outcome.law == "sealed")
        if again.law != outcome.law:
            return False
        if len(again.departures) < len(best.departures):
            best = again
        return True

    # First all of one kind at a time, then smaller and smaller parts of what is left.
    for _, group in groupby(sorted(outcome.departures, key=_stream), key=_stream):
        gone = set(group)
        left = [name for name in best.departures if name not in gone]
        if tried < most and len(left) < len(best.departures):
            fails(left)
    size = max(len(best.departures) // 2, 1)
    while tried < most:
        before = best
        for start in range(0, len(before.departures), size):
            gone = set(before.departures[start : start + size])
            left = [name for name in best.departures if name not in gone]
            if tried < most and len(left) < len(best.departures):
                fails(left)
        if size == 1 and best is before:
            break
        size = max(size // 2, 1)
    return best


def _stream(name: str) -> str:
    return name.rpartition(":")[0]


def command(outcome: Outcome, bug: str | None = None) -> str:
    """Return the command line that does it again."""
    keep = ",".join(map(typed, outcome.departures))
    return (
        f"python -m tests.simulation --seed {outcome.seed}"
        + (f" --bug {bug}" if bug else "")
        + (" --sealed" if outcome.law == "sealed" else "")
        + f" --keep '{keep}'"
    )
