"""The configuration of a simulated system: what chance draws for it, and what the faults that it has need."""

from collections.abc import Mapping
from typing import Any, Final

from simulation.chance import Chance
from simulation.clumsy import MOST_BYTES
from simulation.faults import Faults
from simulation.people import AGENTS, CHANNELS, COSTS
from simulation.workers import ALIVE_S

WORKSPACE: Final = "/simulated"
NARROW: Final = 5_000
"""A window in which there is no room for the tools of a session: 3,750 tokens are left beside an answer."""
TINY: Final = 800
"""A window that a few messages fill, so that older ones are summarised: 600 tokens are left beside an answer."""


def settings_of(faults: Faults, chance: Chance) -> tuple[Mapping[str, Any], int]:
    """Return the configuration of a simulated system, and how often it may begin a run."""
    pick = chance.pick
    costs = "agent_costs" in faults.enabled
    hops = chance.fixed("hops for ever", 1) == 1  # else a chain can come back as often as revisits let it
    attempts = 2 - (pick("retries", 2) == 1)
    settings: dict[str, Any] = {
        "tools": {
            "sessions": {"visibility": "all"},
            "agentToAgent": {"enabled": True},
            "sessions_spawn": {
                "attachments": {
                    "enabled": "files" in faults.enabled,
                    "maxFileBytes": MOST_BYTES,
                    "maxTotalBytes": 2 * MOST_BYTES,
                }
            },
        },
        "agents": {
            "list": [
                {"id": name, "default": name == "main", "subagents": {"allowAgents": ["*"]}}
                | ({"contextTokens": NARROW} if pick(f"window {name}", 3) == 1 else {})
                | ({"contextTokens": TINY} if pick(f"tiny window {name}", 6) == 1 else {})
                for name in AGENTS
            ],
            "defaults": {
                "subagents": {"archiveAfterMinutes": (60, 0, 1)[pick("archive", 2)]},
                "workspace": WORKSPACE,
            },
        },
        "session": {
            "threadBindings": {
                "idleHours": (0, 0.02, 1)[pick("quiet threads", 2)],
                "maxAgeHours": (0, 0.05, 24)[pick("old threads", 2)],
            },
            "agentToAgent": {
                "maxPingPongTurns": (2, 0, 1, 5)[pick("turns", 3)],
                "announce": ("always", "routed")[pick("announce", 1)],
                "turnTimeoutSeconds": 30,
                "hold": _held_by_setting(faults, chance),
                "limits": {
                    "runs": (12, 4, 30)[pick("runs", 2)],
                    "hops": (3, 1)[pick("hops", 1)] if hops else 0,
                    "revisits": (2, 1)[pick("revisits", 1)] if hops else 1,
                    "wallSeconds": (3600, 60)[pick("wall", 1)],
                    "tokens": (0, 2 * COSTS)[costs and pick("tokens", 1)],
                    "costMicros": (0, COSTS)[costs and pick("money", 1)],
                },
            },
        },
        "runs": {
            "retryInterrupted": attempts - 1,
            "shutdownGraceSeconds": 0,
            "idleSeconds": (60, 1)[pick("idle", 1)],
            "storeRetryMaxSeconds": (60, 2)[pick("patience", 1)],
            "poolSize": (8, 1)[pick("pool", 1)],
        },
        "deliveries": {"timeoutSeconds": 30, "perChannel": (8, 1)[pick("seats", 1)]},
    }
    if at_workers(faults):
        settings["channels"] = {name: {"worker": True} for name in CHANNELS}
        settings["runs"] |= {"workerAliveSeconds": ALIVE_S}
    return settings, attempts


def at_workers(faults: Faults) -> bool:
    """Whether the channels of a simulation are a worker's: in one of eight."""
    return {"worker_dies", "worker_late", "worker_twice"} <= faults.enabled


def _held_by_setting(faults: Faults, chance: Chance) -> str:
    """Return which texts of each exchange the configuration holds."""
    if not faults.strikes("hold_setting", 0.3):
        return "off"
    return ("reply", "announce", "every-turn")[chance.fixed("held by setting", 2)]
