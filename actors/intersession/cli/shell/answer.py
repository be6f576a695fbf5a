"""The input and output of commands: shared options, the answer, the failure, and errors in terms of what was typed."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from cyclopts import CycloptsError, Parameter

from intersession.cli.app import app
from intersession.cli.shell.terminal import Screen
from intersession_events.basics.machine import read_at_most
from intersession_events.basics.plain_json import JsonObject, JsonValue

Store = Annotated[
    str | None,
    Parameter(
        help="The log: FILE, sqlite:///FILE or postgresql://…. Default: $INTERSESSION_STORE, else ./intersession.db."
    ),
]
Json = Annotated[bool, Parameter(help="Print one JSON document on standard output, and nothing else.")]
ConfigFile = Annotated[
    Path | None,
    Parameter(
        name="--config", help="The configuration file (JSON5) whose rules hold. Default: all defaults."
    ),
]
Agents = Annotated[
    str | None,
    Parameter(
        help="The agents: module:NAME of a dict of agents, or of a function that takes the store's URL and "
        "returns a SessionSystem."
    ),
]
ActingAs = Annotated[
    str | None, Parameter(name="--as", help="Act as this session: see and reach what it may, and no more.")
]
AsOf = Annotated[
    str | None,
    Parameter(
        name=("--at", "--as-of"),
        help="As it stood at a place: a position, event:ID, an ISO time, head, RUN@start, RUN@reply, RUN@turn:3, "
        "RUN@announce or RUN@end; +N or -N behind it for steps on or back, -N alone from the head.",
    ),
]
Since = Annotated[str | None, Parameter(help="Only after a place: a position, an ISO time, RUN@start, …")]
Until = Annotated[str | None, Parameter(help="Only up to a place: a position, an ISO time, RUN@end, …")]
Cursor = Annotated[str | None, Parameter(help="The page after the one that ended with this cursor.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Common:
    """The options of every command."""

    store: Store = None
    json: Json = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reading(Common):
    """The options of every command that reads sessions by the rules of a configuration."""

    config: ConfigFile = None


COMMON = Common()
READING = Reading()


OK: Final = 0
REFUSED: Final = 1
USAGE: Final = 2
UNAVAILABLE: Final = 3
NOT_VERIFIED: Final = 4
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141


@dataclass(frozen=True)
class Answer:
    """`value` is what `--json` prints (plain JSON values), `show` prints it for people."""

    value: JsonValue
    show: Callable[[Screen], None]
    exit_code: int = OK


class UsageError(Exception):
    """The command was called in a way that makes no sense; the message says what to do."""


class Failure(NamedTuple):
    """`code` is for programs: a refusal of `docs/errors.md`, or one of the command line's own."""

    exit_code: int
    code: str
    error: str
    status: str = "error"

    @property
    def value(self) -> JsonObject:
        """The JSON that `--json` prints."""
        return {"status": self.status, "code": self.code, "error": self.error}


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


_MOST_BYTES: Final = 1_073_741_824
"""The most bytes read of a given file: a million published checkpoints take half of it."""


def read_given(path: Path, option: str) -> bytes:
    """Read a file that an option names.

    Raises:
        UsageError: it can't be read, or is very large.
    """
    try:
        return read_at_most(path, _MOST_BYTES)
    except OSError as error:
        raise UsageError(f"{option}: {path} can't be read ({error.strerror or error})") from error


def as_typed(words: str, tokens: Sequence[str]) -> str:
    """Return an error's words with what was typed in place of a field's name; `tokens` are the command's."""
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
