"""What a sequence diagram is made of: lanes, and rows in the order of the log. Pure.

All texts are raw, of anybody's making: each way of drawing makes them harmless first.
"""

from typing import Literal

import msgspec

from intersession_events.basics.times import length

LaneKind = Literal["session", "person", "channel", "operator"]
MarkKind = Literal["tool", "note", "failed", "end"]
"""`tool`: what an agent did meanwhile; `note`: what happened besides; `failed`: what went wrong; `end`: how it ended."""


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """A participant. `id` is the session's key, or channel and address; `name` is what people read."""

    id: str
    name: str
    kind: LaneKind


class Arrow(msgspec.Struct, frozen=True, kw_only=True, tag="arrow", tag_field="row", omit_defaults=True):
    """A message from one lane to another; lanes by their numbers, from 0 on."""

    position: int
    """Where its words were said: for an answer that is carried on, the event that the place `RUN@turn:2` names."""
    time: int
    """When that was recorded, in ms."""
    source: int
    target: int
    text: str
    how: str
    """What it is, in a word or two: `asks`, `replies`, `turn 2`, `announces`."""
    tokens: int | None = None
    """How many tokens the run took that made these words; None where none said so."""
    arrived: int | None = None
    """Where it came to the other's transcript, or to the outbox; None where that is its position."""
    caller: bool = False
    """Whether it is of the run that called, which the run that is drawn came of."""

    def said(self, between: str = ": ") -> str:
        """Return what stands at it: what it is, and the words, if it has any."""
        return f"{self.how}{between}{self.text}" if self.text.strip() else self.how


class Mark(msgspec.Struct, frozen=True, kw_only=True, tag="mark", tag_field="row"):
    """Something that happened on one lane, or to all of them (`lane` is None). `caller` is as of an arrow."""

    position: int
    time: int
    lane: int | None
    text: str
    kind: MarkKind
    caller: bool | msgspec.UnsetType = msgspec.UNSET


class Gap(msgspec.Struct, frozen=True, kw_only=True, tag="gap", tag_field="row", omit_defaults=True):
    """A stretch in which nothing happened, folded.

    `forked`: it lies between the cut of a fork and its making, which is no time that the run took. `held`: a text waited for a
    release.
    """

    ms: int
    forked: bool = False
    held: bool = False

    @property
    def said(self) -> str:
        """What stands at it."""
        if self.forked:
            return f"the cut: forked {length(self.ms)} later, which is no time of the run"
        return f"held for {length(self.ms)}" if self.held else f"{length(self.ms)} later"


Row = Arrow | Mark | Gap
