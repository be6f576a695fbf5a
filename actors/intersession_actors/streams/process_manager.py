"""A process manager: many small flows, each one a stream, driven by what is told and what the log confirms.

One flow is loaded from the log when it is first spoken of and forgotten when it is closed. A step is decided by pure
rules, appended, and only then acted on. While a flow's append is under way, what else is told to it waits, in order;
the manager itself never waits, so one serves thousands of flows.

A step that also touches a session's stream is appended by that session's actor (rule 3 of the design): the plan is then
a command to it that carries the flow's events, and the manager goes on when it hears `StepTaken` or `StepRefused`.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

import msgspec
import pykka

from intersession_actors.runtime import Handler
from intersession_actors.streams.commands import (
    Accepted,
    Appended,
    Command,
    Refused,
    SessionRestarted,
    StepRefused,
    StepTaken,
    StreamLoaded,
)
from intersession_actors.streams.drafting import append_of
from intersession_actors.streams.world import World
from intersession_events.facts import Event
from intersession_events.log import Committed, Conflict, Recorded, StreamAppend, Unavailable

S = TypeVar("S")
logger = logging.getLogger(__name__)

STORE_RETRY_MS = 500
"""How long to wait before an append that the store could not take is tried again."""


class Continue(Command, frozen=True, kw_only=True):
    """Something of our own to go on with, back in our own inbox."""

    act: Callable[[], None]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a command leads to: events of the flow, appends of other streams, or a session's command around both.

    `through` gets the appends and returns the key and the command of the session that is to record them.
    """

    events: tuple[Event, ...] = ()
    carried: tuple[StreamAppend, ...] = ()
    through: Callable[[tuple[StreamAppend, ...]], tuple[str, Command]] | None = None
    cause: str | None = None
    correlation: str | None = None


class Flow(Generic[S]):
    """One stream as its manager sees it."""

    __slots__ = (
        "busy",
        "cause",
        "command",
        "correlation",
        "refused",
        "state",
        "stream",
        "told",
        "version",
        "waiting",
    )

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.state: S | None = None
        self.version = 0
        self.busy = False
        self.cause: str | None = None
        """The id of the last event: what a step of its own accord is caused by."""
        self.correlation: str | None = None
        self.command: Command | None = None
        self.told: str | None = None
        """The session that was told the last step over its stream."""
        self.waiting: deque[Command] = deque()
        self.refused: dict[str, StepRefused] = {}
        """Steps of the command under way that a session's actor would not take, by run id."""


