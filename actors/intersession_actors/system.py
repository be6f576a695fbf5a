"""The session system: wires log, views and actors together, starts them, carries on what was open, stops them in order."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import msgspec
import pykka

from intersession_actors import send_policy
from intersession_actors.agent_executor import AgentExecutor, AgentResult
from intersession_actors.agents import Agent
from intersession_actors.channel_caller import ChannelCaller
from intersession_actors.channels import Channel
from intersession_actors.chapters import open_chapter
from intersession_actors.clock import Clock, SystemClock
from intersession_actors.commands import RunReturned, Unbind
from intersession_actors.config import Config, load_config
from intersession_actors.configured_channels import configured_channels
from intersession_actors.coordinator import Coordinator
from intersession_actors.core import CallingRun, Core
from intersession_actors.doors import ChatDoor, DoorThreads, RunDoor
from intersession_actors.draining import drain
from intersession_actors.errors import ConfigError
from intersession_actors.follow import Follower
from intersession_actors.gateway import Gateway
from intersession_actors.imports import Imports
from intersession_actors.mirroring import mirror_directory
from intersession_actors.outbox import Outbox
from intersession_actors.pool import PooledRuntime
from intersession_actors.pykka_door import PykkaDoor
from intersession_actors.receipts import Receipts
from intersession_actors.recovery import recover, recover_flows, sweep_staged, wake_agent
from intersession_actors.run_context import RunContext
from intersession_actors.runtime import Runtime
from intersession_actors.runtimes import ACP, is_agent, runner_of, runner_of_turn
from intersession_actors.session_state import Running
from intersession_actors.spawner import Spawner
from intersession_actors.supervisor import Supervisor
from intersession_actors.timers import TimerWheel
from intersession_actors.tools.reader import Reader
from intersession_actors.tools.toolbox import RunRecorder, Tools
from intersession_actors.turn import Turn
from intersession_actors.world import World
from intersession_events.errors import StoreUnavailable
from intersession_events.exchange import ExchangeAccepted
from intersession_events.keys import SessionKey
from intersession_events.log import Log
from intersession_events.session import Route
from intersession_events.stores import open_log
from intersession_events.stores.ambient import random_log_id
from intersession_events.transcripts.openclaw import ImportReport, OnTaken
from intersession_projections.inline import inline_views
from intersession_projections.transcript_mirror import TranscriptMirror

logger = logging.getLogger(__name__)
DOOR_THREADS = 16
DISK_THREADS = 2


class SessionSystem:
    """A running session system over one log.

    `store` is the log's URL (`sqlite:///file.db`, `:memory:`), or a `Log` that is open already; without one the configuration's
    `store`, `$INTERSESSION_STORE`, else `./intersession.db`. `agents` answer for agent ids, `channels` deliver texts.
    `config` is a dict, a path of a JSON5 file, or a `Config`. `clock`, `new_id` and `runtime` are handed in by tests and
    simulations. Use it as a context manager, plain or async; async agents and channels then run on the host's loop.

    Raises:
        ConfigError: the configuration was refused, with the path of every problem.
        StoreLocked: another process is the writer of this log.
        StoreUnavailable: the log can't be opened.
    """

    def __init__(
        self,
        store: str | Path | Log | None = None,
        *,
        agents: Mapping[str, Agent] | None = None,
        channels: Mapping[str, Any] | None = None,
        config: Config | Mapping[str, Any] | Path | str | None = None,
        clock: Clock | None = None,
        new_id: Callable[[], str] = random_log_id,
        runtime: Runtime | None = None,
    ) -> None:
        loaded = load_config(config)
        self.config: Config = loaded.config.with_agents(agents or ())
        configured = configured_channels(self.config)
        self._channels = {**configured, **(channels or {})}
        unused = sorted({*configured} & {*(channels or {})})
        self.notices = (
            *loaded.notices,
            *(f"channels.{name}.deliver: not used, the host delivers for {name!r} itself" for name in unused),
        )
        self._config_error: str | None = None
        for notice in self.notices:
            logger.warning("configuration: %s", notice)
        self._clock = clock or SystemClock()
        self._new_id = new_id
        self._runtime = runtime
        self._agents = dict(agents or {})
        self._store = store if store is not None else self.config.store
        self._started = False
        self._core: Core | None = None
        self._pykka_door: PykkaDoor | None = None
        self._opening_door = threading.Lock()
        self.start()

    # --- life

    def start(self) -> None:
        """Open the log, start the actors, carry on what was open. Done by the constructor."""
        if self._started:
            return
        config = self.config
        log = (
            open_log(_url(self._store), inline=inline_views(), clock=self._clock.now_ms)
            if self._store is None or isinstance(self._store, str | Path)
            else self._store
        )
        self._owns_log = self._store is None or isinstance(self._store, str | Path)
        try:
            self._wire(log, config)
        except BaseException:
            if self._owns_log:
                log.close()
            raise
        self._started = True

    def _wire(self, log: Log, config: Config) -> None:
        self._executor = AgentExecutor(
            pool_size=config.runs.pool_size,
            reply_max_bytes=config.runs.reply_max_bytes,
            late=self._late,
            runner_of=runner_of_turn,
        )
        for agent_id, agent in self._agents.items():
            self._executor.register(agent_id, agent)
        self._timers = TimerWheel(self._clock)
        self._caller = ChannelCaller(pool_size=config.runs.pool_size, clock=self._clock, timers=self._timers)
        for name, channel in self._channels.items():
            self._caller.register(name, channel)
        self._doors = DoorThreads(DOOR_THREADS, thread_name_prefix="doors")
        world = World(
            log=log,
            clock=self._clock,
            timers=self._timers,
            agents=self._executor,
            channels=self._caller,
            judge_send=self._judge_send,
            make_turn=self._make_turn,
            retry_interrupted=config.runs.retry_interrupted,
            idle_ms=round(config.runs.idle_seconds * 1000),
            store_retry_ms=round(config.runs.store_retry_max_seconds * 1000),
        )
        runtime = self._runtime or PooledRuntime()
        supervisor = Supervisor(runtime, world, inbox_limit=config.runs.inbox_max)
        world.tell_session = supervisor.tell_session
        world.tell_flow = supervisor.tell_flow
        world.passivated = supervisor.passivated
        world.announce_route = self._announce_route
        receipts = Receipts(
            log, now_ms=self._clock.now_ms, new_id=self._new_id, level=lambda: self.config.audit.access
        )
        transcripts = mirror_directory(log, wanted=config.transcripts.mirror)
        self._mirror = None if transcripts is None else TranscriptMirror(log, transcripts)
        reader = Reader(
            log,
            config=lambda: self.config,
            clock=self._clock,
            record=receipts.record,
            transcripts=transcripts,
        )
        world.agent_of = runner_of
        world.transcript_path = reader.transcript_path
        self._disk = ThreadPoolExecutor(DISK_THREADS, thread_name_prefix="files")
        world.on_disk = self._on_disk
        core = Core(
            log=log,
            clock=self._clock,
            new_id=self._new_id,
            world=world,
            supervisor=supervisor,
            reader=reader,
            receipts=receipts,
        )
        self._core = core
        self._supervisor = supervisor
        supervisor.start_manager("delivery", Outbox)
        supervisor.start_manager("exchange", Coordinator)
        supervisor.start_manager("spawn", Spawner)
        supervisor.on_manager_restart = lambda prefix: recover_flows(core, prefix)
        self._runs = RunDoor(core)
        self._chat = ChatDoor(core, self._runs)
        self._imports = Imports(core)
        self.gateway = Gateway(core, self._runs, self._doors, self.status, self._imports)
        open_chapter(core, self.config)
        sweep_staged(core)
        recover(core)
        if self._mirror is not None:
            self._mirror.start()

    def close(self, grace: float | None = None) -> None:
        """Stop in order: no new work, runs and texts under way get `grace` seconds, then actors, then the log.

        What is cut off is tried again by the next start.
        """
        if not self._started:
            return
        self._started = False
        seconds = self.config.runs.shutdown_grace_seconds if grace is None else grace
        until = self._clock.monotonic() + seconds
        core = self.core
        core.world.stopping = True
        with self._opening_door:
            door, self._pykka_door = self._pykka_door, None
        if door is not None:
            door.stop()
        self._executor.stop(seconds)
        drain(core, until - self._clock.monotonic())
        self._caller.stop(max(until - self._clock.monotonic(), 0.0))
        self._timers.stop()
        self._disk.shutdown(cancel_futures=True)
        left = self._supervisor.stop(max(seconds, 1.0))
        if left:
            logger.warning("did not stop in time: %s", ", ".join(left))
        core.waits.close()
        if self._mirror is not None:
            self._mirror.stop()
        self._doors.shutdown(wait=False)
        if self._owns_log:
            core.log.close()

    async def aclose(self, grace: float | None = None) -> None:
        """Stop in order, without blocking the event loop."""
        await asyncio.to_thread(self.close, grace)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        self._use_this_loop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # --- doors

    @property
    def core(self) -> Core:
        """What doors work with. For those who build another door."""
        if self._core is None:
            raise RuntimeError("the system is not started")
        return self._core

    @property
    def log(self) -> Log:
        """The log."""
        return self.core.log

    @property
    def ref(self) -> pykka.ActorRef[Any]:
        """The system's one actor in Pykka's registry, for hosts built of Pykka actors: `ask` it `As(…)` or `Inbound(…)`.

        It is started when it is first asked for. `ActorRegistry.stop_all()`, or stopping it, closes the system.
        """
        with self._opening_door:
            if not self._started:
                raise RuntimeError("the system is closed")
            if self._pykka_door is None:
                self._pykka_door = PykkaDoor(
                    self.core, tools=self.tools, runs=self._runs, doors=self._doors, close=self.close
                )
            return self._pykka_door.ref

    def tools(
        self, session_key: str | None = None, *, name: str | None = None, credential: str | None = None
    ) -> Tools:
        """Return the tools as a session has them; without a key, as the operator has them.

        `name` is what idempotency keys are kept under, instead of the key; `credential` who else stands behind the
        calls, for their receipts.

        Raises:
            InvalidKey: this is no session key.
        """
        key = None
        if session_key is not None:
            parsed = SessionKey.parse(session_key, main_key=self.config.session.main_key)
            key = str(self.core.main_key(parsed.agent_id) if parsed.is_main else parsed)
        return Tools(self.core, key, doors=self._doors, name=name, credential=credential)

    def inbound(
        self,
        *,
        channel: str,
        chat_id: str,
        text: str,
        sender: str,
        wait: float | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Take what a person says (INB-1): returns `{runId, sessionKey, status}` once it is durable.

        `fields` are `chat_type, chat_name, account, thread, agent_id, owner, message_id, deliver`. With `wait` seconds, what
        `agent.wait` answers. A refusal is an answer; nothing is raised for it.
        """
        return self._chat.inbound(
            dict(channel=channel, chat_id=chat_id, text=text, sender=sender, **fields), wait=wait
        )

    async def ainbound(
        self,
        *,
        channel: str,
        chat_id: str,
        text: str,
        sender: str,
        wait: float | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Take a person's message as `inbound` does, without blocking the event loop, whose async agents then run on it."""
        self._use_this_loop()
        given = dict(channel=channel, chat_id=chat_id, text=text, sender=sender, **fields)
        return await self._chat.ainbound(given, wait, self._doors)

    def import_openclaw(
        self,
        directory: Path | str,
        *,
        on_taken: OnTaken = "beside",
        progress: Callable[[int, int], None] | None = None,
    ) -> ImportReport:
        """Import an OpenClaw state directory into the log, beside all that goes on (IMP-1). It blocks until it is done.

        Sessions that are used meanwhile are never mixed with what is imported: those are kept beside them, or refused with
        `on_taken="refuse"`. `progress` is told (events appended, events to append).

        Raises:
            ImportFailed: it is no state directory, or has keys that the log has and should be refused.
            ToolRefused: another import is under way (`busy`).
            StoreUnavailable: the store could not take it; what was appended stays, importing again goes on.
        """
        return self._imports.openclaw(Path(directory), on_taken=on_taken, progress=progress)

    def abort(self, run_id: str, *, by: str = "operator") -> bool:
        """Stop a run, queued or under way; True if there was something to stop (GATE-5)."""
        return self._runs.abort(run_id, by=by)

    def follow(self, position: int | None = None, *, timeout: float | None = None) -> Iterator[Any]:
        """Iterate over committed events from behind a position (None: from now on), as they come.

        Ends when the system closes, or when nothing came for `timeout` seconds.
        """
        return self._while_open(Follower(self.core.log).events(position, timeout=timeout))

    def _while_open(self, events: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from events
        except StoreUnavailable:
            if self._started:
                raise

    def register_agent(self, agent_id: str, agent: Agent) -> None:
        """Say who answers for an agent id; its parked runs start (KEY-9)."""
        self._executor.register(agent_id, agent)
        self.config = self.config.with_agents([agent_id])
        wake_agent(self.core, agent_id)

    def register_runtime(self, name: Literal["acp"], runner: Agent) -> None:
        """Say who runs the sub-agents that are spawned with `runtime: "acp"` (SPAWN-1); parked ones start."""
        del name  # there is one
        self._executor.register(ACP, runner)
        wake_agent(self.core, ACP)

    def register_channel(self, name: str, channel: Channel | Any) -> None:
        """Say who delivers for a channel; what is parked for it goes out. In a coroutine: async channels run on its loop."""
        with suppress(RuntimeError):
            self._caller.use_loop(asyncio.get_running_loop())
        self._caller.register(name, channel)
        recover_flows(self.core, "delivery")

    def reload(self, config: Config | Mapping[str, Any] | Path | str | None) -> None:
        """Take another configuration into force. A bad one is refused, the old one stays and `status` says so (CFG-4).

        Agents, channels, the store and the sizes of pools stay as they are until the next start.

        Raises:
            ConfigError: it was refused.
        """
        try:
            loaded = load_config(config)
            configured_channels(loaded.config)  # what the next start would refuse is refused now
        except ConfigError as error:
            self._config_error = str(error)
            raise
        self.config = loaded.config.with_agents(filter(is_agent, self._executor.registered))
        self.notices, self._config_error = loaded.notices, None

    def unbind_thread(self, session_key: str) -> bool:
        """Take its thread from a session (SPAWN-12); True if it had one.

        Raises:
            InvalidKey: this is no session key.
            ToolRefused: it could not be made durable.
        """
        key = SessionKey.parse(session_key, main_key=self.config.session.main_key)
        return bool(self.core.ask_session(str(key), Unbind()).recorded)

    def status(self) -> dict[str, Any]:
        """Return how the system is: the head of the log, who is awake, who is degraded, what was set aside."""
        log = self.core.log
        return {
            "logId": log.log_id,
            "epoch": log.epoch,
            "position": log.head(),
            "agents": [runner for runner in self._executor.registered if is_agent(runner)],
            "channels": list(self._caller.registered),
            "liveSessions": self._supervisor.live_sessions,
            "degraded": self._supervisor.degraded,
            "zombies": self._executor.zombies,
            "setAside": set_aside(log),
            "notices": list(self.notices),
            "configError": self._config_error,
        }

    # --- what actors are handed

    def _use_this_loop(self) -> None:
        loop = asyncio.get_running_loop()
        self._executor.use_loop(loop)
        self._caller.use_loop(loop)

    def _judge_send(
        self, *, key: str, channel: str | None, chat_type: Any, override: Any
    ) -> send_policy.Verdict:
        return send_policy.judge_send(
            self.config.session.send_policy,
            send_policy.Speaker(
                key=SessionKey.parse(key, main_key=self.config.session.main_key),
                channel=channel,
                chat_type=chat_type,
                override=override,
            ),
        )

    def _make_turn(self, *, agent_id: str, key: str, running: Running, context: RunContext) -> Turn:
        core, run = self.core, running.waiting.queued
        calling = CallingRun(
            run_id=run.run_id,
            attempt=running.attempt,
            chain=run.chain or (key,),
            hops=run.hops,
            root=running.waiting.correlation or run.run_id,
            cause=running.cause,
        )
        tools = Tools(core, key, doors=self._doors, run=calling, waiting=self._executor.waiting)
        return Turn(
            agent_id=SessionKey.parse(key).agent_id if agent_id == ACP else agent_id,
            session_key=key,
            step=run.step,
            asked=context.message,
            run_id=run.run_id,
            transcript=context.transcript,
            context=context.system_context,
            tools=tools,
            attempt=running.attempt,
            deadline=running.deadline_ms or None,
            model=running.model,
            thinking=running.thinking,
            partial=context.partial,
            recorder=RunRecorder(core, key, calling),
        )

    def _announce_route(self, accepted: ExchangeAccepted) -> Route | None:
        """Return the route an announce goes to; a host with a `webchat` channel hears what has none (ANN-2)."""
        if accepted.route is not None or not self._caller.has("webchat"):
            return accepted.route
        return Route(channel="webchat", to=accepted.target)

    def _on_disk(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Do work on files on a thread of its own; while the system stops, nothing is done and nothing comes back."""

        def job() -> None:
            result: Any
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 - the outcome of the work, whatever it is
                result = error
            done(result)

        with suppress(RuntimeError):
            self._disk.submit(job)

    def _late(self, turn: Turn, result: AgentResult) -> None:
        """Put a late answer on record; nobody uses it."""
        self._supervisor.tell_session(
            turn.session_key, RunReturned(run_id=turn.run_id, attempt=turn.attempt, result=result)
        )


def set_aside(log: Log) -> list[dict[str, Any]]:
    """Return the events that a view could not take in, and why (J3); a log that keeps no such record has none."""
    lost: Callable[[], Sequence[Any]] | None = getattr(log, "set_aside", None)
    return [] if lost is None else [msgspec.to_builtins(item) for item in lost()]


def _url(store: str | Path | Log | None) -> str | None:
    if isinstance(store, Path):
        return f"sqlite:///{store}"
    return store if isinstance(store, str) else None
