"""Guards over a whole causal chain, and over cycles of waiting: pure (LOOP-5, SEND-10)."""

from collections import deque
from collections.abc import Collection, Mapping
from typing import Literal

import msgspec

from intersession_events.facts import Limits

LimitName = Literal["hop_limit", "revisit_limit", "run_limit", "token_limit", "cost_limit", "wall_limit"]


class ChainSoFar(msgspec.Struct, frozen=True, kw_only=True):
    """What a causal chain has used up to now.

    `chain` are the sessions it passed through, in order, `hops` the exchanges it made, `runs` the runs it started;
    `started_ms` is when its first one was accepted. What began outside of any run has an empty chain.
    """

    chain: tuple[str, ...] = ()
    hops: int = 0
    runs: int = 0
    tokens: int = 0
    cost_micros: int = 0
    started_ms: int | None = None


def fullest(one: ChainSoFar, other: ChainSoFar) -> ChainSoFar:
    """Return the higher of two counts of one chain, number by number.

    Several parts count a chain: the view that a caller asked, the coordinator since it began, the exchange itself. Each may know less
    than there is (a view lags behind what is being decided, the coordinator forgets chains that were silent for long), none knows more.
    """
    return msgspec.structs.replace(
        one,
        runs=max(one.runs, other.runs),
        tokens=max(one.tokens, other.tokens),
        cost_micros=max(one.cost_micros, other.cost_micros),
    )


class Tripped(msgspec.Struct, frozen=True, kw_only=True):
    """A guard stopped the chain. `limit` is the reason in the event, `value` what was used, `allowed` the setting's."""

    limit: LimitName
    setting: str
    value: int
    allowed: int

    @property
    def error(self) -> str:
        """The text that a sender gets."""
        return (
            f"sessionKey: {self.setting} is {self.allowed} and this chain of messages has used {self.value}, "
            "answer instead of sending on"
        )


def check_chain(limits: Limits, so_far: ChainSoFar, target: str, now_ms: int) -> Tripped | None:
    """Say whether the chain may begin one more exchange, with `target`; the first guard that trips is named.

    A limit is the most there may be: with `hops` 8, the ninth exchange of a chain is refused. The turns of one
    exchange are one hop. Coming to a session for the first time is no revisit.
    """
    return (
        _full("hop_limit", "hops", so_far.hops, limits.hops)
        or _full("revisit_limit", "revisits", so_far.chain.count(target) - 1, limits.revisits)
        or check_turn(limits, so_far, now_ms)
    )


def check_turn(limits: Limits, so_far: ChainSoFar, now_ms: int) -> Tripped | None:
    """Say whether the chain may start one more run, such as a turn of an exchange that is going on."""
    started = now_ms if so_far.started_ms is None else so_far.started_ms
    # A clock that was set back must not give a chain a negative age.
    seconds = max(now_ms - started, 0) // 1000
    return (
        _full("run_limit", "runs", so_far.runs, limits.runs)
        or _full("token_limit", "tokens", so_far.tokens, limits.tokens)
        or _full("cost_limit", "costMicros", so_far.cost_micros, limits.cost_micros)
        or _full("wall_limit", "wallSeconds", seconds, limits.wall_seconds)
    )


def find_wait_cycle(
    waits: Mapping[str, Collection[str]], requester: str, target: str
) -> tuple[str, ...] | None:
    """Return the cycle that would close if `requester` waited for `target`, or None.

    `waits` says for each session which ones it waits for now. The path begins and ends with `target`: A→B→A, where A
    waits for B and B would wait for A. The shortest is named, the first in order of keys among equals.
    """
    ways: deque[tuple[str, ...]] = deque([(target,)])
    seen = {target}
    while ways:
        way = ways.popleft()
        if way[-1] == requester:
            return (*way, target)
        for following in sorted(waits.get(way[-1], ())):
            if following not in seen:
                seen.add(following)
                ways.append((*way, following))
    return None


def _full(limit: LimitName, name: str, used: int, allowed: int) -> Tripped | None:
    """Return the guard if all that it allows is used. 0 turns it off."""
    if allowed == 0 or used < allowed:
        return None
    return Tripped(limit=limit, setting=f"session.agentToAgent.limits.{name}", value=used, allowed=allowed)
