"""Advice in the terms of the caller's door. It is written for the command line; elsewhere commands have other names."""

import re
from collections.abc import Mapping
from itertools import takewhile
from typing import Final, NamedTuple

import msgspec

from intersession_events.basics.plain_json import JsonObject


class Called(NamedTuple):
    """A command's name at another door, and the argument there that comes first after the command."""

    name: str
    first: str = ""


Terms = Mapping[str, Called]
"""What commands are called at a door, by their names on the command line."""

_COMMAND: Final = re.compile(r"`intersession ([^`]+)`")
_EDIT: Final = re.compile(r"`?--(reply|message|skip|drop|agent|set|inject|deliver)\b`?")


def advised(text: str, terms: Terms) -> str:
    """Return a text that advises commands, in the terms of a door. A command without a name there stays, as the operator's."""

    def command(found: re.Match[str]) -> str:
        words = found[1].split()
        plain = sum(1 for _ in takewhile(lambda word: not word.startswith("-"), words))
        for length in (2, 1):
            called = terms.get(" ".join(words[:length]))
            if called is not None and plain - length <= bool(called.first):
                return _call(called, words[length:])
        return f"the operator's command {found[0]}"

    return _EDIT.sub(r"`\1`", _COMMAND.sub(command, text))


def _call(called: Called, words: list[str]) -> str:
    given: JsonObject = {}
    name = called.first
    for word in words:
        if word.startswith("--"):
            name = word.removeprefix("--")
            given[name] = True
        elif name:
            given[name], name = word, ""
    return f"`{called.name} {msgspec.json.encode(given).decode()}`" if given else f"`{called.name}`"
