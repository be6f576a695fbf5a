"""The calls that a worker has: it calls their agents, with turns that it makes, and channels, and keeps what came of them until the queue has it (WORK-11, WORK-13)."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from intersession.worker.gateway_work import GatewayWork
from intersession.worker.sessions import Attempt, Sessions
from intersession.worker.turns import Acts, RemoteFiles, RemotePieces, RemoteRecorder, RemoteTools
from intersession.worker.workspaces import files_here
from intersession_actors.outside.agents.agents import Agent
from intersession_actors.outside.agents.executor import AgentExecutor
from intersession_actors.outside.agents.result import AgentResult, Broke, sent_result
from intersession_actors.outside.agents.runners import runner_of
from intersession_actors.outside.agents.turn import Reply, Turn
from intersession_actors.outside.attachments.message_files import check_files
from intersession_actors.outside.channels.at_worker import ChannelsAtWorker
from intersession_actors.outside.channels.caller import ChannelCaller
from intersession_actors.outside.channels.channels import AnyChannel
from intersession_actors.owners.session.turn_of import turn_of
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.config.settings import milliseconds
from intersession_actors.rules.policy.windows import ModelWindow, takes_images
from intersession_actors.running.failures.failure import described
from intersession_actors.running.host.hosts_loop import HostsLoop
from intersession_actors.running.host.threads import Job, Workers
from intersession_actors.running.runtime.clock import SystemClock
from intersession_actors.running.runtime.threads import MachineThreads
from intersession_actors.running.runtime.timers import TimerWheel
from intersession_events.basics.errors import LogError, StoreUnavailable, WorkRefused
from intersession_events.facts import FileBlock
from intersession_events.log.work_queue import CallId, Offer, TakesWork

if TYPE_CHECKING:
    from intersession.gateway.protocol.line import Line

logger = logging.getLogger("intersession.worker")

_AGAIN_S: Final = 0.5
"""How long a worker waits before it asks a queue again that could not be reached."""

TAKE_S: Final = 5.0
"""How long a worker waits for a call before it asks again."""

_MOST_ASKING: Final = 8
"""How many answers wait for another call at once; those beyond are told alone."""

_MOST_THREADS: Final = 16
"""How many threads read sessions and tell answers; agents have their own."""


class _Call:
    """One call, as long as it is the worker's own."""

    def __init__(self, offer: Offer, acts: Acts, since: float) -> None:
        self.offer = offer
        self.since = since
        """When the queue was last asked that said it is the worker's own, by `time.monotonic`."""
        self.acts = acts
        self.is_lost = False
        self.is_answered = False
        self.asks_on = False
        """Whether another call is asked for in its place, as its answer is told."""
        self.turn: Turn | None = None


