"""What an actor is handed of the world: the log, the clock, timers, other actors, agents and channels.

Handed in and never reached for, so that the same actors run in a simulator, in a replay and in production.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from intersession_actors.agents import OnResult, Turn
from intersession_actors.chains import ChainLedger
from intersession_actors.channels import (
    Asked,
    DeliveryResult,
    NotDelivered,
    Outbound,
    ThreadOpened,
    ThreadWanted,
)
from intersession_actors.config import SendAction
from intersession_actors.failures import Reports
from intersession_actors.host import Inside
from intersession_actors.policy import Verdict
from intersession_actors.runtime import Clock, Stopwatch
from intersession_actors.streams.commands import Command
from intersession_events.facts import Budget, ChatType, ExchangeAccepted, Route
from intersession_events.log import Log

T = TypeVar("T")

Tell = Callable[[Command], None]


class OnDisk(Protocol):
    """Does work on files outside of any actor."""

    def __call__(self, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
        """Do the work; `done` gets its result, or the exception it raised. Nothing comes back while the system stops."""
        ...


class Timers(Protocol):
    """Wakes somebody after a while. A key has one timer; setting it again moves it."""

    def after(self, delay_ms: int, key: tuple[str, ...], fire: Callable[[], None]) -> None:
        """Call `fire` in so many milliseconds, at once for 0 and less."""
        ...

    def cancel(self, key: tuple[str, ...]) -> None:
        """Forget a timer."""
        ...


class Agents(Protocol):
    """Runs agents, outside of any actor."""

    def has(self, agent_id: str) -> bool:
        """Whether an agent of this id is registered in this process."""
        ...

    def start(self, turn: Turn, done: OnResult, late: OnResult, *, inside: Inside) -> None:
        """Call the agent `inside` what is given; `done` gets its result, `late` what comes after it was cancelled."""
        ...

    def cancel(self, run_id: str) -> None:
        """Stop calling it, as far as that can be done."""
        ...

    def is_running(self, run_id: str, attempt: int) -> bool:
        """Whether this process is calling the agent for this attempt."""
        ...


class Channels(Protocol):
    """Calls channels, outside of any actor."""

    def has(self, name: str) -> bool:
        """Whether a channel of this name is registered."""
        ...

    @property
    def registered(self) -> tuple[str, ...]:
        """The names of all channels that are registered, sorted."""
        ...

    def idempotent(self, name: str) -> bool:
        """Whether the channel shows a text once, however often it gets its key."""
        ...

    def start(
        self,
        name: str,
        outbound: Outbound,
        done: Callable[[DeliveryResult], None],
        *,
        attempt: int = 1,
        inside: Inside,
    ) -> None:
        """Call the channel `inside` what is given; `done` gets what came of it."""
        ...

    def delivery(self, key: str, attempt: int) -> DeliveryResult | Asked:
        """Return what came of an attempt of this process that is not recorded yet, or that it is under way."""
        ...

    def delivery_recorded(self, key: str, attempt: int) -> None:
        """Hear that the outcome of an attempt is in the log."""
        ...

    def has_threads(self, name: str) -> bool:
        """Whether the channel can open threads."""
        ...

    def open_thread(
        self, name: str, wanted: ThreadWanted, done: Callable[[ThreadOpened | NotDelivered], None]
    ) -> None:
        """Have the channel open a thread; `done` gets the thread, or why there is none."""
        ...

    def thread(self, key: str) -> ThreadOpened | NotDelivered | Asked:
        """Return what came of a thread that this process asked for, if that is not recorded yet."""
        ...

    def thread_recorded(self, key: str) -> None:
        """Hear that a thread, or that there is none, is in the log."""
        ...


class SendJudge(Protocol):
    """The send policy as it is now (POL-1, POL-2)."""

    def __call__(
        self, *, key: str, channel: str | None, chat_type: ChatType | None, override: SendAction | None
    ) -> Verdict:
        """Say whether the words may go out, and by which rule."""
        ...


class World:
    """Everything an actor needs, handed in once and whole by the system.

    `tell_session` and `tell_flow` reach other actors: a session by its key, the process manager of a stream by the stream's
    prefix. The `stopwatch` says how long ago something began: deadlines are reckoned by it, never by the `clock`, which is for what
    is recorded. `set_aside` is told of a flow that can't go on, and why; `resume_flow` has a flow resumed as after a restart. `chains` is where a run of a causal chain is reserved before it is asked for. `agent_of` says who runs a session. `passivated` is told that a session's actor went to sleep. `on_disk` does work on files
    outside of any actor and hands on what came of it. `reports` tells the operator what goes wrong, `failure_text` is what a person is
    told whose message found no answer. `announce_route` is where an exchange's announce goes, `transcript_path` where the
    transcript of a session id is mirrored, if it is (LIST-5).
    """

    def __init__(
        self,
        *,
        log: Log,
        clock: Clock,
        timers: Timers,
        reports: Reports,
        agents: Agents,
        channels: Channels,
        judge_send: SendJudge,
        tell_session: Callable[[str, Command], None],
        tell_flow: Callable[[str, Command], None],
        set_aside: Callable[[str, str], None],
        resume_flow: Callable[[str], None],
        chains: ChainLedger,
        passivated: Callable[[str], None],
        agent_of: Callable[[str], str],
        on_disk: OnDisk,
        announce_route: Callable[[ExchangeAccepted], Route | None],
        transcript_path: Callable[[str], str | None],
        failure_text: Callable[[], str],
        retry_interrupted: int,
        idle_ms: int,
        store_retry_ms: int,
        delivery_max_age_ms: int,
    ) -> None:
        self.log = log
        self.clock = clock
        self.stopwatch = Stopwatch(clock)
        self.timers = timers
        self.reports = reports
        self.agents = agents
        self.channels = channels
        self.judge_send = judge_send
        self.tell_session = tell_session
        self.tell_flow = tell_flow
        self.set_aside = set_aside
        self.resume_flow = resume_flow
        self.chains = chains
        self.passivated = passivated
        self.agent_of = agent_of
        self.on_disk = on_disk
        self.announce_route = announce_route
        self.transcript_path = transcript_path
        self.failure_text = failure_text
        self.retry_interrupted = retry_interrupted
        self.idle_ms = idle_ms
        self.store_retry_ms = store_retry_ms
        self.delivery_max_age_ms = delivery_max_age_ms
        self.stopping = False
        """No further run is begun: its attempt would only be cut off."""

    def now_of(self, budget: Budget) -> int:
        """Return the time as a causal chain counts it: from its beginning, by the clock that nobody sets (LOOP-5, L8)."""
        if not budget.started_ms:
            return self.clock.now_ms()  # when it began is not known
        return budget.started_ms + self.stopwatch.elapsed_ms("chain", budget.root, since_ms=budget.started_ms)
