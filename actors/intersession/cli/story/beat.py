"""One beat of a conversation as it is read back: somebody says something to somebody, or something happens."""

from typing import Literal, NamedTuple

import msgspec

from intersession_events.log import Recorded

Kind = Literal["said", "tool", "note", "end"]
"""`said`: words from one to another; `tool`: what an agent did meanwhile; `note`: what happened besides; `end`: how it
all ended."""


class Told(NamedTuple):
    """What there is to tell of an event. `who` and `to` are session keys, routes, or words; `text` is raw."""

    kind: Kind
    how: str
    who: str | None = None
    to: str | None = None
    text: str | None = None


class Beat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is told, and where it stands in the log. `cause` is the position of the beat that led to it, if one did."""

    position: int
    time: int
    kind: Kind
    how: str
    who: str | None = None
    to: str | None = None
    text: str | None = None
    cause: int | None = None


def beat_of(told: Told, recorded: Recorded, cause: int | None) -> Beat:
    """Return what is told of an event in its place."""
    return Beat(position=recorded.position, time=recorded.time, cause=cause, **told._asdict())
