"""Filters that name what a log does not know: said beside an empty list, with the names that look like it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from intersession.cli.shell.terminal import Screen, safe
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.named import near_sessions
from intersession_events.basics.ids import access_stream, session_stream
from intersession_events.basics.plain_json import JsonObject
from intersession_projections.questions.known_names import KnownNames, near

_SHOWN: Final = 128
_ACCESS: Final = access_stream("x").removesuffix("x")


class Unknown(NamedTuple):
    """An option whose value is no name that the log knows, and names that look like it."""

    option: str
    value: str
    what: str
    near: tuple[str, ...]

    def in_words(self) -> str:
        """Return it for people."""
        alike = f"; there is {', '.join(self.near)}" if self.near else ""
        return f"note: {self.option}: this log knows no {self.what} {self.value[:_SHOWN]!r}{alike}"

    def as_value(self) -> JsonObject:
        """Return it for programs."""
        return {"option": self.option, "value": self.value, "near": [*self.near]}


def tell_unknown(screen: Screen, unknown: Iterable[Unknown]) -> None:
    """Say so beside an answer."""
    for each in unknown:
        screen.note(safe(each.in_words(), "yellow"))


def unknown_names(reader: Reader, typed: Mapping[str, str | None]) -> list[Unknown]:
    """Return which filters name what the log does not know; `typed` are those that were given, by their option."""
    found: list[Unknown] = []
    for option, value in typed.items():
        if value is None:
            continue
        what, names = _KNOWN[option]
        known = names(reader)
        alike = near(value, known)
        # A person is found in any case.
        is_known = value in known or (option == "--person" and value.casefold() in map(str.casefold, alike))
        if not is_known:
            found.append(Unknown(option, value, what, alike))
    return found


def unknown_stream(reader: Reader, beginning: str) -> list[Unknown]:
    """Return what to say of a text that no stream of the log begins with; nothing where one does."""
    if not beginning or reader.log.streams(beginning):
        return []
    name = beginning.removeprefix(session_stream(""))
    alike = () if name == beginning else near_sessions(reader, name)
    return [Unknown("--stream", beginning, "stream that begins with", alike)]


def _tools(_reader: Reader) -> set[str]:
    # They are all that writes as well, which nothing else here needs.
    from intersession_actors.assembly.methods.methods import METHODS  # noqa: PLC0415
    from intersession_actors.calls.tools.registry import TOOLS  # noqa: PLC0415

    return {*TOOLS, *METHODS}


_KNOWN: Final[Mapping[str, tuple[str, Callable[[Reader], set[str]]]]] = {
    "--agent": ("agent", lambda reader: KnownNames(reader.log).agents() | {*reader.config.agent_ids}),
    "--channel": ("channel", lambda reader: KnownNames(reader.log).channels() | {*reader.config.channels}),
    "--person": ("person", lambda reader: KnownNames(reader.log).people()),
    "--label": ("label", lambda reader: KnownNames(reader.log).labels()),
    "--who": ("asker", lambda reader: {name.removeprefix(_ACCESS) for name in reader.log.streams(_ACCESS)}),
    "--tool": ("tool or method", _tools),
}
