"""What an exchange keeps from when it was accepted, and what a fork sets anew for it nonetheless (CFG-3, FORK-4)."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from intersession_actors.rules.config.config import Config
from intersession_events.facts import ExchangeAccepted, ForkEdit

_FIXED: Final[Mapping[str, str]] = {
    "session.agentToAgent.maxPingPongTurns": "max_turns",
    "session.agentToAgent.turnTimeoutSeconds": "turn_timeout_ms",
    "session.agentToAgent.announce": "announce",
    "session.agentToAgent.hold": "hold",
}
"""Settings that an exchange keeps from when it was accepted (CFG-3), and what it calls them."""
_LIMITS: Final = "session.agentToAgent.limits"


def fixed_by(config: Config, edits: Iterable[ForkEdit], accepted: ExchangeAccepted) -> ExchangeAccepted:
    """Return what an exchange was accepted with, as it holds here: what was set holds though it had been fixed."""
    paths = {edit.key for edit in edits}
    settings, now = accepted.settings, config.session.exchange
    changed = {name: getattr(now, name) for path, name in _FIXED.items() if path in paths}
    if any(path.startswith(_LIMITS) for path in paths):
        changed["limits"] = now.limits
        if accepted.budget is not None:
            budget = msgspec.structs.replace(accepted.budget, limits=now.limits)
            accepted = msgspec.structs.replace(accepted, budget=budget)
    return msgspec.structs.replace(accepted, settings=msgspec.structs.replace(settings, **changed))
