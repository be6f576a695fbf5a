"""The answer of a command: one value for programs, and how people are shown it; or what it failed with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from intersession.cli.shell.terminal import Screen
from intersession_events.plain_json import JsonObject, JsonValue

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
    """`code` is for programs: one of the refusals of `docs/errors.md`, or one of those of the command line."""

    exit_code: int
    code: str
    error: str
    status: str = "error"

    @property
    def value(self) -> JsonObject:
        """What `--json` prints."""
        return {"status": self.status, "code": self.code, "error": self.error}
