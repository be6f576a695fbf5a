"""Agents from a file: `script:FILE`, a reply a line, for forks and tests without a model (FORK-4)."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from intersession_actors.outside.agents.agents import ScriptEnded
from intersession_actors.outside.agents.turn import AgentFunction, Turn
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.plain_json import JsonValue
from intersession_events.facts import Step, ready

_MOST_BYTES: Final = 16 * 1024 * 1024
_FIELDS: Final = "{session?, step?, turn?, reply}"


@ready
class ScriptLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reply, and the turns it is for: of a session, in a step, in a turn of the loop. A missing field matches any."""

    reply: str
    session: str | None = None
    step: Step | None = None
    turn: int | None = None

    def fits(self, turn: Turn) -> bool:
        """Whether the reply is for a turn."""
        origin = turn.asked.provenance
        asked = None if origin is None else origin.turn
        return (
            self.session in {None, turn.session_key}
            and self.step in {None, turn.step}
            and self.turn in {None, asked}
        )


def script_file(path: Path) -> AgentFunction:
    """Make an agent from a script: each turn gets the first matching, unused line. A new agent starts over.

    A file whose first line is a JSON object is JSON lines, `{session?, step?, turn?, reply}`; any other is plain, a reply a
    line. Blank lines are skipped. Past its lines it raises `ScriptEnded`.

    Raises:
        ToolRefused: the file can't be read, or a line is invalid; it names file and line.
    """
    return script_agent(read_script(path), str(path))


def script_agent(lines: Sequence[ScriptLine], name: str) -> AgentFunction:
    """Make an agent named `name` from the lines of a script."""
    lock = threading.Lock()
    left = list(lines)

    def agent(turn: Turn) -> str:
        with lock:
            for line in left:
                if line.fits(turn):
                    left.remove(line)
                    return line.reply
        raise ScriptEnded(
            f"{name}: none of its {len(lines)} lines is left for {turn.session_key}, step {turn.step}"
        )

    return agent


def read_script(path: Path) -> tuple[ScriptLine, ...]:
    """Read a script.

    Raises:
        ToolRefused: the file can't be read, or a line is invalid; it names file and line.
    """
    try:
        with path.open("rb") as file:
            read = file.read(_MOST_BYTES + 1)  # no file says how much a device gives
        source = read.decode()
    except UnicodeDecodeError as error:
        raise _refused(path, 0, f"it is no UTF-8 text ({error.reason} at byte {error.start})") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _refused(path, 0, f"it can't be read ({why})") from None
    if len(read) > _MOST_BYTES:
        raise _refused(path, 0, f"it has more than {_MOST_BYTES} bytes")
    numbered = [(number, line.strip()) for number, line in enumerate(source.splitlines(), 1) if line.strip()]
    if not numbered:
        raise _refused(path, 0, "it has no line, write a reply a line")
    if not numbered[0][1].startswith("{"):
        return tuple(ScriptLine(reply=line) for _, line in numbered)
    return tuple(_line(path, number, line) for number, line in numbered)


def _line(path: Path, number: int, line: str) -> ScriptLine:
    try:
        value: JsonValue = msgspec.json.decode(line)
    except (ValueError, RecursionError) as error:
        raise _refused(path, number, f"it is no JSON ({error}), and the first line is") from None
    if not isinstance(value, Mapping):
        raise _refused(path, number, f"it is no JSON object, write {_FIELDS}")
    try:
        return msgspec.convert(value, ScriptLine, strict=True)
    except msgspec.ValidationError as error:
        raise _refused(path, number, f"{error}; write {_FIELDS}") from None


def _refused(path: Path, number: int, what: str) -> ToolRefused:
    where = f"script:{path}" if not number else f"script:{path}, line {number}"
    return ToolRefused("invalid_request", f"{where}: {what}")
