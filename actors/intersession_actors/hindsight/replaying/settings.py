"""The settings in force, as they were recorded."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

import msgspec

from intersession_actors.rules.config.config import Config
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import ConfigLoaded, ForkEdit, ForkEdited
from intersession_events.log.recorded import Recorded

_READ: Final = frozenset({"session", "tools", "agents", "runs", "deliveries"})
"""The sections that actors look at; elsewhere secrets were left out."""


class RecordedSettings:
    """The configurations of a log, in the order in which they came into force."""

    def __init__(self, events: Iterable[Recorded]) -> None:
        self._positions: list[int] = []
        self._configs: list[Config | None] = []
        self.edits: list[ForkEdit] = []
        """What was set in a fork: it holds for what had begun, too."""
        for recorded in events:
            if isinstance(recorded.event, ForkEdited) and recorded.event.edit.kind == "set":
                self.edits.append(recorded.event.edit)
            if isinstance(recorded.event, ConfigLoaded):
                self._positions.append(recorded.position)
                self._configs.append(_read(recorded.event))

    def recorded_at(self, position: int) -> Config | None:
        """Return the settings in force at a position; None if they were not recorded, or can't be read any more."""
        number = bisect_right(self._positions, position)
        return self._configs[number - 1] if number else None

    def around(self, position: int) -> list[Config]:
        """Return the settings in force at a position, and those before the last change: a reader may have looked a little earlier."""
        found = [self.recorded_at(position)]
        number = bisect_right(self._positions, position)
        found += self._configs[max(number - 2, 0) : max(number - 1, 0)]
        return [config for config in found if config is not None]

    def at(self, position: int) -> Config:
        """Return the same, or the default."""
        return self.recorded_at(position) or Config()


def _read(loaded: ConfigLoaded) -> Config | None:
    try:
        plain = msgspec.json.decode(loaded.config, type=JsonObject)
        return msgspec.convert({name: plain[name] for name in _READ & plain.keys()}, Config, strict=False)
    except (msgspec.MsgspecError, ValueError):
        return None