class Calls:
    """The calls under way. Its methods may be called from any thread."""

    def __init__(
        self,
        work: TakesWork,
        line: "Line",
        agents: Mapping[str, Agent],
        channels: Mapping[str, AnyChannel],
        *,
        name: str,
        config: Callable[[], Config],
        seats: int,
        hosts_loop: HostsLoop,
    ) -> None:
        self._work = work
        # A database is asked by another thread at the same time: that takes it no longer.
        self._gateway = work if isinstance(work, GatewayWork) else None
        self._line = line
        self._seats = seats
        self._asking = 0
        """For how many seats calls are asked for with answers."""
        self._name = name
        self._config = config
        self._sessions = Sessions(lambda offer, after: work.events(name, offer.call, after))
        self._executor = AgentExecutor(
            hosts_loop=hosts_loop,
            pool_size=seats,
            reply_max_bytes=config().runs.reply_max_bytes,
            store_files=self._store,
            on_disk=self._on_disk,
        )
        for agent_id, agent in agents.items():
            self._executor.register(agent_id, agent)
        clock = SystemClock()
        self._timers = TimerWheel(clock)
        self._caller = ChannelCaller(
            seats=seats,
            clock=clock,
            timers=self._timers,
            timeout_ms=milliseconds(config().deliveries.timeout_seconds),
            hosts_loop=hosts_loop,
        )
        self.channels = ChannelsAtWorker(self._caller, channels)
        self._threads = Workers(min(seats, _MOST_THREADS), name="worker-calls", threads=MachineThreads())
        self.changed = threading.Condition()
        self._calls: dict[CallId, _Call] = {}
        self._closed = threading.Event()

    def window(self, agent_id: str) -> ModelWindow:
        """Return what is known here of an agent's model."""
        said = self._executor.window(agent_id, "", 0)
        if isinstance(said, ModelWindow):
            return said
        config = self._config()
        model = config.model_of(agent_id)
        if model is None:
            return ModelWindow()
        return ModelWindow(model=model, images=takes_images(config, agent_id, None, None))

    @property
    def under_way(self) -> Sequence[CallId]:
        """The calls that the worker has, until the queue has what came of each."""
        with self.changed:
            return tuple(self._calls)

    @property
    def busy(self) -> int:
        """How many of them are not answered yet."""
        with self.changed:
            return sum(not call.is_answered for call in self._calls.values())

    @property
    def free(self) -> int:
        """For how many seats calls are to be asked for; for none while answers ask for some: more may follow those."""
        with self.changed:
            return 0 if self._asking else self._seats - self.busy

    def begin(self, offer: Offer, since: float) -> None:
        """Make a call that was taken; it was asked for at a time of `time.monotonic`."""
        call = _Call(offer, Acts(self._line, offer, lambda: self.lose(offer.call)), since)
        with self.changed:
            self._calls[offer.call] = call
        self._submit(partial(self._deliver if offer.kind == "channel" else self._start, call))

    def renewed(self, calls: Sequence[CallId], since: float) -> None:
        """Take in that calls are still the worker's own, as was asked at a time of `time.monotonic`."""
        with self.changed:
            for renewed in calls:
                if (call := self._calls.get(renewed)) is not None:
                    call.since = since
            self.changed.notify_all()

    def lose(self, lost: CallId) -> None:
        """Stop a call that is over, or is no longer the worker's: what its agent or channel answers yet comes late."""
        with self.changed:
            call = self._calls.get(lost)
            if call is None or call.is_answered:
                return
            del self._calls[lost]
            call.is_lost = True
            self.changed.notify_all()
        logger.info("attempt %d of %s is over here", lost.attempt, lost.id)
        self._executor.cancel(lost.id, lost.attempt)  # the next attempt may have begun here
        call.acts.end()

    def stop(self, grace: float) -> None:
        """Wait for the calls for `grace` seconds, and cut off what is left then."""
        with self.changed:
            self.changed.wait_for(lambda: not self._calls, grace)
            left = tuple(self._calls.values())
        self._closed.set()
        with self.changed:
            self.changed.notify_all()
        for call in left:
            call.acts.end()
        self._executor.stop(0.0)
        self._caller.stop(0.0)
        self._timers.stop()
        self._threads.stop()

    # --- one call

    def _submit(self, work: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the worker has ended
            self._threads.submit(Job(work))

    def _start(self, call: _Call) -> None:
        """Make the turn, and call the agent."""
        offer = call.offer
        while True:
            try:
                attempt = self._sessions.attempt(offer)
            except WorkRefused:
                self.lose(offer.call)
            except StoreUnavailable as error:
                logger.info("session %s can't be read now: %s", offer.stream, error)
                if not (call.is_lost or self._closed.wait(_AGAIN_S)):
                    continue
            except LogError as error:
                logger.error("run %s is not answered here: %s", offer.id, error)  # noqa: TRY400 - it says all
                self._answered(call, Broke(code="interrupted", error=f"interrupted: {described(error)}"))
            except Exception as error:
                logger.exception("run %s is not answered here", offer.id)
                self._answered(call, Broke(code="interrupted", error=f"interrupted: {described(error)}"))
            else:
                call.turn = self._turn(call, attempt)
                with self.changed:
                    if call.is_lost:
                        return
                # An attempt before this one that nobody has heard to be over yet.
                self._executor.cancel(offer.id)
                self._executor.start(call.turn, partial(self._answered, call), partial(self._late, call))
                if call.is_lost:
                    self._executor.cancel(offer.id, offer.attempt)
            return

    def _deliver(self, call: _Call) -> None:
        """Call a channel, once it is sure that the call is not another worker's by now: this process may have been paused (WORK-17)."""
        alive_s = self._work.alive_s
        with self.changed:
            self.changed.wait_for(
                lambda: call.is_lost or self._closed.is_set() or time.monotonic() < call.since + alive_s
            )
            if call.is_lost or self._closed.is_set():
                return

        def sent(content: bytes) -> None:
            self._free(call)
            self._submit(partial(self._tell, call, content))

        self.channels.start(call.offer, RemoteFiles(call.acts), sent)

    def _turn(self, call: _Call, attempt: Attempt) -> Turn:
        offer, acts, running = call.offer, call.acts, attempt.running
        key = offer.stream.partition(":")[2]
        pieces, files = RemotePieces(acts), RemoteFiles(acts)
        add = self._executor.pieces.add
        is_shown = running.waiting.queued.step != "compaction"  # a summary is for the model alone

        def say(piece: str) -> None:
            add(key, offer.id, offer.attempt, piece, is_shown=False)
            if is_shown:
                pieces.say(piece)

        spawned = attempt.opened is not None and attempt.opened.spawn_id is not None
        turn = turn_of(
            key,
            running,
            attempt.context,
            tools=RemoteTools(acts, attempt.started.tools, self._executor.waiting),
            recorder=RemoteRecorder(acts),
            store=files,
            pieces=say,
            takes_images=partial(self._takes_images, offer.name, running.model),
            own_files=partial(files_here, self._config, offer.name, files if spawned else None),
        )
        if offer.name == runner_of(key):
            return turn
        return replace(turn, agent_id=offer.name, runner=offer.name)

    def _takes_images(self, agent_id: str, model: str | None) -> bool:
        said = self._executor.window(agent_id, "", 0)
        return takes_images(self._config(), agent_id, model, said if isinstance(said, ModelWindow) else None)

    # --- what came of it

    def _answered(self, call: _Call, result: AgentResult) -> None:
        self._forget(call)
        self._free(call)
        self._submit(partial(self._tell, call, sent_result(result)))

    def _free(self, call: _Call) -> None:
        """Let another call have the seat."""
        with self.changed:
            call.is_answered = True
            call.asks_on = self._gateway is not None and not call.is_lost and self._asking < _MOST_ASKING
            self._asking += call.asks_on
            self.changed.notify_all()

    def _late(self, call: _Call, result: AgentResult) -> None:
        """Tell what an agent answered that was stopped: that it was late is put on record, and nobody uses it."""
        self._forget(call)
        if not isinstance(result, Broke):
            self._submit(partial(self._tell, call, sent_result(result)))

    def _forget(self, call: _Call) -> None:
        run_id, attempt = call.offer.id, call.offer.attempt
        self._executor.results.forget(run_id, attempt)
        self._executor.pieces.over(run_id, attempt)

    def _tell(self, call: _Call, content: bytes) -> None:
        """Tell the queue, again until it has heard."""
        offers: Sequence[Offer] = ()
        while True:
            asked_at = time.monotonic()
            try:
                if self._gateway is not None and call.asks_on:
                    with self._threads.waiting():
                        offers, counts = self._gateway.go_on(self._name, call.offer.call, content, 1, TAKE_S)
                else:
                    counts = self._work.answer(self._name, call.offer.call, content)
                if not counts:
                    logger.info("the answer to %s came late", call.offer.id)
            except WorkRefused as refused:
                logger.warning("the answer to %s is not taken: %s", call.offer.id, refused)
            except StoreUnavailable as error:
                logger.info("the answer to %s can't be told yet: %s", call.offer.id, error)
                if not self._closed.wait(_AGAIN_S):
                    continue
            break
        with self.changed:
            if self._calls.get(call.offer.call) is call:
                del self._calls[call.offer.call]
            self._asking -= call.asks_on
            for offer in offers:
                self.begin(offer, asked_at)
            self.changed.notify_all()
        call.acts.end()

    def _store(self, turn: Turn, reply: Reply) -> Sequence[FileBlock]:
        """Have the writer store the files of an answer."""
        store = turn._store  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - the one that the turn was made with
        files = check_files(reply.files, self._config().files)
        return store.store(files) if isinstance(store, RemoteFiles) else ()

    def _on_disk(
        self, work: Callable[[], AgentResult], done: Callable[[AgentResult | Exception], None]
    ) -> None:
        def job() -> None:
            try:
                result: AgentResult | Exception = work()
            except Exception as error:  # noqa: BLE001 - the outcome of the work, whatever it is
                result = error
            done(result)

        self._submit(job)
