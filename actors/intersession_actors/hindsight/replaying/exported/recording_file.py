"""A recording in a file: its run, and then an event a line, as JSON."""

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from intersession_events.facts import decode, encode, ready
from intersession_events.log.recorded import Recorded


@ready
class RecordingHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The first line of a recording in a file. `begins`: the events up to this position happened before the run."""

    log_id: str
    run: str | None
    begins: int
    events: int = 0
    """How many lines follow."""
    sha256: str = ""
    """The SHA-256 of all lines, each with a line feed behind it, this value left empty; in hex."""

    def misfit(self, lines: Sequence[bytes]) -> str | None:
        """Return in words why the file's lines, this one first, are not the written ones; None if they are."""
        if self.events != len(lines) - 1:
            return f"its first line says {self.events} events, and {len(lines) - 1} follow"
        said = self.sha256
        found = _hash_of([lines[0].replace(said.encode(), b"", 1), *lines[1:]])
        return (
            None
            if said == found
            else f"its first line says the SHA-256 {said!r}, and its lines have {found!r}"
        )


@ready
class Line(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a recording."""

    position: int
    stream: str
    version: int
    topic: str
    event: msgspec.Raw
    id: str
    time: int
    causation: str | None = None
    correlation: str | None = None
    erased: bool = False
    """Whether its words were erased before it was exported."""
    decision: str = ""
    """The record of the decision that led to it; empty for none."""


_KNOWN: Final = tuple(name for name in Line.__struct_fields__ if name not in {"event", "erased"})
"""What a line says of an event beside itself, by the names that it has in the log."""


def lines_of(kept: RecordingHeader, lines: Sequence[Line]) -> list[bytes]:
    """Return the lines of a recording, without their line feeds: the first tells what has to follow."""
    follow = [msgspec.json.encode(line) for line in lines]
    first = msgspec.structs.replace(kept, events=len(follow), sha256="")
    found = _hash_of([msgspec.json.encode(first), *follow])
    return [msgspec.json.encode(msgspec.structs.replace(first, sha256=found)), *follow]


def _hash_of(lines: Sequence[bytes]) -> str:
    # Line by line: a checkout may write other line ends, which change nothing that is said.
    found = hashlib.sha256()
    for line in lines:
        found.update(line + b"\n")
    return found.hexdigest()


def line_of(recorded: Recorded, *, erased: bool = False) -> Line:
    """Return the line of an event; `erased`: its texts are gone."""
    known = {name: getattr(recorded, name) for name in _KNOWN}
    return Line(**known, event=msgspec.Raw(encode(recorded.event)), erased=erased)


def recorded_in(line: Line) -> Recorded:
    """Return the event of a line."""
    known = {name: getattr(line, name) for name in _KNOWN}
    event = decode(line.topic, bytes(line.event))
    return Recorded(**known, event=event, epoch=0, prev="", digest="", hash="")
