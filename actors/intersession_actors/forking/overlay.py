"""Settings of a fork's own: `--set` holds there, whatever was in force in its source, also for what had begun (FORK-4)."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from intersession_actors.config import Config, load_config, plain_config
from intersession_events.facts import ExchangeAccepted, ForkedFrom, ForkEdit, ForkEdited
from intersession_events.log import Log
from intersession_events.plain_json import JsonObject, JsonValue, is_object

_EDITED: Final = "fork_edited.%"
_POSITIONS: Final = "SELECT originator_version FROM stored_events WHERE originator_id=? AND topic LIKE ? ORDER BY originator_version"
_FIXED: Final[Mapping[str, str]] = {
    "session.agentToAgent.maxPingPongTurns": "max_turns",
    "session.agentToAgent.turnTimeoutSeconds": "turn_timeout_ms",
    "session.agentToAgent.announce": "announce",
    "session.agentToAgent.hold": "hold",
}
"""Settings that an exchange keeps from when it was accepted (CFG-3), and what it calls them."""
_LIMITS: Final = "session.agentToAgent.limits"


def set_in(log: Log) -> tuple[ForkEdit, ...]:
    """Return what was set in a fork, in order; nothing for a log that is none."""
    forked: ForkedFrom | None = log.forked
    if forked is None:
        return ()
    versions = [version for (version,) in log.query(_POSITIONS, ("log", _EDITED))]
    events = [log.stream("log", after=version - 1, to=version)[0].event for version in versions]
    return tuple(event.edit for event in events if isinstance(event, ForkEdited) and event.edit.kind == "set")


def overlaid(config: Config, edits: Iterable[ForkEdit]) -> Config:
    """Return a configuration with settings on top. A value is JSON; what is none is a text.

    Raises:
        ConfigError: there is no such setting, or this is none of its values; it has the path.
    """
    plain = plain_config(config)
    for edit in edits:
        if edit.kind == "set":
            _put(plain, edit.key.split("."), _value(edit.value))
    return load_config(plain).config


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


def _value(text: str) -> JsonValue:
    try:
        value: JsonValue = msgspec.json.decode(text)
    except ValueError:
        return text
    return value


def _put(plain: JsonObject, path: list[str], value: JsonValue) -> None:
    *above, last = path
    inner = plain
    for name in above:
        below = inner.get(name)
        inner[name] = below = dict(below) if is_object(below) else {}
        inner = below
    inner[last] = value
