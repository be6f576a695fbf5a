"""Short names for sessions in a story: `research` for `agent:research:main`, `main/detour` for a sub-agent with a label."""

from collections.abc import Iterable
from typing import Final

from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.keys.short_names import short_name
from intersession_events.basics.plain_json import is_list, is_object
from intersession_events.facts.words import Naming
from intersession_events.log.log import Log
from intersession_projections.views.sessions.names import SessionNames

_COLOURS: Final = ("cyan", "green", "magenta", "yellow", "blue", "red")


class Names:
    """The short names of all who take part in one story, in the order they come up; only session keys are shortened.

    `called` says how a session is called; without it, labels are not known.
    """

    def __init__(self, names: Iterable[str | None] = (), called: Naming = short_name) -> None:
        self._called = called
        self._short: dict[str, str] = {}
        self._colours: dict[str, str] = {}
        for name in names:
            if name is not None:
                self.of(name)

    def of(self, name: str) -> str:
        """Return how a name is shown."""
        if name not in self._short:
            short = self._called(name)
            # Two sessions of one short name keep their whole keys, so that nobody is taken for somebody else.
            self._short[name] = name if short in self._short.values() else short
            if _is_key(name):
                self._colours[name] = _COLOURS[len(self._colours) % len(_COLOURS)]
        return self._short[name]

    def between(self, who: str | None, to: str | None) -> str:
        """Return who does something, and to whom: `a → b`, as far as either is there."""
        first, second = ("" if name is None else self.of(name) for name in (who, to))
        return first if to is None else f"{first} → {second}".lstrip()

    def style(self, name: str) -> str:
        """Return the colour of a name; people and channels have none."""
        colour = self._colours.get(name)
        return "bold" if colour is None else f"bold {colour}"

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Short names and what they stand for, where that differs."""
        return [(short, name) for name, short in self._short.items() if short != name]


def live_names(log: Log) -> Names:
    """Return the names of sessions as a log calls them, as long as it is open."""
    return Names(called=SessionNames(log).one)


def names_of(log: Log, told: object, other: Log | None = None) -> Names:
    """Return the names of the sessions whose keys stand in what is told: in an answer as JSON has it, or in a list of keys.

    They are read together, and known when the log is closed. `other` is a log that tells, too.
    """
    keys = _keys_in(told)
    known = {} if other is None else SessionNames(other).of(keys)
    known |= {key: name for key, name in SessionNames(log).of(keys).items() if name != short_name(key)}
    return Names(called=lambda name: known.get(name) or short_name(name))


def _keys_in(told: object) -> set[str]:
    found: set[str] = set()
    left = [told]
    while left:
        match left.pop():
            case str(text):
                found.update(part for part in text.split("/") if part.startswith("agent:") and _is_key(part))
            case value if is_list(value):
                left.extend(value)
            case value if is_object(value):
                left.extend(value.values())
            case _:
                pass
    return found


def _is_key(name: str) -> bool:
    try:
        SessionKey.recorded(name)
    except InvalidKey:
        return False
    return True
