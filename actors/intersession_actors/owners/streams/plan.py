"""What a command leads to, as the rules of an owner decided it. Session actors and process managers both make plans."""

from collections.abc import Callable, Sequence

import msgspec

from intersession_actors.owners.streams.commands import Command, Step
from intersession_actors.owners.streams.effects import Effect
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import Event
from intersession_events.log.log import InFlight
from intersession_events.log.recorded import StreamAppend

Through = Callable[[tuple[StreamAppend, ...]], tuple[str, Step]]
"""Gets the appends of a flow's step and returns the key of the session that records them, and the command to it."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Events of the owner's stream and appends of other streams, all of them in one append, or none.

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

    def sent_through(self, through: Through) -> "Plan":
        """Return the same plan, appended by a session's actor."""
        return msgspec.structs.replace(self, through=through)
