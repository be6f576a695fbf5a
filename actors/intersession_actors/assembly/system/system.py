"""The session system: what a host opens, talks to, and closes."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Never, Self, Unpack

import pykka

from intersession_actors.assembly.control.beside_log import ControlSocket, listening
from intersession_actors.assembly.methods.methods import GatewayMethods
from intersession_actors.assembly.system.assembly import Assembly
from intersession_actors.assembly.system.follow import followed
from intersession_actors.assembly.system.opened import (
    checked_store,
    open_store,
    record_reload,
    refuse_orphans,
)
from intersession_actors.assembly.system.operated import Operated
from intersession_actors.assembly.system.pykka import PykkaDoor
from intersession_actors.assembly.system.recovery import recover_channel, wake_agent
from intersession_actors.assembly.system.settings import Settings
from intersession_actors.assembly.system.status import standing_of, status_of
from intersession_actors.assembly.system.tracing import tracer_provider_of
from intersession_actors.calls.service.callers import EVERY, Caller
from intersession_actors.calls.service.imports import Imports
from intersession_actors.calls.service.inbound import ChatDoor, InboundFields
from intersession_actors.calls.service.pending import LogWriter
from intersession_actors.calls.service.run_stream import RunStream
from intersession_actors.calls.service.run_waits import RunDoor
from intersession_actors.calls.tools.toolbox import Tools
from intersession_actors.hindsight.forking import on_call
from intersession_actors.hindsight.forking.door import Forks
from intersession_actors.outside.agents.agents import Agent
from intersession_actors.outside.agents.runners import ACP, is_agent
from intersession_actors.outside.channels.channels import AnyChannel
from intersession_actors.rules.answers import InboundAnswer
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.errors import ConfigError, ToolRefused, is_on_a_loop, not_on_a_loop
from intersession_actors.rules.gate.limits import CREDENTIAL, IDENTITY, RUN_TIME
from intersession_actors.rules.gate.shapes import callable_of, callables_of, mapping_of, text_of, texts_of
from intersession_actors.rules.gate.texts import checked
from intersession_actors.rules.gate.values import invalid, position_of, seconds_of
from intersession_actors.rules.policy.holding import HoldRule
from intersession_actors.running.failures.reports import OnFailure
from intersession_actors.running.host.door_threads import DoorThreads
from intersession_actors.running.host.own_threads import to_its_end
from intersession_actors.running.runtime.actor import Handler
from intersession_actors.running.runtime.clock import Clock
from intersession_actors.running.runtime.pool import PooledRuntime
from intersession_actors.running.runtime.runtime import Runtime, clock_of, ids_of, runtime_of
from intersession_events.basics.closing import Closing
from intersession_events.basics.errors import ForkedStoreError, StoreUnavailable
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.facts import ForkEdit
from intersession_events.log.log import HostLog
from intersession_events.log.recorded import Recorded
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.questions.smells.smell import SmellRule

logger = logging.getLogger("intersession.config")

_FORKS_END_S = 1.0
"""How long forks beside a host may take to stop; interrupted work in them goes on when they are opened again."""


class SessionSystem(Operated, Closing):
    """A running session system over one log.

    `store` is the log's URL (`sqlite:///file.db`, `postgresql://…`, `:memory:`), or a log that is open already; without one
    the configuration's `store`, `$INTERSESSION_STORE`, else `./intersession.db`. `agents` answer for agent ids, `channels`
    deliver texts. `config` is a dict, the path of a JSON5 file, or a `Config`. `clock`, `new_id` and `runtime` are handed in by
    tests and simulations; the runtime has its own clock and ids.

    `on_failure`, sync or async, is called with a `Failure` for whatever goes wrong, outside of any actor: it may take its time,
    and what it raises is logged. `tracer_provider` is OpenTelemetry's, the global one if not given. `smells` are rules of the
    host's own for what is seldom meant (SMELL-1), which `debug` asks beside those that are known here. `hold`, sync or async, is
    asked about each text of an exchange before it goes on, outside of any actor: True, or a text that says why, holds it
    (LIVE-1), and so does a rule that fails.

    As a `standby` it waits while another process writes the log, and starts once that is gone (STBY-1): the constructor blocks, on
    an event loop the beginning of `async with` waits. `close`, or cancelling the task, ends the wait.

    With a `writer` the system only follows the log (DOOR-1): it reads it, answers from it, and hands on to the log's writer what
    it can't answer. It takes no agents and no channels.

    The channels of a fork are sealed (FORK-5), but for those that `deliver` names. `stopping` is what its recorded agents do
    where their recording ends; `fork` hands it in.

    Use it as a context manager, plain or async. With `async with`, async agents and channels run on the host's event loop.

    Raises:
        ConfigError: the configuration was refused, with the path of every problem.
        ToolRefused: an argument is not of its kind.
        StoreLocked: another process is the writer of this log.
        StoreUnavailable: the log can't be opened.
    """

    def __init__(
        self,
        store: str | Path | HostLog | None = None,
        *,
        agents: Mapping[str, Agent] | None = None,
        channels: Mapping[str, AnyChannel] | None = None,
        config: Config | JsonMapping | Path | str | None = None,
        clock: Clock | None = None,
        new_id: Callable[[], str] | None = None,
        runtime: Runtime | None = None,
        on_failure: OnFailure | None = None,
        tracer_provider: Any = None,  # OpenTelemetry's, which not every host has
        smells: Sequence[SmellRule] = (),
        deliver: Collection[str] = (),
        stopping: on_call.Stopping | None = None,
        hold: HoldRule | None = None,
        standby: bool = False,
        writer: LogWriter | None = None,
    ) -> None:
        given_agents, given_channels = mapping_of("agents", agents), mapping_of("channels", channels)
        if writer is not None and (given_agents or given_channels):
            raise invalid(
                "writer", "agents and channels are called where the log is written, leave them out here"
            )
        for name in given_channels:
            checked("channels: a name", name, most=CREDENTIAL.most)
        callable_of("on_failure", on_failure, "failure")
        callable_of("hold", hold, "going_on")
        self._settings = Settings(config, agents=filter(is_agent, given_agents), channels={*given_channels})
        self._channels = {**self._settings.begun.channels, **given_channels}
        self._clock = clock_of(clock)
        self._new_id = ids_of(new_id)
        self._runtime = runtime_of(runtime)
        self._on_failure = on_failure
        self._tracer_provider = tracer_provider_of(tracer_provider)
        self._smells = callables_of("smells", smells, "seen")
        self._deliver = frozenset(texts_of("deliver", deliver))
        self._hold = hold
        self._writer = writer
        self._agents = given_agents
        self._store = checked_store(store if store is not None else self.config.store)
        self._started = False
        self._waiting = threading.Event() if standby else None
        """Set to end the wait for the log."""
        self._stopping = None if stopping is None else on_call.stopping_of(stopping)
        self._pykka_door: PykkaDoor | None = None
        self._control: ControlSocket | None = None
        self._opening_door = threading.Lock()
        if self._waiting is None or not is_on_a_loop():
            self.start()

    # --- life

    def start(self) -> None:
        """Open the log, start the actors, continue open work. Called by the constructor."""
        if self._started:
            return
        runtime, settings = self._runtime or PooledRuntime(), self._settings
        clock = self._clock or runtime.clock
        self._owns_log = self._store is None or isinstance(self._store, str | Path)
        log = (
            open_store(
                self._store,
                clock,
                runtime,
                encryption=settings.config.encryption,
                waiting=self._waiting,
                read_only=self._writer is not None,
            )
            if self._store is None or isinstance(self._store, str | Path)
            else self._store
        )
        try:
            if log.forked is not None:
                self._settings.overlay(on_call.set_in(log))
            parts = Assembly(
                log,
                config=partial(getattr, settings, "config"),
                agents=self._agents,
                channels=self._channels,
                clock=clock,
                new_id=self._new_id or runtime.new_id,
                runtime=runtime,
                on_failure=self._on_failure,
                tracer_provider=self._tracer_provider,
                key=self._settings.begun.key,
                # What a fork does stays in it: whoever trusts the log's checkpoints is told of none of a copy (FORK-5).
                targets=self._settings.begun.targets if log.forked is None else (),
                smells=self._smells,
                deliver=self._deliver,
                hold=self._hold,
                knows=self._knows_agent,
                writer=self._writer,
            )
            self._parts = parts
            self._runs = RunDoor(parts.service)
            self._chat = ChatDoor(parts.service, self._runs, parts.threads)
            self._imports = Imports(parts.service)
            self._forks = Forks(
                parts.service,
                named=self._agents,
                config=partial(getattr, settings, "config"),
                beside=self._on_fork,
                stopping=self._stopping,
            )
            self.gateway = GatewayMethods(
                parts.service,
                self._runs,
                threads=parts.threads,
                describe=self.status,
                standing=lambda: standing_of(parts, self._settings),
                checkpoint=self.checkpoint,
                key=self._settings.begun.key,
                imports=self._imports,
                forks=self._forks.door,
                retention=parts.retention,
                scheduler=parts.scheduler,
                workers=parts.workers,
            )
            if self._writer is not None:
                refuse_orphans(parts.service, self.config)
            else:
                log.on_superseded(parts.reports.store_away)
                parts.start()
                self._control = listening(
                    log,
                    perform=self.gateway.perform,
                    tools=self.tools,
                    threads=runtime.threads,
                    is_wanted=self.config.gateway.control_socket,
                )
        except BaseException:
            if self._owns_log:
                log.close()
            raise
        self._started = True
        if self._waiting is not None and self._waiting.is_set():
            self.close()
            raise StoreUnavailable("the wait for the log was ended")

    def close(self, grace: float | None = None) -> None:
        """Stop in order: no new work; running agents and deliveries get `grace` seconds; then actors, then the log.

        What is cut off is tried again by the next start. Nothing happens in a forked child: all of it is its parent's.

        Raises:
            ToolRefused: `grace` is no time; the system goes on.
        """
        if grace is not None:
            seconds_of("grace", grace, most=RUN_TIME.most)
        if self._waiting is not None:
            self._waiting.set()
        if not self._started:
            return
        self._started = False
        try:
            self._check_process()
        except ForkedStoreError:
            return
        seconds = self.config.runs.shutdown_grace_seconds if grace is None else grace
        if isinstance(self.log, PortableLog) and self.log.over is not None:
            seconds = 0.0  # nothing that comes of waiting could be recorded
        self.service.world.agents.closing = True
        if self._control is not None:
            self._control.stop()
        with self._opening_door:
            door, self._pykka_door = self._pykka_door, None
        if door is not None:
            door.stop()
        self._forks.door.stop(max(seconds, _FORKS_END_S))
        try:
            self._parts.stop(seconds)
        finally:
            if self._owns_log:
                self.service.log.close()

    def _check_process(self) -> None:
        """Check that this is the process that opened it: in a fork no actor would ever answer."""
        try:
            self.service.log.check()
        except ForkedStoreError:
            raise
        except StoreUnavailable:
            return  # closed, as the caller finds out

    async def aclose(self, grace: float | None = None) -> None:
        """Like `close`, without blocking the event loop."""
        await to_its_end(self.close, grace)

    async def __aenter__(self) -> Self:
        if self._waiting is not None and not self._started:
            try:
                await to_its_end(self.start)
            except asyncio.CancelledError:
                self._waiting.set()
                raise
        self._parts.hosts_loop.adopt(asyncio.get_running_loop())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # --- doors

    @property
    def is_follower(self) -> bool:
        """Whether it only follows the log, which another process writes (DOOR-1)."""
        return self._writer is not None

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self._settings.config

    @property
    def notices(self) -> tuple[str, ...]:
        """The notices about the configuration when it came into force."""
        return self._settings.notices

    @property
    def threads(self) -> DoorThreads:
        """The threads that run blocking work for doors on an event loop. For authors of another door."""
        return self._parts.threads

    @property
    def log(self) -> HostLog:
        """The log."""
        return self.service.log

    @property
    def debug(self) -> on_call.Debugger:
        """The operator's debugger on the system's log: the state at any place, while the system runs (PLACE-3)."""
        return on_call.Debugger(on_call.View(self.service.reader))

    @property
    def ref(self) -> pykka.ActorRef[Handler]:
        """The system's actor in Pykka's registry, for hosts built of Pykka actors: `ask` it `As(…)` or `Inbound(…)`.

        It is started when it is first asked for. `ActorRegistry.stop_all()`, or stopping it, closes the system.

        Raises:
            RuntimeError: the system is closed.
            ForkedStoreError: another process opened it, of which this one is a fork.
        """
        self._check_process()
        with self._opening_door:
            if not self._started:
                raise RuntimeError("the system is closed")
            if self._pykka_door is None:
                self._pykka_door = PykkaDoor(
                    tools=self.tools,
                    chat=self._chat,
                    threads=self._parts.threads,
                    close=self.close,
                    check=self._check_process,
                )
            return self._pykka_door.ref

    def tools(
        self,
        session_key: str | None = None,
        *,
        name: str | None = None,
        credential: str | None = None,
        of_agent: bool = False,
        within: tuple[str, ...] | None = None,
    ) -> Tools:
        """Return a session's tools; without a key, the operator's.

        `name` is what idempotency keys are kept under, instead of the key; `credential` who else stands behind the
        calls, for their receipts. `of_agent`: an agent calls, and goes on with the run that its session is at (LOOP-5).
        `within` are globs over canonical keys: the session sees and reaches itself and no more than these, whatever settings
        allow (VIS-6).

        Raises:
            InvalidKey: this is no session key.
            ToolRefused: a name is invalid.
        """
        if within is not None and session_key is None:
            raise invalid("within", "it limits what a session sees, name one by session_key")
        for field, value in (("name", name), ("credential", credential)):
            if value is not None:
                checked(field, value, most=IDENTITY.most)
        key = None
        if session_key is not None:
            parsed = SessionKey.parse(
                text_of("session_key", session_key), main_key=self.config.session.main_key
            )
            key = str(self.service.reader.main_key(parsed.agent_id) if parsed.is_main else parsed)
        caller = Caller(
            name=name or key or "operator",
            key=key,
            act_as=(EVERY,) if within is None else within,
            credential=credential,
            of_agent=of_agent,
        )
        return Tools(self.service, caller, threads=self._parts.threads)

    def inbound(self, *unnamed: Never, **given: Unpack[InboundFields]) -> InboundAnswer:
        """Take a person's message (INB-1): returns `{runId, sessionKey, status}` once it is durable.

        `inbound(*, channel, chat_id, text, sender, sender_name=None, chat_type="direct", chat_name=None, account=None,
        thread=None, agent_id=None, owner=False, message_id=None, deliver=True, files=(), wait=None)`

        `sender` is the person's id on the channel, `sender_name` what others call them. `account` is which of the host's
        own accounts heard it. `owner`: this person may use `/send`. `message_id` is the channel's own id: the same one
        gives the same run. `files` are those that came with the message, each a `File` (FILE-2); then the text may be empty.
        `deliver=False` records and starts no run. With `wait` seconds the answer is what
        `agent.wait` answers. A refusal is an answer; nothing is raised for it. So is that of a field that is missing,
        unknown or given without its name.

        Raises:
            CalledOnLoop: this is a coroutine, where `ainbound` is awaited.
        """
        return self._chat.inbound(unnamed, given)

    async def ainbound(self, *unnamed: Never, **given: Unpack[InboundFields]) -> InboundAnswer:
        """Like `inbound`, without blocking the event loop.

        Async agents run on this loop once it has outlived a call, if no other one was taken over before; `async with` takes
        it over at once.
        """
        with self._parts.hosts_loop.visited():
            return await self._chat.ainbound(unnamed, given)

    def stream(self, run_id: str) -> RunStream:
        """Return the answer of a run while its agent says it, for `for` and `async for` (STREAM-2).

        Each part is a dict with a `state`: `delta` (`text` so far, and what is new of it), `restarted`, and at the end `final`,
        `aborted` or `error`, with what `agent.wait` answers. Runs of agents that say nothing in pieces have the end alone.

        Raises:
            ToolRefused: there is no such run (`unknown_run`).
        """
        return RunStream(self.service, self._runs, text_of("run_id", run_id))

    def fork(
        self,
        run: str,
        *,
        at: int | str,
        edits: Sequence[ForkEdit] = (),
        agents: Mapping[str, str | Agent] | None = None,
        on_divergence: str = "stop",
        loose: bool = False,
        deliver: Collection[str] = (),
        by: str = "operator",
    ) -> SessionSystem:
        """Fork a run at a place, and continue the fork: returns the system that runs on it (FORK-10).

        `at` is a place, also without the run (`turn:2`). `edits` say what is changed there. `agents` answer in the fork: by
        id, `*` for all others, each an agent or a SPEC: `recorded`, `script:FILE`, `module:name`, or the name of an agent of this
        system. Runs whose agent is not given wait. Channels are sealed, but for `deliver`. `carried_on` waits for its end.
        The fork lies beside the log, as `<store>.forks/<id>.db`; this log is only read.

        Raises:
            ToolRefused: there is no such run or place, an edit is not possible there, or an agent is invalid.
            ConfigError: a setting is invalid.
            ForkFailed: the fork can't be written; a log in memory has no place for it.
            TypeError: a given agent is invalid.
        """
        not_on_a_loop("system.fork(…)", "await asyncio.to_thread(system.fork, …)")
        given, unsealed = mapping_of("agents", agents), texts_of("deliver", deliver)
        text_of("run", run)
        text_of("on_divergence", on_divergence)
        checked("by", by, most=IDENTITY.most)

        for name in unsealed:
            if name not in self._channels:
                raise invalid("deliver", f"nobody delivers for {name[:128]!r} here")
        wanted, playing = on_call.Wanted(run, at, edits, by), on_call.Playing(given, on_divergence, loose)
        return self._forks.opened(wanted, playing, partial(self._on_fork, deliver=unsealed))

    def _on_fork(
        self, made: on_call.MadeFork, cast: on_call.Cast, *, deliver: Collection[str] = ()
    ) -> SessionSystem:
        """Start a system on a fork; without `deliver`, as for remote callers, nothing of it goes out."""
        return SessionSystem(
            made.path,
            agents=cast.agents,
            channels=self._channels,
            config=cast.config,
            clock=self._clock,
            deliver=deliver,
            stopping=cast.stopping,
        )

    def carried_on(self, timeout: float | None = None) -> on_call.Carried:
        """Wait until the forked work has ended, waits for agents that are not registered, or has left its recording (FORK-7).

        `timeout` in seconds; None is no limit. The system stays open.

        Raises:
            ToolRefused: this log is no fork.
        """
        not_on_a_loop("system.carried_on(…)", "await asyncio.to_thread(system.carried_on, …)")
        return self._forks.carried_on(timeout)

    def follow(self, position: int | None = None, *, timeout: float | None = None) -> Iterator[Recorded]:
        """Iterate over committed events behind a position (None: from now on), as they come.

        Ends when the system closes, or when nothing came for `timeout` seconds.

        Raises:
            ToolRefused: this is no position, or no time.
        """
        if position is not None:
            position_of("position", position)
        if timeout is not None:
            seconds_of("timeout", timeout, most=RUN_TIME.most)
        return self._while_open(followed(self.service.log, position, timeout=timeout))

    def _while_open(self, events: Iterator[Recorded]) -> Iterator[Recorded]:
        try:
            yield from events
        except StoreUnavailable:
            if self._started:
                raise

    def _check_writes(self, called: str) -> None:
        if self._writer is not None:
            raise ToolRefused(
                "not_supported", f"{called}: this host only follows the log, call it at its writer"
            )

    def register_agent(self, agent_id: str, agent: Agent) -> None:
        """Register the agent of an agent id; its parked runs start (KEY-9).

        Raises:
            ConfigError: this is no agent id.
            ToolRefused: it is not even a text, this is no agent, or workers alone call it.
        """
        self._check_writes("register_agent")
        agent_id = text_of("agent_id", agent_id)
        config = self.config.with_agents([agent_id])
        if self.log.forked is None and config.at_workers(agent_id):
            raise invalid("agent_id", f"workers alone call {agent_id!r}, take `worker` from its settings")
        self._parts.executor.register(agent_id, agent)
        self._agents[agent_id] = agent
        self._settings.config = config
        wake_agent(self.service, agent_id)

    def _knows_agent(self, agent_id: str) -> None:
        """Take in an agent that a worker has announced."""
        self._settings.config = self.config.with_agents([agent_id])

    def register_runtime(self, name: Literal["acp"], runner: Agent) -> None:
        """Register the runner of sub-agents that are spawned with `runtime: "acp"` (SPAWN-1); parked ones start.

        Raises:
            ToolRefused: there is no such runtime, or this is no agent.
        """
        if name != "acp":
            raise invalid("name", 'there is no such runtime, give "acp"')
        self._parts.executor.register(ACP, runner)
        self._agents[ACP] = runner
        wake_agent(self.service, ACP)

    def register_channel(self, name: str, channel: AnyChannel) -> None:
        """Register a channel; its parked texts go out.

        One that a fork has sealed stays so. In a coroutine: async channels run on its loop.

        Raises:
            ToolRefused: this is no name, or no channel.
        """
        self._check_writes("register_channel")
        name = checked("name", name, most=CREDENTIAL.most)
        with suppress(RuntimeError):
            self._parts.hosts_loop.offer(asyncio.get_running_loop())
        self._parts.caller.register(name, channel)
        self._channels[name] = channel
        recover_channel(self.service, name)

    def reload(self, config: Config | JsonMapping | Path | str | None) -> None:
        """Apply another configuration. An invalid one is refused, the old one stays and `status` says so (CFG-4).

        Agents, channels, the store, the key of checkpoints, where they are published, and the sizes of pools stay as they
        are until the next start.

        Raises:
            ConfigError: it was refused.
        """
        try:
            self._settings.take(
                config,
                agents=filter(is_agent, self._parts.executor.registered),
                check=partial(refuse_orphans, self.service),
            )
        except ConfigError as error:
            self._parts.reports.tell("config_refused", error=str(error))
            raise
        if self._writer is None:
            record_reload(self.service, self.config)
            self._parts.scheduler.look()
            self._parts.expect_workers()

    def status(self, at: on_call.At | None = None) -> JsonObject:
        """Return the system's status: the log's head, awake and degraded actors, events set aside.

        With a place it is what stood there: sessions in number, what was open, what was held.

        Raises:
            ToolRefused: it is no place.
        """
        if at is not None:
            return dict(on_call.status_at(self.service.reader, at))
        return status_of(self._parts, self._settings)