class ProcessManager(Handler, Generic[S]):
    """Base of the coordinator, the spawner and the outbox."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self._flows: dict[str, Flow[S]] = {}

    # --- what a manager is made of

    def stream_of(self, command: Command) -> str:
        """Return the stream a command is about."""
        stream: str = getattr(command, "stream")  # noqa: B009 - each command of a flow has one
        return stream

    def evolve(self, state: S | None, recorded: Recorded) -> S:
        """Apply one recorded event."""
        raise NotImplementedError

    def plan(self, flow: "Flow[S]", command: Command) -> Plan | Refused | None:
        """Decide: what does the command lead to? None is nothing."""
        raise NotImplementedError

    def act(self, stream: str, state: S, recorded: Recorded) -> None:
        """Do what a durable event asks for."""
        raise NotImplementedError

    def is_over(self, state: S) -> bool:
        """Whether nothing can happen to the flow any more."""
        raise NotImplementedError

    # --- how it runs

    def on_receive(self, message: Any) -> None:
        """Take a command, or what comes back from the log or a session's actor."""
        match message:
            case StreamLoaded():
                self._loaded(message)
            case Appended():
                self._appended(message)
            case StepTaken():
                self._taken(message)
            case StepRefused():
                self._refused(message)
            case SessionRestarted():
                self._tell_again(message.key)
            case Continue():
                message.act()
            case Command():
                self._take(message)
            case _:
                logger.warning("%s can't take %r", type(self).__name__, message)

    def tell_self(self, command: Command) -> None:
        """Put a command of our own into our inbox, from any thread."""
        with suppress(pykka.ActorDeadError):  # we are being stopped; the log has what matters
            self.me.tell(command, urgent=True)

    def _flow(self, stream: str) -> Flow[S]:
        flow = self._flows.get(stream)
        if flow is None:
            flow = self._flows[stream] = Flow(stream)
        return flow

    def _take(self, command: Command) -> None:
        flow = self._flow(self.stream_of(command))
        flow.waiting.append(command)
        if not flow.busy and flow.state is None and not self.begins(command):
            self._load(flow)
        self._go_on(flow)

    def begins(self, command: Command) -> bool:
        """Whether a command begins a flow, so that there is nothing to load."""
        raise NotImplementedError

    def _load(self, flow: Flow[S]) -> None:
        flow.busy = True
        stream = flow.stream
        self.world.log.load(
            stream, lambda recorded: self.tell_self(StreamLoaded(stream=stream, recorded=recorded))
        )

    def _loaded(self, message: StreamLoaded) -> None:
        flow = self._flow(message.stream)
        if isinstance(message.recorded, Exception):
            logger.error("%s can't be read: %s", message.stream, message.recorded)
            self._later(("load", message.stream), lambda: self._load(flow))
            return
        flow.state, flow.version = None, 0
        for recorded in message.recorded:
            self._evolve(flow, recorded)
        flow.busy = False
        if flow.state is None:
            logger.warning("%s does not exist; what was told to it is dropped", flow.stream)
            self._never_began(flow)
            return
        self._go_on(flow)

    def _step(self, flow: Flow[S], command: Command) -> None:
        plan = self.plan(flow, command)
        if isinstance(plan, Refused):
            self.refuse(command, plan)
            plan = None
        if plan is None or not (plan.events or plan.through):
            return
        flow.busy = True
        flow.command = command
        appends = (
            append_of(
                self.world.log.log_id,
                flow.stream,
                flow.version,
                plan.events,
                time=self.world.clock.now_ms(),
                causation=plan.cause,
                correlation=plan.correlation,
            ),
            *plan.carried,
        )
        if plan.through is not None:
            flow.told, session_command = plan.through(appends)
            self.world.tell_session(flow.told, session_command)
            return
        stream = flow.stream
        self.world.log.append(
            appends, lambda outcome: self.tell_self(Appended(stream=stream, outcome=outcome))
        )

    def refuse(self, command: Command, refused: Refused) -> None:
        """Tell whoever waits for a command that it was refused."""
        answer = getattr(command, "answer", None)
        if answer is not None:
            answer(refused)

    def _appended(self, message: Appended) -> None:
        flow = self._flow(message.stream)
        match message.outcome:
            case Committed(again=True) if flow.state is None:
                # Begun in a life before ours: the log has the whole story.
                self._reload(flow)
            case Committed(recorded=recorded):
                self._committed(flow, recorded)
            case Conflict():
                # Somebody else took the step: what the log says is right, and the command is told again to it.
                self._reload(flow)
            case Unavailable(error=error):
                logger.warning("%s: the store is unavailable (%s), trying again", flow.stream, error)
                self._later(("append", flow.stream), lambda: self._reload(flow))

    def _reload(self, flow: Flow[S]) -> None:
        if flow.command is not None:
            flow.waiting.appendleft(flow.command)
            flow.command = None
        self._load(flow)

    def _taken(self, message: StepTaken) -> None:
        flow = self._flow(message.stream)
        if not message.recorded:
            self._reload(flow)
            return
        if flow.state is None and message.recorded[0].version > 1:
            # Taken in a life before ours: the log has the whole story.
            self._load(flow)
            return
        self._committed(flow, message.recorded)

    def _refused(self, message: StepRefused) -> None:
        """Decide again what a session would not take part in; a flow that has not begun does not begin."""
        flow = self._flow(message.stream)
        if flow.command is None:
            return
        if message.code == "unavailable" and flow.state is not None:
            # The store, not the session: nothing is decided by that.
            self._later(("refused", flow.stream), lambda: self._reload(flow))
            return
        command, flow.command = flow.command, None
        if flow.state is None:
            self.refuse(command, Refused(code=message.code, error=message.error))
            self._never_began(flow)
            return
        flow.refused[message.run_id] = message
        flow.busy = False
        flow.waiting.appendleft(command)
        self._go_on(flow)

    def _never_began(self, flow: Flow[S]) -> None:
        """Forget a flow; what waits to begin it (the same key, given twice at once) may do so."""
        self._flows.pop(flow.stream, None)
        for command in flow.waiting:
            if self.begins(command):
                self._take(command)

    def _tell_again(self, session_key: str) -> None:
        """Tell a session that was started again the steps it may have lost. A step it did take is known to it."""
        for flow in list(self._flows.values()):
            if flow.told == session_key and flow.command is not None:
                self._reload(flow)

    def _committed(self, flow: Flow[S], recorded: Sequence[Recorded]) -> None:
        command, flow.command = flow.command, None
        flow.refused.clear()
        fresh: list[Recorded] = []
        for item in recorded:
            if item.stream == flow.stream and item.version > flow.version:
                self._evolve(flow, item)
                fresh.append(item)
        carried = {item.stream: item for item in recorded if item.stream != flow.stream}
        for stream in carried:
            if not stream.startswith("session:"):
                self.world.tell_flow(
                    stream,
                    StepTaken(stream=stream, recorded=tuple(r for r in recorded if r.stream == stream)),
                )
        flow.busy = False
        answer = getattr(command, "answer", None)
        if answer is not None:
            answer(Accepted(recorded=tuple(recorded)))
        for item in fresh:
            if flow.state is not None:
                self.act(flow.stream, flow.state, item)
        self._go_on(flow)

    def _evolve(self, flow: Flow[S], recorded: Recorded) -> None:
        flow.state = self.evolve(flow.state, recorded)
        flow.version = recorded.version
        flow.cause, flow.correlation = recorded.id, recorded.correlation

    def _go_on(self, flow: Flow[S]) -> None:
        while flow.waiting and not flow.busy:
            self._step(flow, flow.waiting.popleft())
        if not flow.busy and (flow.state is None or self.is_over(flow.state)):
            self._flows.pop(flow.stream, None)

    def _later(self, key: tuple[str, ...], act: Callable[[], None]) -> None:
        """Run `act` in this actor after a while."""
        self.world.timers.at(
            self.world.clock.now_ms() + STORE_RETRY_MS,
            (type(self).__name__, *key),
            lambda: self.tell_self(Continue(act=act)),
        )
