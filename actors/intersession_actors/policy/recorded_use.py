"""What a recorded decision shows of a causal chain: how much it had used when a guard stopped it."""

import re
from collections.abc import Iterable
from typing import Final

from intersession_events import facts

RUNS: Final = "session.agentToAgent.limits.runs"
TOKENS: Final = "session.agentToAgent.limits.tokens"
MONEY: Final = "session.agentToAgent.limits.costMicros"
WALL: Final = "session.agentToAgent.limits.wallSeconds"


def used_when_stopped(events: Iterable[facts.Event], setting: str) -> int | None:
    """Return how much a chain had used when a guard tripped, as what was decided says.

    0 where it only says that it tripped; None where it did not.
    """
    found = [used for used in (_used(event, setting) for event in events) if used is not None]
    return next((used for used in found if used), 0 if found else None)


def _used(event: facts.Event, setting: str) -> int | None:
    """Return how much one event says that a chain had used: 0 where it only says that the guard tripped."""
    match event:
        case facts.LoopEnded(limit=limit, used=used, note=note) if limit == setting:
            return _number(note, 0) if used is None else used
        case facts.ExchangeHeld(next_limit=limit, next_used=used, next_note=note) if limit == setting:
            return _number(note, 0) if used is None else used
        case (
            facts.ExchangeClosed(limit=limit, used=used, note=note)
            | facts.SpawnClosed(limit=limit, used=used, note=note)
        ) if limit == setting:
            return _number(note, -1) if used is None else used
        case facts.RunFailed(code="limit", limit=str() as limit, used=used):
            return used or 0 if limit == setting else None
        case facts.RunFailed(code="limit", error=error) if f" {setting} is " in error:
            return _number(error, -1)
        case facts.AnnounceDecided(limit=limit) | facts.ResultHanded(limit=limit) if limit == setting:
            return 0
        case _:
            return None


def _number(words: str | None, at: int) -> int:
    """Return a number that words say: events of logs written before say it nowhere else."""
    numbers = re.findall(r"\d+", words or "")
    return int(numbers[at]) if numbers else 0
