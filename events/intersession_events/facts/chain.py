"""What a causal chain may use, handed from cause to effect: part of every event that begins something (LOOP-5)."""

from typing import Final

from intersession_events.facts.base import Fact, Whole, ready

__all__ = ["NO_OTHER_LIMITS", "Budget", "Limits"]


@ready
class Limits(Fact, frozen=True, kw_only=True):
    """The guards over a causal chain (LOOP-5); 0 turns one off."""

    hops: Whole = 8
    revisits: Whole = 4
    runs: Whole = 64
    tokens: Whole = 0
    cost_micros: Whole = 0
    wall_seconds: Whole = 3600


NO_OTHER_LIMITS: Final = Limits()
"""The guards that stand where none are configured; as one value, which is not stored."""


class Budget(Fact, frozen=True, kw_only=True):
    """How far a causal chain has come at one of its places, and how far it may go.

    `root` is the run it began with, `started_ms` when that was accepted (0: not known). `path` are the sessions it came through, the
    one that this is for last; `hops` the sends and spawns on the way. `limits` were in force when it was last handed on
    by one (CFG-3). What it has used in all is counted from the events of all its runs. `held_ms` is for how long exchanges on
    the way were held, which is no time of the chain's (LIVE-1).
    """

    root: str
    started_ms: Whole = 0
    path: tuple[str, ...] = ()
    hops: Whole = 0
    limits: Limits = NO_OTHER_LIMITS
    held_ms: Whole = 0
