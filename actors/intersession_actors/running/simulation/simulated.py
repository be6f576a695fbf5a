"""The simulation: a system in one thread; a seed decides the order of everything, and time passes on command.

    runtime = SimulatedRuntime(seed=7)
    with SessionSystem("sqlite:///run.db", runtime=runtime, agents={...}) as system:
        system.inbound(...)                                    # drives the simulation until it has its answer
        asked = runtime.spawn(lambda: system.inbound(...))     # somebody else, at the same time
        runtime.run_until(asked.done)
        runtime.run()                                          # until nothing is left to be done
        runtime.run_for(3600)                                  # an hour of the simulation's time

Each `step` does one thing: an actor handles one message, the log writes one batch or loads one stream, or what would be
a thread (an agent, a channel, a door, the timers) goes on until it waits. Which one, the seed says. If nothing is to be
done, time passes up to the next timer; with `early`, it sometimes passes although there is work, so that timeouts race
with it. A caller that waits outside of a handler (a door, `Future.get`, a tool called by an agent) lets the simulation go on
meanwhile; a handler that waits gets an error, as on every runtime.

Agents, channels and clients are plain functions or coroutines. They must not wait for anything of the machine: no
`time.sleep`, no lock that somebody else has, no socket; `runtime.pause` waits.

The same seed gives the same log, byte for byte, if everything that the system is given does: `clock` and `new_id`, and
the log's own `entropy` and identity. A system that opens its log itself takes all of these from its runtime. A log that
is handed in is opened with `SqliteLog(path, threads=False, clock=runtime.clock.now_ms, monotonic=runtime.clock.monotonic,
entropy=runtime.entropy, new_log_id=runtime.new_id, inline=inline_views())`.

`crash` drops whatever a process has in memory: actors, threads, timers, futures, and what the log had not written. The
store is as the crash left it, and another runtime starts another system on it (`SqliteLog.crash`).
"""

from collections.abc import Callable
from concurrent.futures import Future
from random import Random
from typing import Any, ClassVar, TypeVar, cast
from uuid import UUID

import pykka

from intersession_actors.running.runtime.actor import Handler
from intersession_actors.running.runtime.inbox import Inbox
from intersession_actors.running.runtime.reply import ReplyFuture, handled_here
from intersession_actors.running.runtime.runtime import Runtime
from intersession_actors.running.simulation.greenlets import Greenlets, SimulatedClock
from intersession_actors.running.simulation.threads import SimulatedThreads
from intersession_events.log.log import Log

T = TypeVar("T")


class SimulatedReply(ReplyFuture):
    """The future of an answer. A wait for it runs the simulation."""

    greenlets: ClassVar[Greenlets]

    def get(self, *, timeout: float | None = None) -> Any:  # Pykka's own
        """Wait for the answer, for at most `timeout` seconds of the simulation (`ReplyFuture.get`)."""
        if handled_here() is None and self._get_hook is None and not self.answered:
            sleeper = self.greenlets.here()
            self.when_answered(lambda _: self.greenlets.wake(sleeper))
            self.greenlets.sleep(sleeper, timeout)
            timeout = 0
        return super().get(timeout=timeout)

    def __await__(self) -> Any:  # as `ReplyFuture`
        if handled_here() is None and self.greenlets.here().greenlet is None:
            while not self.answered and self.greenlets.step():
                yield  # the loop that drives the simulation has other things to do as well
        return (yield from super().__await__())

    __iter__ = __await__


class SimulatedActor(pykka.Actor):
    """An actor that handles one message when the simulation chooses it."""

    actor_inbox: Inbox  # pyright: ignore[reportIncompatibleVariableOverride] - no other kind is made here
    _begun = False

    @staticmethod
    def _create_actor_inbox() -> Inbox:
        return Inbox()

    def _start_actor_loop(self) -> None:
        self.actor_inbox.rouse()

    def take_turn(self) -> bool:
        """Handle one message; return whether there are more."""
        if not self._begun:
            self._begun = True
            self._actor_loop_setup()
        envelope = None if self.actor_stopped.is_set() else self.actor_inbox.take()
        if envelope is not None:
            answer = self._handle_receive(envelope.message)
            if envelope.reply_to is not None:
                envelope.reply_to.set(answer)
        if self.actor_stopped.is_set():
            return False
        # One that has no more mail finds that out by looking: it then sleeps until some comes.
        return not self.actor_inbox.empty() or self.actor_inbox.take() is not None


