"""Decides which agent runs a session: its own, or the runtime that a host registered for its kind (SPAWN-1)."""

from typing import Final

from intersession_events.basics.keys.key import SessionKey

ACP: Final = "runtime:acp"
"""What the runtime of `acp` sessions is registered as; no agent can have this id."""


def runner_of(session_key: str) -> str:
    """Return the executor's name of a session's runner: the agent's id, or the runtime."""
    key = SessionKey.recorded(session_key)
    return ACP if key.family == "acp" else key.agent_id


def is_agent(runner: str) -> bool:
    """Whether a runner's name is an agent's id."""
    return runner != ACP
