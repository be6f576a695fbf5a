"""Settings of a fork's own: `--set` holds there, whatever was in force in its source, also for what had begun (FORK-4)."""

from collections.abc import Iterable
from typing import Final

import msgspec

from intersession_actors.config import Config, load_config, plain_config
from intersession_events.facts import ForkedFrom, ForkEdit, ForkEdited
from intersession_events.log import Log
from intersession_events.plain_json import JsonObject, JsonValue, is_object

_EDITED: Final = "fork_edited.%"
_POSITIONS: Final = "SELECT originator_version FROM stored_events WHERE originator_id=? AND topic LIKE ? ORDER BY originator_version"


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
