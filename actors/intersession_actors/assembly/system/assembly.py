"""The parts of a running system: put together on a log, handed to the actors, taken apart in order."""

import logging
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, TypeVar

from intersession_actors.assembly.checkpoints.checkpointer import Checkpointer
from intersession_actors.assembly.checkpoints.copied import Copied
from intersession_actors.assembly.checkpoints.publishing import Publisher
from intersession_actors.assembly.checkpoints.targets import Target
from intersession_actors.assembly.forgetting.eraser import Eraser
from intersession_actors.assembly.forgetting.retention import Retention
from intersession_actors.assembly.schedules.scheduler import Scheduler
from intersession_actors.assembly.system import at_workers
from intersession_actors.assembly.system.opened import record_opening, refuse_orphans
from intersession_actors.assembly.system.recovery import (
    recover,
    recover_channel,
    recover_flow,
    recover_flows,
    sweep_files,
    sweep_staged,
)
from intersession_actors.assembly.system.tracing import Tracing
from intersession_actors.assembly.system.turns import Turns
from intersession_actors.calls.service.pending import LogWriter
from intersession_actors.calls.service.reader import Reader
from intersession_actors.calls.service.receipts import Receipts
from intersession_actors.calls.service.service import Service
from intersession_actors.calls.service.supervisor import Recipe, Supervisor
from intersession_actors.calls.tools.registry import tools_offered
from intersession_actors.hindsight.forking import on_call
from intersession_actors.outside.agents.agents import Agent
from intersession_actors.outside.agents.executor import AgentExecutor
from intersession_actors.outside.attachments.contents import keep_files, store_reply_files
from intersession_actors.outside.channels.caller import ChannelCaller
from intersession_actors.outside.channels.channels import AnyChannel
from intersession_actors.owners.chains.ledger import ChainLedger, RunUse
from intersession_actors.owners.delivery.outbox import Outbox
from intersession_actors.owners.exchange.coordinator import Coordinator
from intersession_actors.owners.holding.rule import RuleCaller
from intersession_actors.owners.holding.standing import HeldSessions, Holds
from intersession_actors.owners.session.actor import SessionActor
from intersession_actors.owners.session.context_cache import ContextCache
from intersession_actors.owners.spawn.spawner import Spawner
from intersession_actors.owners.streams.rules_in_force import RulesInForce
from intersession_actors.owners.streams.shell import STORE_RETRY_MS
from intersession_actors.owners.streams.standing import BoundThreads, Generations, Standing
from intersession_actors.owners.streams.texts import RunTexts
from intersession_actors.owners.streams.world import NOT_A_FORK, Mail, Time, World
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.config.host import Tracing as TracingSettings
from intersession_actors.rules.config.settings import milliseconds
from intersession_actors.rules.disclosure.redaction import redact_raw
from intersession_actors.rules.policy.holding import HoldRule
from intersession_actors.running.failures.failure import described
from intersession_actors.running.failures.reports import OnFailure, Reports
from intersession_actors.running.host.door_threads import DoorThreads
from intersession_actors.running.host.hosts_loop import HostsLoop
from intersession_actors.running.host.threads import Job, Workers
from intersession_actors.running.runtime.clock import Clock, Stopwatch
from intersession_actors.running.runtime.runtime import Runtime
from intersession_actors.running.runtime.timers import TimerWheel
from intersession_events.basics.errors import LogError, StoreUnavailable
from intersession_events.log.log import HostLog
from intersession_events.proofs.signatures import PrivateKey
from intersession_events.stores.database import MEMORY
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.tailing.tail import Tails
from intersession_projections.copies.transcripts.files import mirror_directory
from intersession_projections.questions.smells.smell import SmellRule
from intersession_projections.views.flows.rows import DeliverySummary
from intersession_projections.views.run_outcomes.replies import LoggedTexts
from intersession_projections.views.tailed_views import tails_of

T = TypeVar("T")
logger = logging.getLogger("intersession.actors")
DISK_THREADS = 2
LEAST_FOR_REPORTS_S = 1.0


_UNTRACED = TracingSettings(enabled=False)
"""Of a host that only follows the log: its writer traces what happens."""


