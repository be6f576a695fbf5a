"""Reads published checkpoints: a line of JSON each, in the order in which they were taken, or signed notes."""

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from intersession_events.basics.errors import BadCheckpoint
from intersession_events.proofs.notes import PublishedNote, notes_in
from intersession_events.proofs.statement import Checkpoint

_DECODE: Final = msgspec.json.Decoder(Checkpoint, strict=True).decode


Published: TypeAlias = Checkpoint | PublishedNote


def published_in(text: bytes) -> Sequence[Published]:
    """Return the checkpoints of a published file, as lines or as notes (TLOG-2), or of one that holds a single one in any layout.

    A line that was cut off while it was written is passed over: the last one without its line feed, and one that the next
    line begins with.

    Raises:
        BadCheckpoint: a line is invalid, or there are no checkpoints.
    """
    try:
        return (_DECODE(text),)
    except msgspec.MsgspecError:
        pass
    if text.strip() and not text.lstrip().startswith(b"{"):
        return notes_in(text)
    lines = text.split(b"\n")
    found: list[Checkpoint] = []
    for number, line in enumerate(lines[:-1], 1):
        if line.strip() and not lines[number].startswith(line.removesuffix(b"}")):
            try:
                found.append(_DECODE(line))
            except msgspec.MsgspecError as error:
                raise BadCheckpoint(f"line {number} is no published checkpoint ({error})") from error
    if not found:
        raise BadCheckpoint("it holds no published checkpoint; `checkpoints.publish` says where they go")
    return found
