"""Says what was typed where an error names the field of a method: an option, or an argument as help names it."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from cyclopts import CycloptsError

from intersession.cli.app import app

_FIELD: Final = re.compile(r"[a-z][A-Za-z]*")
_CAPITAL: Final = re.compile(r"(?=[A-Z])")

_CALLED: Final[Mapping[str, Sequence[str]]] = {
    "agentId": ("--agent",),
    "asOf": ("--at",),
    "holdId": ("--hold",),
    "key": ("SESSION", "WHAT"),
    "kinds": ("--kind",),
    "label": ("TEXT",),
    "messageIds": ("--message",),
    "messageLimit": ("--messages",),
    "run": ("RUN", "WHAT"),
    "runId": ("RUN", "WHAT"),
    "session": ("SESSION", "WHAT"),
    "sessionKey": ("--to", "--session", "SESSION", "WHAT"),
    "task": ("MESSAGE",),
    "text": ("--edit",),
    "timeoutSeconds": ("--timeout",),
    "of": ("EVENT|PLACE", "KEY|RUN"),
}
"""What fields are called on the command line, where that is not their own name: the first of these that the command has."""


def as_typed(words: str, tokens: Sequence[str]) -> str:
    """Return the words of an error with the name of what was typed in the place of a field; `tokens` are the command's."""
    field, colon, rest = words.partition(": ")
    if not colon or not _FIELD.fullmatch(field):
        return words
    try:
        _, apps, _ = app.parse_commands([*tokens])
        arguments = [argument for argument in apps[-1].assemble_argument_collection() if argument.parse]
    except (CycloptsError, ValueError):  # what was typed is no command
        return words
    names = {name: argument.names for argument in arguments for name in argument.names}
    option = f"--{_CAPITAL.sub('-', field).lower()}"
    meant = next((name for name in (option, field.upper(), *_CALLED.get(field, ())) if name in names), None)
    if meant is None:
        return words
    typed = {token.partition("=")[0] for token in tokens}
    return f"{next((name for name in names[meant] if name in typed), meant)}: {rest}"
