"""Runs agents outside of any actor, for the session actors: one result for each call, as a callback.

A session's actor that fails is started anew from the log, and what it had been told is gone. So its agent's result is kept
here until it is recorded: no agent is asked twice because an actor failed.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Final, Literal, NamedTuple

import msgspec

from intersession_actors.outside.agents.agents import Agent, function_of
from intersession_actors.outside.agents.own_tools.own_tool import Answering
from intersession_actors.outside.agents.pieces import Pieces
from intersession_actors.outside.agents.recorded import RecordedAgent
from intersession_actors.outside.agents.result import (
    DEFAULT_REPLY_BYTES,
    AgentResult,
    Answered,
    Broke,
    result_of,
)
from intersession_actors.outside.agents.runners import runner_of
from intersession_actors.outside.agents.turn import AgentFunction, Reply, Turn
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.policy.windows import ModelWindow, Reckoned
from intersession_actors.running.failures.failure import described
from intersession_actors.running.host.calls import Blocking, Call, Came, Inside, Outcome, Outside, is_async
from intersession_actors.running.host.hosts_loop import HostsLoop
from intersession_actors.running.runtime.threads import MachineThreads, Threads
from intersession_events import facts
from intersession_events.log.recorded import Recorded

logger = logging.getLogger("intersession.runs")

MOST_LOST: Final = 16
"""How many calls of one agent may have been given up and not come back; each keeps a thread or an actor busy."""

_MOST_THREADS: Final = 128
"""The most threads that call sync agents, all together."""

_CLOSING_S: Final = 5.0
"""How long a stop waits for programs of MCP servers to end; one that does not is killed before that."""

OnResult = Callable[[AgentResult], None]
OnDisk = Callable[[Callable[[], AgentResult], Callable[[AgentResult | Exception], None]], None]
"""Does work on files on a thread of its own, and hands on what came of it."""
Around = Callable[[Turn], AbstractContextManager[object] | None]


MOST_FAILURES: Final = 3
"""How often an actor may fail on a result; then that counts as a bad reply, and the session goes on."""


def _nobody(_: Sequence[facts.FileBlock]) -> None:
    """Tell nobody that files are named on record."""


class _KnownResult(NamedTuple):
    result: AgentResult
    failures: int = 0


def _is_on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Results:
    """The results by run and attempt. Its methods may be called from any thread."""

    HANDLES = facts.RunEnd | facts.RunInterrupted | facts.LateReplyDropped

    def __init__(
        self, pieces: Pieces, files_named: Callable[[Sequence[facts.FileBlock]], None] = _nobody
    ) -> None:
        self._pieces = pieces
        self._files_named = files_named
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, int], _KnownResult] = {}
        self._due: set[tuple[str, int]] = set()

    def due(self, run_id: str, attempt: int) -> None:
        """Note a recorded attempt whose agent is about to be called."""
        with self._lock:
            self._due.add((run_id, attempt))

    def called(self, run_id: str, attempt: int) -> None:
        """Note that the agent is called."""
        with self._lock:
            self._due.discard((run_id, attempt))

    def is_due(self, run_id: str, attempt: int) -> bool:
        """Whether this process began the attempt, and has not called the agent."""
        return (run_id, attempt) in self._due

    def keep(self, run_id: str, attempt: int, result: AgentResult) -> None:
        """Store an agent's result, before any actor is told of it."""
        with self._lock:
            self._kept[run_id, attempt] = _KnownResult(result)

    def of(self, run_id: str, attempt: int) -> AgentResult | None:
        """Return the agent's result; None if there is none, or if it is recorded."""
        kept = self._kept.get((run_id, attempt))
        return None if kept is None else kept.result

    def failed_on(self, run_id: str, attempt: int, error: Exception) -> None:
        """Note that an actor failed while it handled a result."""
        with self._lock:
            kept = self._kept.get((run_id, attempt))
            if kept is None:
                return
            result, failures = kept.result, kept.failures + 1
            if failures == MOST_FAILURES and isinstance(result, Answered):
                why = f"the session failed on the answer {failures} times: {described(error)}"
                result = Broke(code="bad_reply", error=why)
            self._kept[run_id, attempt] = _KnownResult(result, failures)

    def forget(self, run_id: str, attempt: int) -> None:
        """Drop a result that will not be recorded."""
        with self._lock:
            self._kept.pop((run_id, attempt), None)

    def take(self, recorded: Sequence[Recorded]) -> None:
        """Drop the results that are recorded now."""
        for item in recorded:
            event = item.event
            match event:
                case facts.RunCompleted() | facts.LateReplyDropped():
                    self.forget(event.run_id, event.attempt)
                    self._pieces.over(event.run_id, event.attempt)
                    if files := facts.files_in(event):
                        self._files_named(files)
                case facts.RunFailed() | facts.RunInterrupted() | facts.RunAborted():
                    self._pieces.over(event.run_id, event.attempt)
                    self.called(event.run_id, event.attempt)
                    # One that answered meanwhile comes too late, and that is to be recorded yet.
                    if isinstance(self.of(event.run_id, event.attempt), Broke):
                        self.forget(event.run_id, event.attempt)
                case _:
                    pass


