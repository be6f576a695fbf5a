"""Which value a setting had at a place of the log, and since when: from the configurations that were loaded."""

from collections.abc import Mapping
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from intersession_actors.hindsight.explaining.explanation import Input, SetBy
from intersession_actors.owners.streams.judgements import lists_in
from intersession_actors.rules.config.config import Config
from intersession_events.basics.plain_json import JsonObject, JsonValue, is_object
from intersession_events.facts import ConfigLoaded
from intersession_events.log.log import Log
from intersession_events.log.recorded import StreamPart

_STREAM: Final = "log"
# Most events of the stream are checkpoints: one by one they would be a long way.
_LOADED: Final = (
    "SELECT originator_version FROM stored_events WHERE originator_id=? AND topic LIKE 'config\\_loaded.%' ESCAPE '\\' "
    "ORDER BY originator_version"
)
_SHOWN: Final = frozenset({"session", "tools", "agents"})
"""The parts of a configuration that rules look at. They are recorded whole, since there is no secret in them."""


class Loaded(NamedTuple):
    """A configuration as it was recorded, and where."""

    position: int
    plain: JsonObject

    @property
    def config(self) -> Config:
        """The configuration, as far as rules look at it; what a later version can't read is left at its default."""
        parts = {name: value for name, value in self.plain.items() if name in _SHOWN}
        try:
            return msgspec.convert(parts, Config, strict=False)
        except msgspec.ValidationError:
            return Config()


class InForce:
    """The configurations of a log, as they came into force one after the other."""

    def __init__(self, log: Log) -> None:
        self._log = log

    @cached_property
    def _loaded(self) -> list[Loaded]:
        versions = self._log.query(_LOADED, (_STREAM,))
        parts = self._log.parts([StreamPart(_STREAM, version - 1, version) for (version,) in versions])
        return [
            Loaded(recorded.position, msgspec.json.decode(recorded.event.config))
            for events in parts
            for recorded in events
            if isinstance(recorded.event, ConfigLoaded)
        ]

    def listed(self, digest: str) -> JsonValue:
        """Return the list of a setting that has a digest; None where no configuration has one."""
        return self._lists.get(digest)

    @cached_property
    def _lists(self) -> Mapping[str, JsonValue]:
        return {digest: one for loaded in self._loaded for digest, one in lists_in(loaded.plain).items()}

    def at(self, position: int) -> Config:
        """Return the configuration that was in force at a place; the default one before the first was loaded."""
        loaded = self._at(position)
        return loaded[-1].config if loaded else Config()

    def setting(self, name: str, position: int) -> Input:
        """Return the value of a setting (`session.agentToAgent.maxPingPongTurns`) at a place, and who set it.

        A value that a configuration says, and that is the default as well, is the default: the log keeps whole configurations.
        """
        loaded = self._at(position)
        value = _value(loaded[-1].plain if loaded else {}, name)
        default = _value(msgspec.to_builtins(Config()), name)
        if not loaded or value is None or value == default:
            return Input(name=name, value=default if value is None else value, set_by="default")
        since = loaded[-1].position
        for earlier in reversed(loaded):
            if _value(earlier.plain, name) != value:
                break
            since = earlier.position
        return Input(name=name, value=value, set_by="configuration", position=since)

    def taken(self, name: str, value: JsonValue, position: int, *, set_by: SetBy = "call") -> Input:
        """Return a setting with the value taken from it at a place; who set it, if the configuration says the same (CFG-3)."""
        setting = self.setting(name, position)
        return (
            setting
            if setting.value == value
            else Input(name=name, value=value, set_by=set_by, position=position)
        )

    def _at(self, position: int) -> list[Loaded]:
        return [loaded for loaded in self._loaded if loaded.position <= position]


def _value(plain: Mapping[str, JsonValue], name: str) -> JsonValue:
    found: JsonValue = {**plain}
    for part in name.split("."):
        if not is_object(found):
            return None
        found = found.get(part)
    return found
