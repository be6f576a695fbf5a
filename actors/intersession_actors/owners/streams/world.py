"""An actor's access to the world: the log, the clock, timers, other actors, agents and channels.

Handed in and never reached for, so that the same actors run in a simulator, in a replay and in production.
"""

from collections.abc import Callable, Collection, Container
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeVar

from intersession_actors.outside.agents.executor import AgentExecutor
from intersession_actors.outside.channels.caller import ChannelCaller
from intersession_actors.owners.chains.cause import Cause, CausedBy
from intersession_actors.owners.chains.ledger import ChainLedger
from intersession_actors.owners.streams.commands import Command
from intersession_actors.owners.streams.rules_in_force import RulesInForce
from intersession_actors.owners.streams.standing import Standing
from intersession_actors.owners.streams.texts import RunTexts
from intersession_actors.rules.config.config import Config
from intersession_actors.running.failures.reports import Reports
from intersession_actors.running.host.calls import Inside
from intersession_actors.running.runtime.clock import Clock, Stopwatch
from intersession_actors.running.runtime.timers import Timers
from intersession_events.facts import Budget, ExchangeAccepted, Route
from intersession_events.log.log import ActorsLog

T = TypeVar("T")


class OnDisk(Protocol):
    """Runs work that waits for files, or for the log, outside of any actor."""

    def __call__(self, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
        """Do the work; `done` gets its result, or the exception it raised. Nothing comes back while the system stops."""
        ...


@dataclass(frozen=True, kw_only=True)
class ForkOf:
    """The rules of a fork's log. For any other log they are empty."""

    accepted_as: Callable[[ExchangeAccepted], ExchangeAccepted] = lambda accepted: accepted
    """Says with which settings an exchange goes on: those it was accepted with, but for what was set in the fork (FORK-4)."""
    sealed: Callable[[str], bool] = lambda _: False
    """Says whether nothing goes to a channel: those of a fork are sealed (FORK-5)."""
    frozen_runs: Collection[str] = ()
    """The runs that do not go on, since they were open when the log was forked and are not of the run that was (FORK-6)."""
    frozen_flows: Container[str] = ()
    """The streams of exchanges, spawns and deliveries that do not go on, for the same reason."""
    cut_runs: Container[str] = ()
    """The runs that were under way when the log was forked, and go on."""
    begun: Callable[[int], int] = int
    """Says, of a time (ms) at which something began, when it would have begun without the pauses since then that a fork makes."""


NOT_A_FORK: Final = ForkOf()


@dataclass(kw_only=True, eq=False)
class Mail:
    """Reaches others: actors by their streams, the supervisor, and threads that wait for files and for the log."""

    tell_session: Callable[[str, Command], None]
    """Reaches a session's actor, by the session's key."""
    tell_flow: Callable[[str, Command], None]
    """Reaches the process manager of a stream, by the stream's prefix."""
    set_aside: Callable[[str, str], None]
    """Is told of a flow that can't go on, and why."""
    resume_flow: Callable[[str], None]
    """Has a flow resumed as after a restart."""
    read_back: Callable[[str], None]
    """Is told of a session that goes on from what the log has: its flows look for what they were not told."""
    passivated: Callable[[str], None]
    """Is told that a session's actor went to sleep."""
    on_disk: OnDisk
    texts_of: Callable[[str], RunTexts]
    """Reads the texts of a run from the log; for `on_disk`."""
    number_of: Callable[[Route, str], int]
    """Counts the texts to a place, up to that of a delivery; for `on_disk`."""


class Time(NamedTuple):
    """The clock for recorded times, timers, and a stopwatch: deadlines use the stopwatch, never the clock."""

    clock: Clock
    timers: Timers
    stopwatch: Stopwatch


@dataclass(kw_only=True, eq=False)
class World:
    """Everything an actor needs from outside, passed in once by the system."""

    log: ActorsLog
    time: Time
    mail: Mail
    reports: Reports
    """Tells the operator what goes wrong."""
    agents: AgentExecutor
    channels: ChannelCaller
    rules: RulesInForce
    """What the settings in force say of a session."""
    chains: ChainLedger
    """Where a run of a causal chain is reserved before it is asked for."""
    standing: Standing
    limits: Config
    """The settings that the system began with: what of them limits actors changes with the next start."""
    fork: ForkOf = NOT_A_FORK

    def __post_init__(self) -> None:
        self.chains.on_over(lambda root: self.time.stopwatch.forget("chain", root))

    def inside(self, caused: CausedBy | None) -> Inside:
        """Return the context for host code that is called for a cause; None for no cause."""
        return nullcontext if caused is None else Cause(caused, self.time.clock).inside

    def now_of(self, budget: Budget) -> int:
        """Return the time for a causal chain: from its beginning, by the monotonic clock (LOOP-5, L8)."""
        if not budget.started_ms:
            return self.time.clock.now_ms()  # when it began is not known
        since_ms = self.fork.begun(budget.started_ms)
        return budget.started_ms + self.time.stopwatch.elapsed_ms("chain", budget.root, since_ms=since_ms)
