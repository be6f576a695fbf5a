"""How often what happened in many simulations, and what happened too seldom to have been tried."""

from collections import defaultdict
from typing import Final

from simulation.faults import FAULTS, Tally

POINTS: Final = (
    *(f"S{number}" for number in range(9)),
    *(f"K{number}" for number in range(1, 7)),
    *(f"H{number}" for number in range(1, 9)),
    *(f"A{number}" for number in range(1, 9)),
    *(f"P{number}" for number in range(1, 10)),
    *("B1", "B2", "E1", "E2"),
)
"""The crash points that a simulation passes."""
SELDOM: Final = frozenset(
    {"A4", "A8", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "K4", "P3", "P4", "P7", "P8", "P9", "S8"}
)
"""Those that are seldom passed."""
REFUSALS: Final = (
    "busy",
    "cycle",
    "invalid_request",
    "limit",
    "no_threads",
    "not_started",
    "not_visible",
    "policy_denied",
    "subagent_spawn",
    "unavailable",
)
ENDS: Final = (
    "announce_denied",
    "delivery_unknown",
    "handed_over",
    "no_agent",
    "requester_gone",
    "run_limit",
    "target_gone",
    "turn_limit",
    "turn_timeout",
    "wall_limit",
)
"""How flows end by a guard, or by what went wrong."""


def expected() -> list[str]:
    """Return what has to happen."""
    return [
        *(f"crash {point}" for point in POINTS),
        *(f"fault {fault}" for fault in FAULTS if fault != "reorder"),
        *(f"refusal {code}" for code in REFUSALS),
        *(f"end {reason}" for reason in ENDS),
        "replayed sealed",
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