class _Running(NamedTuple):
    attempt: int
    call: Call
    runner: str


def _nothing(_: Turn) -> None:
    """Give nothing that an agent is called inside of."""


@contextmanager
def _both(outer: AbstractContextManager[object], inner: AbstractContextManager[object]) -> Generator[None]:
    with outer, inner:
        yield


class _Registered(NamedTuple):
    function: AgentFunction
    is_async: bool


def _goes_on(registered: _Registered) -> bool:
    return getattr(registered.function, "goes_on", False)


class AgentExecutor:
    """Calls agents: a sync one on at most `pool_size` threads at a time, async ones on the host's event loop or one of our own.

    `store_files` stores the files of an answer, on a thread of `on_disk`, before the answer counts as come; `files_named` hears
    that they are named on record. A run has one result, the first; what comes after it was cancelled is late. Callbacks come from any thread
    and must not block. Agents are called inside of what `around` gives, if it gives something.
    """

    def __init__(
        self,
        *,
        pool_size: int = 8,
        reply_max_bytes: int = DEFAULT_REPLY_BYTES,
        hosts_loop: HostsLoop | None = None,
        around: Around = _nothing,
        threads: Threads | None = None,
        blocking: Blocking | None = None,
        store_files: Callable[[Turn, Reply], Sequence[facts.FileBlock]] | None = None,
        files_named: Callable[[Sequence[facts.FileBlock]], None] = _nobody,
        on_disk: OnDisk | None = None,
    ) -> None:
        threads = threads or MachineThreads()
        self._outside = Outside(
            pool_size=max(pool_size, _MOST_THREADS),
            keep=pool_size,
            per_lane=pool_size,
            name="agents",
            hosts_loop=hosts_loop,
            threads=threads,
            blocking=blocking,
        )
        self._reply_max_bytes = reply_max_bytes
        self._around = around
        self._store_files = store_files
        self._on_disk = on_disk
        self.pieces = Pieces(self.is_running, reply_max_bytes)
        """What agents have said so far, until the end of their attempts is recorded."""
        self.results = Results(self.pieces, files_named)
        """What came back, until it is recorded."""
        self._changed = threads.changed()
        self._agents: dict[str, _Registered] = {}
        self._away: set[str] = set()
        """Those of them that no worker has at present: what has begun goes on, and nothing else begins."""
        self.adopted: set[tuple[str, int]] = set()
        """The attempts of a process before this one that workers go on with, until they are called here (WORK-4)."""
        self._running: dict[str, _Running] = {}
        """By run: an attempt is made when the one before it has come back."""
        self._zombies: dict[Call, str] = {}
        self._stopping = False
        self.closing = False
        """No further run is begun: its attempt would only be cut off."""

    def register(self, agent_id: str, agent: Agent) -> None:
        """Register the agent of an agent id, from the next turn on.

        Raises:
            ToolRefused: this is no agent: not callable, no Pykka actor, no pydantic-ai Agent; or a function
                that can't be called with a turn alone.
            MissingExtra: the library it belongs to is an extra that is not installed.
        """
        function = function_of(f"agents[{agent_id!r}]", agent)
        with self._changed:
            self._agents[agent_id] = _Registered(function, is_async(function))
            self._away.discard(agent_id)

    def register_remote(self, agent_id: str, function: AgentFunction, *, is_away: bool = False) -> bool:
        """Register an agent that workers have, unless this process has one itself; `is_away`: none has it at present.

        Returns whether runs can begin that could not before.
        """
        with self._changed:
            known = self._agents.get(agent_id)
            if known is not None and not _goes_on(known):
                return False
            was_here = known is not None and agent_id not in self._away
            self._agents[agent_id] = _Registered(function, is_async=True)
            if is_away:
                self._away.add(agent_id)
            else:
                self._away.discard(agent_id)
            return not (was_here or is_away)

    def has(self, agent_id: str) -> bool:
        """Whether this process has an agent for an agent id, or a worker has it."""
        return agent_id in self._agents and agent_id not in self._away

    def resumes(self, agent_id: str) -> bool:
        """Whether an agent id's agent continues an attempt that a fork has cut in its middle (`RecordedAgent`)."""
        agent = self._agents.get(agent_id)
        return agent is not None and isinstance(agent.function, RecordedAgent)

    def window(
        self, agent_id: str, run_id: str, attempt: int
    ) -> "ModelWindow | Reckoned | Literal['as before'] | None":
        """Return the context window that an agent states for its model; one that answers from a recording has the recorded one.

        In a replay it is what was recorded of the attempt.
        """
        del run_id, attempt
        agent = self._agents.get(agent_id)
        if agent is None:
            return None
        if isinstance(agent.function, RecordedAgent):
            return "as before"
        said = getattr(agent.function, "model_window", None)
        return said if isinstance(said, ModelWindow) else None

    @property
    def registered(self) -> tuple[str, ...]:
        """The registered agent ids, sorted."""
        with self._changed:
            return tuple(sorted(self._agents.keys() - self._away))

    def start(
        self, turn: Turn, done: OnResult, late: OnResult | None = None, *, inside: Inside = nullcontext
    ) -> None:
        """Call the agent; `done` gets its result, once. Never blocks, never raises.

        An agent that has `MOST_LOST` calls which never came back is not called until one of them does.

        `late` gets what an agent answers after it was cancelled. The agent's code runs `inside` what is given.

        While the executor stops, nothing is called and nothing comes back: the run is tried again after the restart.
        """
        call = Call(
            lambda outcome: self._came_back(turn, outcome, done),
            lambda outcome: self._came_late(turn, outcome, late),
            name=f"agent {turn.agent_id}",
        )
        self.results.called(turn.run_id, turn.attempt)
        with self._changed:
            self.adopted.discard((turn.run_id, turn.attempt))
            if self._stopping:
                return
            runner = turn.runner or runner_of(turn.session_key)
            agent = self._agents.get(runner)
            lost = self._lost(runner)
            if agent is not None and lost < MOST_LOST:
                self._running[turn.run_id] = _Running(turn.attempt, call, runner)
        if agent is None:
            error = f"no agent {turn.agent_id!r} is registered in this process"
            self._report(turn, done, Broke(code="no_agent", error=error))
            return
        if lost >= MOST_LOST:
            error = f"agent {runner!r} is not called: {lost} calls of it were given up and have not come back"
            self._report(turn, done, Broke(code="backend", error=error))
            return

        def within() -> AbstractContextManager[None]:
            around = self._around(turn)
            return Answering(turn, inside() if around is None else _both(inside(), around))

        self._outside.call(call, agent.function, turn, inside=within, lane=runner, on_loop=agent.is_async)

    def cancel(self, run_id: str, attempt: int | None = None) -> None:
        """Stop a run as far as possible, or only one attempt of it: its task is cancelled, its thread given up and replaced.

        Its callback is not called any more.
        """
        with self._changed:
            running = self._running.get(run_id)
            if running is None or attempt not in {None, running.attempt}:
                return
            del self._running[run_id]
        self._cancel([running])
        self.pieces.over(run_id, running.attempt)

    def is_running(self, run_id: str, attempt: int) -> bool:
        """Whether this process is calling the agent for this attempt."""
        running = self._running.get(run_id)
        return running is not None and running.attempt == attempt

    def waiting(self) -> AbstractContextManager[None]:
        """Leave the calling thread out of the pool's count while its agent waits in a tool call, so that others can run."""
        return self._outside.waiting()

    @property
    def zombies(self) -> int:
        """How many cancelled calls have not returned: threads that can't be killed, actors that don't answer."""
        with self._changed:
            return self._lost()

    def stop(self, grace: float) -> tuple[str, ...]:
        """Start no more calls, wait up to `grace` seconds in all, cut off the rest; return their run ids.

        What is cut off reports nothing: in the log it is still running, so it is tried again after the restart. What workers
        do goes on without this process.
        """
        with self._changed:
            self._stopping = True
            self._changed.wait_for(self._is_done, timeout=grace)
            left, self._running = self._running, {}
        self._cancel(list(left.values()))
        self._close_connections()
        self._outside.stop(grace)
        return tuple(left)

    def _is_done(self) -> bool:
        return all(_goes_on(self._agents[one.runner]) for one in self._running.values())

    def _close_connections(self) -> None:
        """Close what agents keep open, such as the programs of MCP servers, before the loop that they live on ends."""
        ended: list[Future[None]] = []
        for agent in tuple(self._agents.values()):
            close: Callable[[], list[Future[None]]] | None = getattr(
                agent.function, "close_connections", None
            )
            ended += [] if close is None else close()
        # On a loop nobody waits: it may be the one that they live on.
        if ended and not _is_on_a_loop():
            wait(ended, timeout=_CLOSING_S)

    def _cancel(self, cut_off: list[_Running]) -> None:
        for one in cut_off:
            one.call.cancel()
        with self._changed:
            self._zombies.update({one.call: one.runner for one in cut_off})
            self._lost()

    def _lost(self, runner: str | None = None) -> int:
        """Count the calls that were given up and have not come back, of one agent or of all."""
        if not self._zombies:
            return 0
        self._zombies = {call: of for call, of in self._zombies.items() if call.is_zombie}
        return len(self._zombies) if runner is None else list(self._zombies.values()).count(runner)

    def _came_back(self, turn: Turn, outcome: Outcome, done: OnResult) -> None:
        if isinstance(outcome, Came) and isinstance(reply := outcome.value, Reply) and reply.files:
            self._with_files(turn, outcome, reply, done)
        else:
            self._report(turn, done, result_of(outcome, turn, most_bytes=self._reply_max_bytes))
        with self._changed:
            if self.is_running(turn.run_id, turn.attempt):
                del self._running[turn.run_id]
            if self._stopping:
                self._changed.notify_all()

    def _with_files(self, turn: Turn, outcome: Outcome, reply: Reply, done: OnResult) -> None:
        """Have the files of an answer stored; else the run fails, and says why."""
        if self._store_files is None or self._on_disk is None:
            self._report(
                turn, done, Broke(code="bad_reply", error="its answer has files, and there is no store")
            )
            return
        store = partial(self._stored, turn, outcome, reply)

        def stored(result: AgentResult | Exception) -> None:
            if isinstance(result, Exception):
                result = Broke(
                    code="backend", error=f"the files of its answer can't be stored: {described(result)}"
                )
            self._report(turn, done, result)

        self._on_disk(store, stored)

    def _stored(self, turn: Turn, outcome: Outcome, reply: Reply) -> AgentResult:
        result = result_of(outcome, turn, most_bytes=self._reply_max_bytes)
        if self._store_files is None or isinstance(result, Broke):
            return result
        try:
            return msgspec.structs.replace(result, files=tuple(self._store_files(turn, reply)))
        except ToolRefused as refused:
            return Broke(
                code="bad_reply", error=f"agent {turn.agent_id!r} gave a file that is not taken: {refused}"
            )

    def _came_late(self, turn: Turn, outcome: Outcome, late: OnResult | None) -> None:
        with self._changed:
            stopping = self._stopping
        if late is not None and not stopping:
            self._report(turn, late, result_of(outcome, turn, most_bytes=self._reply_max_bytes))

    def _report(self, turn: Turn, done: OnResult, result: AgentResult) -> None:
        self.results.keep(turn.run_id, turn.attempt, result)
        try:
            done(result)
        except BaseException:
            logger.exception("the result of a run could not be delivered")
