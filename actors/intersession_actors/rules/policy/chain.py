"""The limits of a causal chain, and cycles of waiting: pure (LOOP-5, SEND-10).

A chain begins with what a person or the operator says. Its budget goes from cause to effect: from a run to what it sends and
spawns, from there to the turns, announces and results that come of it, and so on. A send and a spawn are a hop; their other
steps are not.
"""

from collections import deque
from collections.abc import Collection, Mapping
from typing import Literal

import msgspec

from intersession_actors.rules.errors import Known, Question
from intersession_events.facts import Budget, FlowAccepted, Limits, RunQueued

LimitName = Literal["hop_limit", "revisit_limit", "run_limit", "token_limit", "cost_limit", "wall_limit"]


class Spent(Known, frozen=True, kw_only=True):
    """The usage of a whole chain up to now: requested runs, and the cost of ended ones."""

    runs: int = 0
    tokens: int = 0
    cost_micros: int = 0


class CarryOn(Question, frozen=True, kw_only=True):
    """Continue a causal chain in another session. `runs`: with a run there, beside the hop."""

    target: str
    runs: bool = True


class Chain(Known, frozen=True, kw_only=True):
    """The inputs of that judgement: the chain's length, its usage, and its limits.

    `path` and `hops` are as in a budget, `age` is for how many seconds it has gone on, where that is limited.
    """

    path: tuple[str, ...] = ()
    hops: int = 0
    limits: Limits = Limits()
    spent: Spent = Spent()
    age: int = 0


class WaitFor(Question, frozen=True, kw_only=True):
    """Let one session wait for another's answer."""

    requester: str
    target: str


class Waits(Known, frozen=True, kw_only=True):
    """The inputs of that judgement: the waits between sessions, as far as they lead from the target to the requester; each pair once."""

    waits: tuple[tuple[str, str], ...] = ()


class Tripped(msgspec.Struct, frozen=True, kw_only=True):
    """A guard stopped the chain. `limit` is the reason in the event, `value` the usage, `allowed` the setting's.

    `spent` and `age` are what it had used in all, and for how many seconds it had gone on, as far as the guard looked at that.
    """

    limit: LimitName
    setting: str
    value: int
    allowed: int
    spent: Spent = Spent()
    age: int = 0

    @property
    def words(self) -> str:
        """Its text in events and errors."""
        return f"{self.setting} is {self.allowed} and this chain of messages has used {self.value}"

    def error_text(self, field: str) -> str:
        """Return the error for the caller that would continue the chain."""
        return f"{field}: {self.words}, answer instead of going on"


def begun(root: str, path: tuple[str, ...], limits: Limits, now_ms: int) -> Budget:
    """Return the budget of a new chain, with the run `root`."""
    return Budget(root=root, started_ms=now_ms, path=path, limits=limits)


def one_hop_on(budget: Budget, target: str, limits: Limits) -> Budget:
    """Return the budget for work that a chain begins in another session; `limits` are those in force now (CFG-3)."""
    return msgspec.structs.replace(budget, path=(*budget.path, target), hops=budget.hops + 1, limits=limits)


def budget_of(event: RunQueued | FlowAccepted, root: str | None, started_ms: int) -> Budget:
    """Return the budget in an event; `root` and `started_ms` replace what an imported spawn lacks."""
    return event.budget or Budget(root=root or event.run_id, started_ms=started_ms)


def check_hop(budget: Budget, limits: Limits, target: str) -> Tripped | None:
    """Return the first guard that forbids the chain one more hop, to `target`; None if none does.

    A limit is the most there may be: with `hops` 8, the ninth send one from another is refused. Coming to a session for the
    first time is no revisit.
    """
    return _first_full(
        ("hop_limit", "hops", budget.hops, limits.hops),
        ("revisit_limit", "revisits", budget.path.count(target) - 1, limits.revisits),
    )


def check_run(budget: Budget, spent: Spent, now_ms: int) -> Tripped | None:
    """Return the first guard that forbids the chain one more run, in any of its branches; None if none does."""
    limits, age = budget.limits, age_s(budget, now_ms)
    tripped = _first_full(
        ("run_limit", "runs", spent.runs, limits.runs),
        ("token_limit", "tokens", spent.tokens, limits.tokens),
        ("cost_limit", "costMicros", spent.cost_micros, limits.cost_micros),
        ("wall_limit", "wallSeconds", age, limits.wall_seconds),
    )
    return None if tripped is None else msgspec.structs.replace(tripped, spent=spent, age=age)


def judge_chain(asked: CarryOn, known: Chain) -> Tripped | None:
    """Decide whether a chain may continue in a session, with a run there if it asks for one."""
    budget = Budget(root="", started_ms=1, path=known.path, hops=known.hops, limits=known.limits)
    tripped = check_hop(budget, known.limits, asked.target)
    if tripped is not None or not asked.runs:
        return tripped
    return check_run(budget, known.spent, time_at_age(budget, known.age))


def judge_wait(asked: WaitFor, known: Waits) -> tuple[str, ...] | None:
    """Return the cycle that would close if one session waited for another, or None."""
    waits: dict[str, list[str]] = {}
    for who, whom in known.waits:
        waits.setdefault(who, []).append(whom)
    return find_wait_cycle(waits, asked.requester, asked.target)


def age_s(budget: Budget, now_ms: int) -> int:
    """Return the age of a chain in whole seconds; 0 if nothing limits that."""
    if not budget.limits.wall_seconds:
        return 0
    # A clock that was set back must not give a chain a negative age, and who was held has done nothing meanwhile.
    return max(now_ms - (budget.started_ms or now_ms) - budget.held_ms, 0) // 1000


def time_at_age(budget: Budget, seconds: int) -> int:
    """Return the time (ms) at which a chain had a given age in seconds."""
    return budget.started_ms + budget.held_ms + 1000 * seconds


def check_start(budget: Budget, spent: Spent) -> Tripped | None:
    """Decide whether a requested run may start now: its cost is unknown before the others have ended."""
    limits = budget.limits
    return _first_full(
        ("token_limit", "tokens", spent.tokens, limits.tokens),
        ("cost_limit", "costMicros", spent.cost_micros, limits.cost_micros),
    )


def counts_use(budget: Budget) -> bool:
    """Return whether the usage of the chain's runs can keep another from starting: then each waits for what is known."""
    return bool(budget.limits.tokens or budget.limits.cost_micros)


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


def _first_full(*guards: tuple[LimitName, str, int, int]) -> Tripped | None:
    """Return the first guard of which all that it allows is used. 0 turns one off."""
    for limit, name, used, allowed in guards:
        if allowed == 0 or used < allowed:
            continue
        return Tripped(
            limit=limit, setting=f"session.agentToAgent.limits.{name}", value=used, allowed=allowed
        )
    return None
