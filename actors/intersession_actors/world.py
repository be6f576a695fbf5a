"""What an actor is handed of the world: the log, the clock, timers, other actors, agents and channels.

Handed in and never reached for, so that the same actors run in a simulator, in a replay and in production.
"""

from collections.abc import Callable
from typing import Any, Protocol

from intersession_actors.commands import Command
from intersession_actors.context_cache import ContextCache
from intersession_actors.run_context import RunContext
from intersession_actors.send_policy import Verdict
from intersession_actors.session_state import Running
from intersession_actors.turn import Turn
from intersession_events.exchange import ExchangeAccepted
from intersession_events.keys import SessionKey
from intersession_events.log import Log
from intersession_events.session import Route

OnDisk = Callable[[Callable[[], Any], Callable[[Any], None]], None]
"""Does some work and gives its result, or the exception it raised, to the second function."""

Tell = Callable[[Command], None]


class Clock(Protocol):
    """The time, in milliseconds since 1970."""

    def now_ms(self) -> int:
        """Return the time."""
        ...


class Timers(Protocol):
    """Wakes somebody at a time. A key has one timer; setting it again moves it."""

    def at(self, deadline_ms: int, key: tuple[str, ...], fire: Callable[[], None]) -> None:
        """Call `fire` once the clock has reached the deadline."""
        ...

    def cancel(self, key: tuple[str, ...]) -> None:
        """Forget a timer."""
        ...


class Agents(Protocol):
    """Runs agents, outside of any actor."""

    def has(self, agent_id: str) -> bool:
        """Whether an agent of this id is registered in this process."""
        ...

    def start(self, turn: Turn, done: Callable[[Any], None]) -> None:
        """Call the agent; `done` gets its `AgentResult`."""
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

    def idempotent(self, name: str) -> bool:
        """Whether the channel shows a text once, however often it gets its key."""
        ...

    def start(self, name: str, outbound: Any, done: Callable[[Any], None]) -> None:
        """Call the channel; `done` gets `Delivered` or `NotDelivered`."""
        ...

    def has_threads(self, name: str) -> bool:
        """Whether the channel can open threads."""
        ...

    def open_thread(self, name: str, wanted: Any, done: Callable[[Any], None]) -> None:
        """Have the channel open a thread; `done` gets `ThreadOpened` or `NotDelivered`."""
        ...


class SendJudge(Protocol):
    """The send policy as it is now (POL-1, POL-2)."""

    def __call__(
        self, *, key: str, channel: str | None, chat_type: str | None, override: str | None
    ) -> Verdict:
        """Say whether the words may go out, and by which rule."""
        ...


class TurnMaker(Protocol):
    """Makes what an agent gets, with the tools bound to its session."""

    def __call__(self, *, agent_id: str, key: str, running: Running, context: RunContext) -> Turn:
        """Return the turn."""
        ...


class World:
    """Everything an actor needs, wired once by the system."""

    def __init__(
        self,
        *,
        log: Log,
        clock: Clock,
        timers: Timers,
        agents: Agents,
        channels: Channels,
        judge_send: SendJudge,
        make_turn: TurnMaker,
        retry_interrupted: int = 1,
        idle_ms: int = 60_000,
        store_retry_ms: int = 60_000,
    ) -> None:
        self.log = log
        self.contexts = ContextCache(log)
        self.clock = clock
        self.timers = timers
        self.agents = agents
        self.channels = channels
        self.judge_send = judge_send
        self.make_turn = make_turn
        self.retry_interrupted = retry_interrupted
        self.idle_ms = idle_ms
        self.store_retry_ms = store_retry_ms
        self.stopping = False
        """No further run is begun: its attempt would only be cut off."""
        self.tell_session: Callable[[str, Command], None] = _nobody
        self.tell_flow: Callable[[str, Command], None] = _nobody
        """Tells the process manager of a stream: coordinator, spawner or outbox, by its prefix."""
        self.passivated: Callable[[str], None] = _nobody_sleeps
        self.agent_of: Callable[[str], str] = lambda key: SessionKey.parse(key).agent_id
        self.transcript_path: Callable[[str], str | None] = _no_transcripts
        """Where the transcript of a session id is mirrored, if it is (LIST-5)."""
        self.on_disk: OnDisk = _here
        """Does work on files outside of any actor, and hands on what came of it."""
        self.announce_route: Callable[[ExchangeAccepted], Route | None] = _own_route


def _nobody(_to: str, _command: Command) -> None:
    raise RuntimeError("the world is not wired yet")


def _nobody_sleeps(_key: str) -> None:
    raise RuntimeError("the world is not wired yet")


def _own_route(accepted: ExchangeAccepted) -> Route | None:
    return accepted.route


def _here(work: Callable[[], Any], done: Callable[[Any], None]) -> None:
    result: Any
    try:
        result = work()
    except Exception as error:  # noqa: BLE001 - the outcome of the work, whatever it is
        result = error
    done(result)


def _no_transcripts(_session_id: str) -> str | None:
    return None