class Assembly:
    """Executor, channels, timers, supervisor and service on one log. `config` returns the configuration in force.

    With a `writer` the log is only followed: nothing of it goes on here, and `start` is not called.
    """

    def __init__(
        self,
        log: HostLog,
        *,
        config: Callable[[], Config],
        agents: Mapping[str, Agent],
        channels: Mapping[str, AnyChannel],
        clock: Clock,
        new_id: Callable[[], str],
        runtime: Runtime,
        on_failure: OnFailure | None,
        tracer_provider: Any,  # OpenTelemetry's, which not every host has
        key: PrivateKey | None,
        targets: Sequence[Target],
        smells: Sequence[SmellRule] = (),
        deliver: Container[str] = (),
        hold: HoldRule | None = None,
        knows: Callable[[str], None],
        writer: LogWriter | None = None,
    ) -> None:
        self._config = config
        self._log = log
        fork = NOT_A_FORK if log.forked is None else on_call.fork_of(log, config=config, deliver=deliver)
        self._clock = clock
        self.hosts_loop = HostsLoop()
        self._runtime = runtime
        self._blocking = threads = runtime.threads
        runtime.serve(log)
        self.reports = Reports(
            clock=clock, on_failure=on_failure, hosts_loop=self.hosts_loop, threads=threads
        )
        if isinstance(log, PortableLog):
            log.on_refused(lambda refused: self.reports.batch_refused(refused.error))
        runs = config().runs
        self.tracing = Tracing(
            log,
            settings=lambda: _UNTRACED if writer is not None else config().tracing,
            provider=tracer_provider,
        )
        self.executor = AgentExecutor(
            hosts_loop=self.hosts_loop,
            around=self.tracing.around,
            pool_size=runs.pool_size,
            reply_max_bytes=runs.reply_max_bytes,
            threads=threads,
            blocking=self.reports.blocking,
            store_files=lambda _, reply: store_reply_files(log, config().files, reply.files),
            files_named=lambda files: self._on_disk(partial(keep_files, log, files), _told),
            on_disk=self._on_disk,
        )
        for agent_id, agent in agents.items():
            if log.forked is not None or not config().at_workers(agent_id):
                self.executor.register(agent_id, agent)
            else:
                logger.info(
                    "agent %s is left to workers, and the one of this process is not called", agent_id
                )
        self.timers = TimerWheel(clock, threads=threads)
        deliveries = config().deliveries
        self.caller = ChannelCaller(
            hosts_loop=self.hosts_loop,
            seats=deliveries.per_channel,
            clock=clock,
            timers=self.timers,
            timeout_ms=milliseconds(deliveries.timeout_seconds),
            threads=threads,
            sealed=fork.sealed,
            blocking=self.reports.blocking,
        )
        for name, channel in channels.items():
            self.caller.register(name, channel)
        self.threads = DoorThreads(check=log.head, threads=threads)
        self._disk = Workers(DISK_THREADS, name="files", threads=threads)
        self.supervisor = Supervisor(
            runtime,
            reports=self.reports,
            monotonic=clock.monotonic,
            inbox_limit=runs.inbox_max,
        )
        self.checkpointer = Checkpointer(
            log,
            settings=lambda: config().checkpoints,
            key=key,
            publisher=Publisher(
                log,
                targets,
                clock=clock,
                timers=self.timers,
                reports=self.reports,
                quorum=config().checkpoints.quorum,
                threads=threads,
            ),
            clock=clock,
            timers=self.timers,
            reports=self.reports,
            threads=threads,
        )
        receipts = Receipts(
            writer or log, now_ms=clock.now_ms, new_id=new_id, level=lambda: config().audit.access
        )
        transcripts = mirror_directory(log, wanted=config().transcripts.mirror)
        self._views = Tails(lambda: tails_of(log, config().views.keep, redact_raw))
        self._mirror = None
        if transcripts is not None:
            from intersession_projections.copies.transcripts.mirror import (  # noqa: PLC0415 - few hosts mirror them
                transcript_mirror,
            )

            self._mirror = transcript_mirror(log, transcripts)
        reader = Reader(
            log, config=config, clock=clock, record=receipts.record, transcripts=transcripts, smells=smells
        )
        self._chains = ChainLedger(log, partial(_runs_of, reader))
        self._hold_rule = (
            None
            if hold is None
            else RuleCaller(
                hold,
                timers=self.timers,
                reports=self.reports,
                hosts_loop=self.hosts_loop,
                threads=threads,
            )
        )
        standing = Standing(Holds(HeldSessions(), self._hold_rule), Generations(), BoundThreads())
        self.contexts = ContextCache(log)
        world = World(
            log=log,
            time=Time(clock, self.timers, Stopwatch(clock)),
            mail=Mail(
                tell_session=self.supervisor.tell_session,
                tell_flow=self.supervisor.tell_flow,
                set_aside=self.supervisor.set_aside,
                resume_flow=self._resume_flow,
                read_back=self.supervisor.read_back,
                passivated=self.supervisor.passivated,
                on_disk=self._on_disk,
                texts_of=partial(_texts_of, reader),
                number_of=reader.flows.number_of,
            ),
            reports=self.reports,
            agents=self.executor,
            channels=self.caller,
            rules=RulesInForce(
                config,
                offered=tools_offered,
                has_channel=self.caller.has,
                transcript_path=reader.transcript_path,
            ),
            chains=self._chains,
            standing=standing,
            limits=config(),
            fork=fork,
        )
        results = self.executor.results
        # First: what is on record is known, or forgotten, before anybody acts on that it is.
        listeners = (
            standing.holds.sessions,
            standing.generations,
            standing.threads,
            self.caller.turns,
            results,
        )
        self._stops = [log.on_committed(one.take, one.HANDLES, first=True) for one in listeners]
        self._stops.append(self.executor.pieces.watch(self.caller.drafts.heard))
        self.service = Service(
            log=log,
            clock=clock,
            new_id=new_id,
            world=world,
            supervisor=self.supervisor,
            reader=reader,
            receipts=receipts,
            blocking=threads,
            writer=writer,
        )
        self.scheduler, self.retention = (
            Scheduler(self.service, timers=self.timers),
            Retention(
                self.service,
                Eraser(self.service, self.contexts.erased, self.checkpointer, self._mirror),
                self.timers,
            ),
        )
        self.workers = None  # what a fork does stays in it
        if log.forked is None:
            self.workers = at_workers.remote_agents(
                self.service,
                runtime,
                knows=knows,
                listens=lambda take: self._stops.append(log.on_committed(take, results.HANDLES)),
            )
            self._channels = at_workers.remote_channels(self.service, self.workers.desk, runtime.entropy)

    def start(self) -> None:
        """Start the process managers, and continue open work from the log.

        Raises:
            ConfigError: main sessions of the log would have no name under this configuration.
        """
        world = self.service.world
        refuse_orphans(self.service, self._config())
        turns = Turns(self.service, threads=self.threads, waiting=self.executor.waiting)
        self.supervisor.start(
            session=Recipe(SessionActor, (world, self.contexts, turns)),
            managers={
                "delivery": Recipe(Outbox, (world,)),
                "exchange": Recipe(Coordinator, (world,)),
                "spawn": Recipe(Spawner, (world,)),
            },
            recover=self._recover_flows,
        )
        record_opening(self.service, self._config())
        sweep_staged(self.service)
        found = (
            ()
            if self.workers is None
            else at_workers.begin(self.service, self.workers, self._channels, self._recover_channel)
        )
        if not found:  # else an answer that a worker keeps may name some of them
            sweep_files(self.service)
        recover(self.service)
        if self.workers is not None and found:  # not before its sessions have been told to go on
            self.workers.desk.hear()
        self.expect_workers()
        self.checkpointer.start()
        self.scheduler.start()
        self.retention.start()
        if not self._blocking.by_hand:  # else they take in what is new when they are asked
            if self._log.is_encrypted:
                self.service.reader.full_text.forget()  # of before it was
            views = self._config().views
            if views.keep and self._log.place != MEMORY:
                self.timers.after(milliseconds(views.after_seconds), ("views",), self._views.begin)
            if self._mirror is not None:
                self._mirror.start()

    @cached_property
    def copied(self) -> Copied:
        """When a copy of the log was last taken: looked for from the first time on that somebody asks."""
        return Copied(self._log, now_ms=self._clock.now_ms)

    def expect_workers(self) -> None:
        """Look for workers, if the configuration expects some."""
        if self.workers is not None and self._config().expects_workers:
            self.workers.desk.hear()

    def stop(self, seconds: float) -> None:
        """Stop in order: running agents and deliveries get a grace period, then timers, actors, waits, views beside the log."""
        until = self._clock.monotonic() + seconds
        if self.service.writer is not None:
            self.service.writer.drain(seconds)
        self.scheduler.stop()
        self.retention.stop()
        if self.workers is not None:
            self.workers.desk.leave()
        self.executor.stop(seconds)
        drain(self.service, until - self._clock.monotonic())
        self.caller.stop(max(until - self._clock.monotonic(), 0.0))
        self.timers.stop()
        self._disk.stop()
        self._disk.join(max(seconds, 1.0))
        left = self.supervisor.stop(max(seconds, 1.0))
        if left:
            logger.warning("did not stop in time: %s", ", ".join(left))
        if self.workers is not None:
            self.workers.desk.stop()
        if self.service.writer is None:
            self.checkpointer.stop(until - self._clock.monotonic())
        else:
            self.service.writer.close()
        self.service.waits.close()
        self._chains.close()
        self.service.spending.close()
        for stop in self._stops:
            stop()
        if self._hold_rule is not None:
            self._hold_rule.stop(max(until - self._clock.monotonic(), 0.0))
        self.tracing.stop()
        self._views.stop()
        if self._mirror is not None:
            self._mirror.stop()
        self.threads.shutdown()
        self.reports.stop(max(until - self._clock.monotonic(), LEAST_FOR_REPORTS_S))
        self._runtime.close()

    # --- what actors are handed

    def _recover_channel(self, name: str) -> None:
        self._on_disk(partial(recover_channel, self.service, name), partial(self._channel_recovered, name))

    def _channel_recovered(self, name: str, failed: Exception | None) -> None:
        if isinstance(failed, StoreUnavailable):
            self._later(failed, f"channel {name}", partial(self._recover_channel, name))
        elif failed is not None:
            logger.error("the texts for channel %s were not carried on", name, exc_info=failed)

    def _resume_flow(self, stream: str) -> None:
        """Resume one flow like after a restart; the views are read outside of any actor."""
        self._on_disk(partial(recover_flow, self.service, stream), partial(self._resumed, stream))

    def _resumed(self, stream: str, failed: Exception | None) -> None:
        """Try again where the store was away. Nothing else goes on with a flow until the next start, so any other failure is shown."""
        if isinstance(failed, StoreUnavailable):
            self._later(failed, stream, partial(self._resume_flow, stream))
        elif failed is not None:
            self.supervisor.set_aside(stream, described(failed))
            self.reports.tell("flow_set_aside", stream=stream, error=failed)

    def _recover_flows(self, prefix: str) -> None:
        """Tell a restarted manager its open flows, once the store gives them; the views are read outside of any actor."""
        self._on_disk(partial(recover_flows, self.service, prefix), partial(self._recovered, prefix))

    def _recovered(self, prefix: str, failed: Exception | None) -> None:
        if isinstance(failed, StoreUnavailable):
            self._later(failed, prefix, partial(self._recover_flows, prefix))
        elif failed is not None:
            logger.error("what is open of %s was not carried on", prefix, exc_info=failed)

    def _later(self, error: StoreUnavailable, name: str, again: Callable[[], None]) -> None:
        self.reports.store_unread(error)
        self.timers.after(STORE_RETRY_MS, ("resume", name), again)

    def _on_disk(self, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
        """Do work on files on a thread of its own; while the system stops, nothing is done and nothing comes back."""

        def job() -> None:
            result: T | Exception
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 - the outcome of the work, whatever it is
                result = error
            done(result)

        with suppress(RuntimeError):
            self._disk.submit(Job(job))


def _told(_: object) -> None:
    """Do nothing more: what is left in doubt is looked up at the next start."""


def _runs_of(reader: Reader, root: str) -> list[RunUse]:
    """Return the runs that a causal chain has had."""
    return [RunUse(*run) for run in reader.runs.of_chain(root)]


def _texts_of(reader: Reader, run_id: str) -> RunTexts:
    """Return a run's input and its reply."""
    texts = LoggedTexts(reader.log)
    return RunTexts(texts.asked(run_id), texts.reply(run_id))


LOOK_AGAIN_S = 0.05


def drain(service: Service, seconds: float) -> bool:
    """Wait until no delivery is on its way, at most `seconds`; return whether none is.

    One that is to be tried again later, that waits for such a one, or whose channel is not here, is not waited for: the log has it. Nor
    is one for a channel at workers: these go on with it, and the next process hears of it.
    """
    clock = service.clock
    until = clock.monotonic() + seconds
    try:
        while any(_is_on_its_way(service, stream) for stream in service.flows.open_deliveries()):
            left = until - clock.monotonic()
            if left <= 0:
                return False
            service.log.wait_for(service.log.head() + 1, timeout=min(LOOK_AGAIN_S, left))
    except LogError as error:
        logger.warning("texts that are on their way are not waited for: %s", described(error))
        return False
    return True


def _is_on_its_way(service: Service, stream: str) -> bool:
    delivery: DeliverySummary | None = service.flows.delivery(stream.partition(":")[2])
    return (
        delivery is not None
        and delivery.state in {"decided", "started"}
        and service.world.channels.has(delivery.channel)
        and not service.world.channels.is_at_workers(delivery.channel)
        and not service.world.channels.turns.waits(stream)
    )
