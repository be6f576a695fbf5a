"""Systems to measure: agents that answer at once, so that what is left is our own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from intersession import SessionSystem

SEES_ALL: dict[str, Any] = {"tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}}}
NO_LOOP: dict[str, Any] = {"agentToAgent": {"maxPingPongTurns": 0, "announce": "routed"}}
FULL_LOOP: dict[str, Any] = {
    "agentToAgent": {"maxPingPongTurns": 5, "announce": "routed", "limits": {"runs": 0}}
}


def system(
    directory: Path,
    agents: Mapping[str, Any],
    session: Mapping[str, Any] | None = None,
    *,
    idle_seconds: float = 60,
    store: str | None = None,
) -> SessionSystem:
    """Return a system in which all see all, on a file of its own or on the `store` that is given."""
    return SessionSystem(
        store or f"sqlite:///{directory / 'log.db'}",
        agents=agents,
        config={
            **SEES_ALL,
            "runs": {"shutdownGraceSeconds": 1, "idleSeconds": idle_seconds},
            **({"session": session} if session else {}),
        },
    )


def answers_at_once(_turn: Any) -> str:
    """Be an agent that costs nothing."""
    return "It is done."


async def answers_at_once_async(_turn: Any) -> str:
    """Be the same on an event loop."""
    return "It is done."
