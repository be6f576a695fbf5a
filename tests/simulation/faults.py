"""What can go wrong in a simulation, and which of it a seed turns on: each has its own subset (swarm testing)."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from simulation.chance import Chance

FAULTS: Final = (
    "reorder",
    "early",
    "store_before",
    "store_after",
    "store_down",
    "crash_point",
    "crash_between",
    "zombie",
    "agent_error",
    "agent_exit",
    "agent_hang",
    "agent_late",
    "agent_lie",
    "agent_quotes",
    "agent_skip",
    "agent_silent",
    "agent_tokens",
    "agent_tells",
    "agent_sends",
    "agent_spawns",
    "agent_records",
    "channel_fails",
    "channel_refuses",
    "channel_doubts",
    "channel_slow",
    "channel_again",
    "clock_step",
    "late_agent",
    "late_channel",
    "client_again",
    "abort",
    "reset",
    "delete",
    "patch",
    "interrupt",
    "loop_ends",
    "agent_again",
    "threads",
    "thread_fails",
    "thread_slow",
    "thread_said",
    "hold",
    "hold_again",
    "hold_setting",
    "hold_rule",
    "hold_rule_fails",
    "agent_costs",
    "backup",
    "erase",
    "files",
    "disk_fails",
    "disk_dies",
    "power",
    "worker_dies",
    "worker_late",
    "worker_twice",
    "standby_takes",
    "door_follows_late",
)
"""Everything that is not the plain course."""


class Crash(BaseException):
    """The process has ended; what still runs of it is nobody's."""


@dataclass
class Tally:
    """How often what happened, in one simulation or in many: faults, crash points, refusals, guards."""

    counts: Counter[str] = field(default_factory=Counter[str])

    def add(self, kind: str, name: str) -> None:
        """Count one."""
        self.counts[f"{kind} {name}"] += 1

    def take(self, other: "Tally") -> None:
        """Count what another has counted."""
        self.counts.update(other.counts)


class Faults:
    """The faults of one seed."""

    def __init__(self, chance: Chance, tally: Tally) -> None:
        self.chance = chance
        self.tally = tally
        half = [name for name in FAULTS if chance.fixed(f"swarm {name}", 1)]
        self.enabled = frozenset(half)

    def strikes(self, name: str, probability: float, *, where: str = "") -> bool:
        """Say whether a fault happens now, and count it."""
        if name not in self.enabled or not self.chance.departs(f"{name} {where}".strip(), probability):
            return False
        self.tally.add("fault", name)
        return True
