"""The answer of a command: one value for programs, and how people are shown it; or what it failed with."""

import json
import re
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

_UNPRINTABLE: Final = re.compile(r"[^ -~\n]")


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


def json_text(value: object, encoding: str | None) -> str:
    """Return a JSON document that is inert in a terminal: what is not printable is escaped.

    Nothing but ASCII goes to what is not UTF-8.
    """
    text = json.dumps(value, ensure_ascii=not _is_utf8(encoding), indent=2)
    return _UNPRINTABLE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    character = found.group()
    return character if character.isprintable() else json.dumps(character)[1:-1]


def _is_utf8(encoding: str | None) -> bool:
    return (encoding or "").lower().replace("-", "").replace("_", "") == "utf8"
