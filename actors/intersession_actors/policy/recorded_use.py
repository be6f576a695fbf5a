"""What a recorded decision shows of a causal chain: how much it had used when a guard stopped it, and what time it was for it."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from intersession_actors.policy.chain import Spent
from intersession_events import facts
from intersession_events.facts import Budget, Limits

RUNS: Final = "session.agentToAgent.limits.runs"
TOKENS: Final = "session.agentToAgent.limits.tokens"
MONEY: Final = "session.agentToAgent.limits.costMicros"
WALL: Final = "session.agentToAgent.limits.wallSeconds"
_COUNTED: Final = ((RUNS, "runs"), (TOKENS, "tokens"), (MONEY, "cost_micros"))
"""The guards over what a chain has used, in the order in which they are looked at."""


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


def spent_when_decided(known: Spent, limits: Limits, events: Sequence[facts.Event]) -> Spent:
    """Return what a chain had used when something was decided, as the events show that it led to (LOOP-5).

    `known` is what the log has. Runs of other branches may have ended in between, and ones that were only reserved are not
    in it: so what was decided says more, a guard that tripped by its number, and a run that was asked for by there being one.
    """
    used = {setting: used_when_stopped(events, setting) for setting in (RUNS, TOKENS, MONEY, WALL)}
    asked = any(
        isinstance(event, facts.RunAsked)
        and not (isinstance(event, facts.ResultHanded) and event.limit is not None)
        for event in events
    )
    were_looked_at = asked or any(number is not None for number in used.values())
    for setting, name in _COUNTED:
        counted, allowed, number = getattr(known, name), getattr(limits, name), used[setting]
        if number is not None:
            return msgspec.structs.replace(known, **{name: number or max(counted, allowed)})
        if allowed and were_looked_at:  # and this one had not tripped
            known = msgspec.structs.replace(known, **{name: min(counted, allowed - 1)})
    return known


def time_of_chain(budget: Budget, events: Sequence[facts.Event], recorded_ms: int) -> int:
    """Return what time it was for a chain when something was decided, as the events show that it led to (LOOP-5).

    They were recorded at `recorded_ms`. A clock can be set forward and back; the log's time stays ahead then. So the time that
    was recorded says less of how old the chain was than what was decided: that it had run out, or that it had not.
    """
    allowed = budget.limits.wall_seconds
    if not allowed or not budget.started_ms:
        return recorded_ms
    held = sum(event.held_ms for event in events if isinstance(event, facts.ExchangeReleased))
    began = budget.started_ms + budget.held_ms + held
    used = used_when_stopped(events, WALL)
    if used is not None:
        return began + max(used, allowed) * 1000
    last = events[-1] if events else None
    if isinstance(last, facts.ExchangeHeld) and (last.next_turn, last.next_end) == (None, None):
        return recorded_ms  # that nothing was to follow may be because of a guard
    return min(recorded_ms, began + allowed * 1000 - 1)