class SimulatedRuntime(Runtime):
    """Runs actors, and everything that would be a thread, one after the other in an order that `seed` decides.

    `early` is how probable it is that time passes although there is work. `clock` begins at a fixed time.
    """

    clock: SimulatedClock  # pyright: ignore[reportIncompatibleVariableOverride] - no other kind is made here
    threads: SimulatedThreads  # pyright: ignore[reportIncompatibleVariableOverride] - the same

    def __init__(self, seed: int = 0, *, early: float = 0.0, clock: SimulatedClock | None = None) -> None:
        clock = clock or SimulatedClock()
        self.seed = seed
        self.early = early
        self._greenlets = greenlets = Greenlets(clock, Random(seed))  # noqa: S311 - a seed decides
        self._drawn = Random(f"drawn:{seed}")  # noqa: S311 - a seed decides

        class Reply(SimulatedReply):
            """Pykka makes answers of their class alone."""

        Reply.greenlets = greenlets

        class Actor(SimulatedActor):
            @staticmethod
            def _create_future() -> ReplyFuture:
                return Reply()

        super().__init__(Actor, threads=SimulatedThreads(greenlets), clock=clock)

    def new_id(self) -> str:
        """Return the next UUID from the seed."""
        return str(UUID(int=self._drawn.getrandbits(128), version=4))

    def entropy(self, size: int) -> bytes:
        """Return the next bytes from the seed."""
        return self._drawn.randbytes(size)

    def serve(self, log: Log) -> None:
        """Do the work of a log that has no threads (`threads=False`)."""
        by_hand = cast("Any", log)  # a log of a thread of its own has no `step`

        def more() -> Callable[[], object] | None:
            return by_hand.step if by_hand.has_work else None

        if getattr(log, "has_work", None) is not None:
            by_hand.waits_on(self.threads.changed())
            self._greenlets.more = more

    # --- driving

    def step(self) -> bool:
        """Do one thing, or let time pass to the next timer; False if there is neither."""
        return self._greenlets.step(early=self.early)

    def run_until(self, happened: Callable[[], bool], *, timeout: float | None = None) -> bool:
        """Step until a condition is true; False if it is not within `timeout` seconds of the simulation's time.

        Raises:
            Stuck: nothing is left to be done, and there is no timeout.
        """
        return self._greenlets.run_until(happened, early=self.early, timeout=timeout)

    def run(self, *, most: int = 1_000_000) -> int:
        """Step until no work is left, timers included, up to a limit of steps; return the number of steps."""
        for number in range(most):
            if not self.step():
                return number
        return most

    def run_for(self, seconds: float) -> None:
        """Let some seconds pass, and do the work that is due meanwhile."""
        self._greenlets.run_until(lambda: False, early=self.early, timeout=seconds)

    def pause(self, seconds: float) -> None:
        """Wait in the simulation's time: for agents, channels and clients that are functions."""
        self._greenlets.sleep(self._greenlets.here(), seconds)

    def spawn(self, function: Callable[[], T]) -> "Future[T]":
        """Run a function concurrently, like a thread: a client, who may wait. Returns the future of its result."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                result = function()
            except BaseException as error:  # noqa: BLE001 - the caller is told, whatever it is
                future.set_exception(error)
            else:
                future.set_result(result)

        self._greenlets.start(run)
        return future

    def crash(self) -> None:
        """Drop all actors, threads, timers and futures, like the end of a process. May be called within a step.

        The log is to be dropped first (`SqliteLog.crash`), so that nothing of what ends here is written.
        """
        with self._changed:
            self._stopping = True
            refs = list(self._live.values())
        self._greenlets.more = _nothing
        for ref in refs:
            ref.abandon()
        self._greenlets.end()

    def close(self) -> None:
        """End waiting greenlets: collected as garbage, one would end in the midst of other work."""
        self._greenlets.end()

    def _prepare(self, actor: Handler) -> None:
        simulated = cast("SimulatedActor", actor)

        def turn() -> None:
            if simulated.take_turn():
                self._greenlets.add(turn)

        actor.actor_inbox.wake = lambda: self._greenlets.add(turn)


def _nothing() -> None:
    return None
