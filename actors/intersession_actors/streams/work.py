"""What the owner of a stream leaves to the actor around it, and what it gives it: commands as they are told, and commits."""

from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from intersession_actors.streams.commands import Ask, Command
from intersession_actors.streams.outcomes import Refused
from intersession_actors.streams.plan import Plan
from intersession_events.errors import AppendConflict, NotStorable
from intersession_events.log import InFlight, Recorded, StreamAppend

if TYPE_CHECKING:
    from intersession_actors.streams.owner import Owner

S = TypeVar("S")
C = TypeVar("C", bound=Command)


class Told(NamedTuple, Generic[C]):
    """A command, and what became of it with the store."""

    command: C
    away_since: float | None = None
    """Since when the store could not take what it leads to (seconds of the monotonic clock; None: it could, or was not asked)."""
    asked: "AskedAppend | None" = None
    """The append that the store was asked for. If its answer was lost, only the very same append finds itself in the log."""

    def anew(self) -> "Told[C]":
        """Return it as one that is to be decided again."""
        return self._replace(asked=None)


class AskedAppend(NamedTuple):
    """What the store was asked for; with `leads_on` it waits a moment for others, and what follows may be behind it."""

    appends: tuple[StreamAppend, ...]
    leads_on: bool


class Commit(NamedTuple, Generic[S]):
    """An append that is durable: all its events, those of the owner's stream that are new to it, and the state before them."""

    recorded: tuple[Recorded, ...]
    fresh: tuple[Recorded, ...]
    before: S | None
    again: bool = False
    """Whether it had been recorded before, by another try of the same append."""

    def of_others(self, stream: str) -> dict[str, tuple[Recorded, ...]]:
        """Return the events of other streams than this one, by stream, in order.

        Each stream has an empty tuple where all had been recorded before: it may have heard of it, and has to look how far it
        has come.
        """
        others = dict.fromkeys(item.stream for item in self.recorded if item.stream != stream)
        if self.again:
            return dict.fromkeys(others, ())
        return {name: tuple(item for item in self.recorded if item.stream == name) for name in others}


class Work(Protocol[S, C]):
    """What the owner of a stream leaves to the actor around it."""

    def evolve(self, state: S | None, recorded: Recorded) -> S:
        """Apply one recorded event."""
        ...

    def plan(self, owner: "Owner[S, C]", command: C) -> Plan | Refused | None:
        """Decide: what does the command lead to? None: it was dealt with, and nobody waits for an answer."""
        ...

    def record(self, command: C, plan: Plan) -> str:
        """Return the record of the decision that a plan is; empty for none."""
        ...

    def send_through(
        self, owner: "Owner[S, C]", plan: Plan, appends: tuple[StreamAppend, ...], ask: Ask
    ) -> None:
        """Have a session's actor make the append; the outcome comes back by `Owner.committed` or `Owner.step_failed`."""
        ...

    def leads_on(self, owner: "Owner[S, C]", append: StreamAppend, in_flight: InFlight) -> None:
        """Tell of an append that is queued and not yet durable, so that what follows from it can share its commit."""
        ...

    def read_back(self, owner: "Owner[S, C]") -> None:
        """Make good what nobody acted on: the log holds events of the stream that its owner has not heard of."""
        ...

    def loaded(self, owner: "Owner[S, C]") -> bool:
        """Look at a stream that was just read. False: there is none, and the owner is no more."""
        ...

    def committed(self, owner: "Owner[S, C]", command: C | None, commit: "Commit[S]") -> None:
        """Do what durable events ask for."""
        ...

    def accepted(self, owner: "Owner[S, C]", command: C, recorded: tuple[Recorded, ...]) -> None:
        """Tell whoever waits for a command that it is durable."""
        ...

    def refused(self, owner: "Owner[S, C]", command: C, refused: Refused) -> None:
        """Tell whoever waits for a command that nothing comes of it."""
        ...

    def overtaken(self, owner: "Owner[S, C]", told: Told[C], error: AppendConflict) -> None:
        """Say what to do when another stream of the append was not where it was expected."""
        ...

    def unstorable(self, command: C, error: NotStorable) -> C | Refused | None:
        """Return what takes the place of a command that can't be recorded. None: there is nothing, the owner can't go on."""
        ...

    def gives_up(self, owner: "Owner[S, C]", command: C, away_ms: int) -> bool:
        """Whether a command is given up that the store could not take for so long."""
        ...

    def cannot_go_on(self, owner: "Owner[S, C]", error: Exception, told: Told[C] | None) -> None:
        """Take over an owner that failed: its stream is damaged, or a command broke it."""
        ...

    def at_rest(self, owner: "Owner[S, C]") -> None:
        """Nothing waits and nothing is under way."""
        ...
