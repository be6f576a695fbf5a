"""Short names for sessions in a story: `research` for `agent:research:main`, and a legend that says so."""

from collections.abc import Iterable
from typing import Final

from intersession_events.errors import InvalidKey
from intersession_events.keys import SessionKey
from intersession_projections.wording import short_name

_COLOURS: Final = ("cyan", "green", "magenta", "yellow", "blue", "red")


class Names:
    """The short names of all who take part in one story, in the order they come up; only session keys are shortened."""

    def __init__(self, names: Iterable[str | None] = ()) -> None:
        self._short: dict[str, str] = {}
        self._colours: dict[str, str] = {}
        for name in names:
            if name is not None:
                self.of(name)

    def of(self, name: str) -> str:
        """Return how a name is shown."""
        if name not in self._short:
            short = short_name(name)
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


def _is_key(name: str) -> bool:
    try:
        SessionKey.recorded(name)
    except InvalidKey:
        return False
    return True
