"""How often what happened in many simulations, and what happened too seldom to have been tried."""

from collections import defaultdict
from typing import Final

from simulation.faults import FAULTS, Tally

POINTS: Final = (
    *(f"S{number}" for number in range(9)),
    *(f"K{number}" for number in range(1, 7)),
    *(f"A{number}" for number in range(1, 9)),
    *("P1", "P2", "P5", "P6", "P7", "P8", "P9", "B1"),
)
"""The crash points that a simulation passes; files, erasing and backups are not simulated (P3, P4, E1, E2, B2)."""
REFUSALS: Final = (
    "busy",
    "cycle",
    "forbidden",
    "invalid_request",
    "limit",
    "not_visible",
    "policy_denied",
    "unavailable",
)
GUARDS: Final = (
    "turn_limit",
    "hop_limit",
    "revisit_limit",
    "run_limit",
    "wall_limit",
    "policy_denied",
    "target_gone",
    "requester_gone",
)


def expected() -> list[str]:
    """Return what has to happen."""
    return [
        *(f"crash {point}" for point in POINTS),
        *(f"fault {fault}" for fault in FAULTS if fault != "reorder"),
        *(f"refusal {code}" for code in REFUSALS),
        *(f"end {reason}" for reason in GUARDS),
    ]


def missing(tally: Tally, least: int) -> list[str]:
    """Return what happened less than so often."""
    return [f"{name}: {tally.counts[name]}" for name in expected() if tally.counts[name] < least]


def table(tally: Tally) -> str:
    """Return how often everything happened, a line for each kind."""
    kinds: defaultdict[str, list[str]] = defaultdict(list)
    for name, times in sorted(tally.counts.items()):
        kind, _, what = name.partition(" ")
        kinds[kind].append(f"{what} {times}")
    return "".join(f"{kind}: {', '.join(names)}\n" for kind, names in kinds.items())
