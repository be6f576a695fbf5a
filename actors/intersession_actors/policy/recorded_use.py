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
    tripped = False
    for event in events:
        match event:
            case (
                facts.LoopEnded(limit=limit, note=note) | facts.ExchangeHeld(next_limit=limit, next_note=note)
            ) if limit == setting:
                tripped, numbers = True, re.findall(r"\d+", note or "")[:1]
            case facts.ExchangeClosed(limit=limit, note=note) | facts.SpawnClosed(limit=limit, note=note) if (
                limit == setting
            ):
                tripped, numbers = True, re.findall(r"\d+", note or "")[-1:]
            case facts.RunFailed(code="limit", error=error) if f" {setting} is " in error:
                tripped, numbers = True, re.findall(r"\d+", error)[-1:]
            case facts.AnnounceDecided(limit=limit) | facts.ResultHanded(limit=limit) if limit == setting:
                tripped, numbers = True, list[str]()
            case _:
                numbers = list[str]()
        if numbers:
            return int(numbers[0])
    return 0 if tripped else None


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
