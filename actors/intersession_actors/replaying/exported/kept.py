"""A recording in a file: what it is of, and then an event a line, as JSON."""

import msgspec

from intersession_events.facts import decode, encode, ready
from intersession_events.log import Recorded


@ready
class Kept(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The first line of a recording in a file."""

    log_id: str
    run: str | None
    begins: int


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
    stood: bool | None = None
    """Whether the log's time had not moved on since the event before, so that the clock may have been behind it; None was not written."""
    epoch: int = 0
    """Which process recorded it; 0 was not written."""
    erased: bool = False
    """Whether its words were erased before it was exported."""


def line_of(recorded: Recorded, *, stood: bool, erased: bool = False) -> Line:
    """Return the line of an event; `stood`: the log's time had not moved on since the event before; `erased`: its words are gone."""
    return Line(
        position=recorded.position,
        stream=recorded.stream,
        version=recorded.version,
        topic=recorded.topic,
        event=msgspec.Raw(encode(recorded.event)),
        id=recorded.id,
        time=recorded.time,
        causation=recorded.causation,
        correlation=recorded.correlation,
        stood=stood,
        epoch=recorded.epoch,
        erased=erased,
    )


def recorded_in(line: Line) -> Recorded:
    """Return the event of a line."""
    return Recorded(
        position=line.position,
        stream=line.stream,
        version=line.version,
        topic=line.topic,
        event=decode(line.topic, bytes(line.event)),
        id=line.id,
        time=line.time,
        causation=line.causation,
        correlation=line.correlation,
        epoch=line.epoch,
        prev="",
        digest="",
        hash="",
    )
