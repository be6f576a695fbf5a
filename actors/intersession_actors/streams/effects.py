"""What an owner of a stream gives back to be done: values, which the actor around it does one after the other.

That an append is durable comes before everything that it asks for. What is done next is decided when all before it is done.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from intersession_actors.chains import ChainUnread
from intersession_actors.streams.commands import Ask, Command, FlowCommand, Step
from intersession_actors.streams.outcomes import Accepted, Refused
from intersession_actors.streams.texts import TextsUnread
from intersession_events.log import InFlight, Recorded, StreamAppend

S = TypeVar("S")
Unread = ChainUnread | TextsUnread
"""What a decision raises where it looks at something that has to be read first: what a causal chain has used, the texts of a run."""
C = TypeVar("C", bound=Command)


class AskedAppend(msgspec.Struct, frozen=True):
    """What the store was asked for; with `leads_on` it waits a moment for others, and what follows may be behind it."""

    appends: tuple[StreamAppend, ...]
    leads_on: bool


class Told(msgspec.Struct, Generic[C], frozen=True):
    """A command, and what became of it with the store."""

    command: C
    away_since: float | None = None
    """Since when the store could not take what it leads to (seconds of the monotonic clock; None: it could, or was not asked)."""
    asked: AskedAppend | None = None
    """The append that the store was asked for. If its answer was lost, only the very same append finds itself in the log."""


class Load(msgspec.Struct, frozen=True):
    """Have the stream read."""

    ask: Ask


class Read(msgspec.Struct, frozen=True):
    """Have something read that a decision looks at, and that is not at hand."""

    unread: Unread
    ask: Ask


class Append(msgspec.Struct, frozen=True):
    """Ask the log for an append; `behind` is the one that it follows from, if that may not be durable yet."""

    asked: AskedAppend
    ask: Ask
    behind: InFlight | None = None


class AskStoreAgain(msgspec.Struct, frozen=True):
    """Ask the store again, after a while, for what it could not do."""

    number: int


class TellFlow(msgspec.Struct, frozen=True):
    """Tell the flow that a command names."""

    command: FlowCommand


class TellSession(msgspec.Struct, frozen=True):
    """Tell a session's actor a step that it is to record."""

    key: str
    command: Step


class Answer(msgspec.Struct, Generic[C], frozen=True):
    """A command has its outcome: tell whoever waits for it."""

    command: C
    outcome: Accepted | Refused


class Durable(msgspec.Struct, Generic[S, C], frozen=True):
    """An append is durable: do what its events ask for. `command` led to it, if one of ours did.

    `fresh` are its events of the owner's stream that are new to it, `before` the state before them.
    """

    command: C | None
    fresh: Sequence[Recorded]
    before: S | None


class ReadBack(msgspec.Struct, frozen=True):
    """Do what was not done yet: the log holds events of the stream that its owner has not heard of."""


class Loaded(msgspec.Struct, frozen=True):
    """The stream was read; its owner goes on from there."""


class GivenUp(msgspec.Struct, Generic[C], frozen=True):
    """The store was away too long for a command that is not kept for ever."""

    command: C


class Failed(msgspec.Struct, Generic[C], frozen=True):
    """The owner can't go on: its stream is damaged, or a command broke it.

    With `AppendConflict` another stream of the append was not where it was expected.
    """

    error: Exception
    told: Told[C] | None


OwnerEffect = (
    Durable[S, C]
    | Answer[C]
    | Append
    | AskStoreAgain
    | Failed[C]
    | GivenUp[C]
    | Load
    | Loaded
    | ReadBack
    | Read
    | TellFlow
    | TellSession
)
