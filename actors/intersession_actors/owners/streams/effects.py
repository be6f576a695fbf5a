"""What a command leads to: the plan of its events, and effects, which are values that the actor around an owner does one after the other.

First is what the owner itself asks for, then what durable events ask for of others: clocks, the operator, other actors. Kinds that one
actor alone has (a channel is called, an agent is) stand in `effects.py` of its room. What events ask for waits until they are
durable; what is done next is decided when all before it is done.
"""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec

from intersession_actors.owners.chains.cause import CausedBy
from intersession_actors.owners.chains.ledger import ChainUnread
from intersession_actors.owners.streams.commands import (
    Accepted,
    Ask,
    Command,
    FlowCommand,
    Refused,
    RunEnded,
    Step,
)
from intersession_actors.owners.streams.texts import TextsUnread
from intersession_actors.running.failures.failure import FailureKind
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import DeliveryDecided, Event
from intersession_events.log.log import InFlight
from intersession_events.log.recorded import StreamAppend

Unread = ChainUnread | TextsUnread
"""What a decision raises where it looks at something that has to be read first: what a causal chain has used, the texts of a run."""
C = TypeVar("C", bound=Command)


class Effect(msgspec.Struct, frozen=True):
    """Base of all effects."""


class AppendRequest(msgspec.Struct, frozen=True):
    """A request to the store.

    With a word that is told `ahead` of the commit it waits a moment for others, and what follows may be behind it.
    """

    appends: tuple[StreamAppend, ...]
    ahead: RunEnded | None = None


class CommandOutcome(msgspec.Struct, Generic[C], frozen=True):
    """A command, and its outcome in the store."""

    command: C
    away_since: float | None = None
    """Since when the store could not take what it leads to (seconds of the monotonic clock; None: it could, or was not asked)."""
    asked: AppendRequest | None = None
    """The append that the store was asked for. If its answer was lost, only the very same append finds itself in the log."""


class Load(Effect, frozen=True):
    """Have the stream read."""

    ask: Ask


class Read(Effect, frozen=True):
    """Have a decision's missing input read."""

    unread: Unread
    ask: Ask


class Append(Effect, frozen=True):
    """Ask the log for an append; `behind` is the one that it follows from, if that may not be durable yet."""

    asked: AppendRequest
    ask: Ask
    behind: InFlight | None = None


class AskStoreAgain(Effect, frozen=True):
    """Repeat a failed request to the store after a while."""

    number: int


class TellFlow(Effect, frozen=True):
    """Tell the flow that a command names."""

    command: FlowCommand


class TellSession(Effect, frozen=True):
    """Tell a session's actor: a step to record, or that something is due."""

    key: str
    command: Command


class Answer(Effect, frozen=True):
    """A command has its outcome: tell the waiting caller."""

    command: Any  # of the kind that the owner takes
    outcome: Accepted | Refused


class ReadBack(Effect, frozen=True):
    """Carry out effects that were missed: the log holds events of the stream that its owner has not heard of."""


class Loaded(Effect, frozen=True):
    """The stream was read; its owner continues from there."""


class Abandoned(Effect, frozen=True):
    """The store was away too long for a command that is not queued for ever."""

    command: Any  # of the kind that the owner takes


class Failed(Effect, frozen=True):
    """The owner can't go on: its stream is damaged, or a command broke it.

    With `AppendConflict` another stream of the append was not where it was expected.
    """

    error: Exception
    told: CommandOutcome[Any] | None  # of the kind that the owner takes


# --- what durable events ask for


class AttemptDue(Effect, frozen=True):
    """A host's code is about to be called for a run, or for a delivery by its key: until then, no crash has interrupted it."""

    name: str
    attempt: int


class StartStopwatch(Effect, frozen=True):
    """Start measuring at the time of the decision."""

    watch: tuple[str, ...]


class DropStopwatch(Effect, frozen=True):
    """Stop measuring."""

    watch: tuple[str, ...]


class Until(msgspec.Struct, frozen=True):
    """A time after a start: by its stopwatch, or by the log's time if this process did not see the start."""

    watch: tuple[str, ...]
    since_ms: int
    lasts_ms: int


class Sleep(Effect, frozen=True):
    """Send a message after a while, or at the first of several times. A timer of the same name is moved."""

    timer: tuple[str, ...]
    then: TellFlow | TellSession
    after_ms: int = 0
    until: tuple[Until, ...] = ()


class StopTimer(Effect, frozen=True):
    """Cancel a timer."""

    timer: tuple[str, ...]


class Report(Effect, frozen=True):
    """Report a failure to the operator, with fields of `Failure`, and the cause for the host's callback."""

    kind: FailureKind
    fields: dict[str, Any]  # each has a type of its own
    caused: CausedBy | None = None


class Pass(Effect, frozen=True):
    """Pass a point of the crash matrix (`crash_point`)."""

    point: str


Through = Callable[[tuple[StreamAppend, ...]], tuple[str, Step]]
"""Gets the appends of a flow's step and returns the key of the session that records them, and the command to it."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Events of the owner's stream and appends of other streams, in one append: all or none.

    With `through` a session's actor makes the append, from a command that carries it: a step over a session's stream is always made by
    that session's actor, so that each stream has one writer. A plan without events is accepted as it is.

    One that `leads_on` is told of before it is durable, so that the next step of its flow can share its commit: that one
    is `behind` it, and is recorded only if this one is.

    The record of the decision is made of the command and of what was known (`knew`). `asked` is the command that was decided
    upon, where it is another than the one that was taken.

    `effects` are done at once, ahead of the append: what is to be so when it is durable, or what was open and is carried on.

    `cause` led to it. With `carried_by_last` the last of its own events led to what is carried: its id is not known before.
    """

    events: tuple[Event, ...] = ()
    carried: tuple[StreamAppend, ...] = ()
    through: Through | None = None
    leads_on: bool = False
    behind: InFlight | None = None
    cause: str | None = None
    correlation: str | None = None
    carried_by_last: bool = False
    asked: Command | None = None
    knew: JsonObject = {}
    effects: Sequence[Effect] = ()

    def told(self) -> Iterator[Event]:
        """Yield its events, and the texts for channels that it carries: they have the words that its record tells of."""
        yield from self.events
        for append in sorted(self.carried, key=attrgetter("stream")):
            yield from (one.event for one in append.drafts if isinstance(one.event, DeliveryDecided))
