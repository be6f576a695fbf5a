"""How often what happened in many simulations, and what happened too seldom to have been tried."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, get_args

from intersession_actors.rules.errors import REFUSAL_CODES, RefusalCode
from intersession_events.facts import (
    ArchiveReason,
    CloseReason,
    Event,
    ExchangeClosed,
    ExchangeHeld,
    ExchangeReleased,
    FailureCode,
    HeldText,
    HoldBefore,
    HoldSource,
    LoopEnd,
    LoopEnded,
    Release,
    RunFailed,
    SessionArchived,
    SpawnClose,
    SpawnClosed,
)
from intersession_events.log.recorded import Recorded, parts_in
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
PASSED_ELSEWHERE: Final = (
    dict.fromkeys(("M1", "M2", "M3"), "migrate")
    | dict.fromkeys(("B3", "B4"), "backup")
    | {"F1": "files", "F2": "files", "G1": "forgetting", "Y1": "keys", "Y2": "keys", "Y3": "keys"}
)
"""Those of what no simulation has: the tests of crashes, and of files, pass them."""
SELDOM: Final = frozenset(
    {"A4", "A8", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "K4", "P3", "P4", "P7", "P8", "P9", "S8"}
)
"""Those that are seldom passed."""
REFUSED_ELSEWHERE: Final[Mapping[RefusalCode, str]] = {
    "too_large": "more values than a call may have: the tests of the gate",
    "invalid_model": "no models are configured here: the tests of policies",
    "ambiguous_label": "sessions have no labels here: the tests of doors",
    "old_generation": "nobody names a generation that is over here: the tests of doors",
    "spawn_limit": "nobody spawns so many children here: the tests of policies",
    "sandbox_inherit": "no agent is sandboxed here: the tests of policies",
    "unsafe_path": "the disk of a simulation has no links: the tests of attachments",
    "export_failed": "a command that no simulation has",
    "import_failed": "a method on files that no simulation has",
    "unreadable": "no row is damaged here: the tests of damaged logs",
    "internal": "a simulation that sees it has failed",
}
"""Refusals that no simulation gets, and why."""
REFUSALS: Final = tuple(code for code in REFUSAL_CODES if code not in REFUSED_ELSEWHERE)
GUARDS: Final = ("hops", "revisits", "runs", "tokens", "costMicros", "wallSeconds")
"""The limits of a chain, as a caller is told of them or a flow ends by them."""

KNOWN: Final = ("threadLeft", "ageMs", "withheld", "notCalled", "failureText", "spent", "gone", "noAgent")
"""What decisions seldom know."""

_ENDS: Final[tuple[tuple[type[Event], str, object], ...]] = (
    (LoopEnded, "reason", LoopEnd),
    (ExchangeClosed, "reason", CloseReason),
    (SpawnClosed, "reason", SpawnClose),
    (RunFailed, "code", FailureCode),
    (SessionArchived, "reason", ArchiveReason),
    (ExchangeHeld, "source", HoldSource),
    (ExchangeHeld, "step", HeldText),
    (ExchangeHeld, "before", HoldBefore),
    (ExchangeReleased, "action", Release),
)
"""The events that say how something ended or stopped, and all that they can say."""
ENDS_ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("LoopEnded inferred", "ExchangeClosed inferred", "SpawnClosed inferred", "SessionArchived reset"),
        "only of an import: its tests",
    ),
    **dict.fromkeys(("ExchangeClosed withheld", "SpawnClosed withheld"), "only in a fork: its tests"),
    **dict.fromkeys(
        ("LoopEnded hop_limit", "LoopEnded revisit_limit"), "these guards refuse a send, and end no loop"
    ),
    "LoopEnded one_way": "a setting that is always off here: the tests of exchanges",
    "LoopEnded no_requester": "sessions send here, and no operator: the tests of exchanges",
    "SpawnClosed no_route": "who spawns is a session here, which is handed the result: the tests of spawns",
    "RunFailed reply_too_large": "no reply is as long as that here: the tests of agents",
    "RunFailed store": "a store that takes nothing of a session ever again: the tests of crashes",
    "RunFailed no_agent": "an agent that goes while its thread waits: the tests of agents",
}
"""What no simulation sees of them, and why."""


def ends() -> list[str]:
    """Return all ways in which something ends or stops."""
    named = [f"{kind.__name__} {value}" for kind, _, values in _ENDS for value in get_args(values)]
    return [name for name in named if name not in ENDS_ELSEWHERE]


def happened(events: Iterable[Recorded]) -> Iterator[tuple[str, str]]:
    """Yield what events say of ends and guards, as it is counted."""
    for item in parts_in(events):
        for kind, field, _ in _ENDS:
            if isinstance(item.event, kind):
                yield "end", f"{kind.__name__} {getattr(item.event, field)}"
        known = json.loads(item.decision).get("knew", {}) if item.decision else {}
        yield from (("knew", name) for name in known)
        limit = getattr(item.event, "limit", None)
        if isinstance(limit, str):
            yield "guard", limit.rpartition(".")[2]


def expected() -> list[str]:
    """Return what has to happen."""
    return [
        *(f"crash {point}" for point in POINTS),
        *(f"fault {fault}" for fault in FAULTS if fault != "reorder"),
        *(f"refusal {code}" for code in REFUSALS),
        *(f"guard {name}" for name in GUARDS),
        *(f"end {name}" for name in ends()),
        *(f"knew {name}" for name in KNOWN),
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
