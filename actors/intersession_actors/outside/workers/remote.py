"""Agents that workers have: each is an agent function here, which offers its attempt to them and returns their answer (WORK-4 to WORK-6)."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Final, Literal

import msgspec

from intersession_actors.outside.agents.acts import EDITION
from intersession_actors.outside.agents.executor import AgentExecutor
from intersession_actors.outside.agents.result import AgentResult, Answered, Broke, received_result, result_of
from intersession_actors.outside.agents.turn import Turn
from intersession_actors.outside.attachments.message_files import File
from intersession_actors.outside.workers.desk import Desk, names_at
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.policy.windows import ModelWindow
from intersession_actors.running.host.calls import Came
from intersession_actors.running.host.own_threads import off_loop
from intersession_actors.running.runtime.threads import Changed
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.basics.keys.key import valid_agent_id
from intersession_events.basics.plain_json import JsonObject
from intersession_events.log.log import ReadsEvents
from intersession_events.log.recorded import Recorded
from intersession_events.log.work_queue import Answer, CallId, Offer, QueuedCall, Worker

logger = logging.getLogger("intersession.workers")

Late = Callable[[str, int, AgentResult, Recorded], None]
"""Is told of a run, an attempt that was over, what its worker said late, and the event with which the attempt began."""

_WINDOW: Final = msgspec.json.Decoder(ModelWindow)
SECRET_BYTES: Final = 24
"""How many random bytes the secret of a call has."""

_PAGE: Final = 50


class UnderWay:
    """An attempt that a worker makes: its acts are done with the turn, as part of its run."""

    def __init__(
        self,
        name: str,
        turn: Turn,
        secret: str,
        changed: Changed,
        agents: "RemoteAgents",
    ) -> None:
        self.name = name
        self.turn = turn
        self.secret = secret
        self._agents = agents
        self.is_adopted = False
        """Whether the process before offered it, and did what it had done until then."""
        self.context: Context = copy_context()
        """What acts are done in: they go on with the chain of the run (LOOP-5)."""
        self.changed = changed
        self.acts: OrderedDict[bytes, Future[JsonObject]] = OrderedDict()
        """What comes of the last acts that must not be done twice, by their words and their number."""
        self.shown = 0
        """The number of the last piece of the answer that was shown."""
        self.files: dict[str, facts.FileBlock] = {}
        """The files of the answer that were stored, by SHA-256."""

    def check(self) -> None:
        """Refuse what is done in an attempt that is over. One that the process leaves to the next writer is not.

        Raises:
            ToolRefused: it is over (`run_over`), or this process ends (`unavailable`).
        """
        self._agents.check(CallId("agent", self.turn.run_id, self.turn.attempt))

    def check_stays(self) -> None:
        """Refuse to go on with it where this process ends: the next writer does.

        Raises:
            ToolRefused: it ends (`unavailable`).
        """
        self._agents.desk.check_stays()


class RemoteAgent:
    """An agent that workers have."""

    goes_on = True
    """While the process ends, a call of it is left to its worker, and nobody waits for it."""

    def __init__(self, agents: "RemoteAgents", name: str) -> None:
        self._agents = agents
        self.name = name
        self.model_window: ModelWindow | None = None

    async def __call__(self, turn: Turn) -> AgentResult:
        """Answer one turn, by a worker."""
        return await self._agents.call(self.name, turn)


class RemoteAgents:
    """Has agents of living workers registered, and their attempts made. Its methods may be called from any thread.

    `knows` is told of each agent that a worker announces, and `wake` starts the runs that were parked for it. `late` is told of late
    answers. No answer has more than `most_bytes`; `store` stores the files of one.
    """

    def __init__(
        self,
        desk: Desk,
        log: ReadsEvents,
        executor: AgentExecutor,
        *,
        changed: Callable[[], Changed],
        entropy: Callable[[int], bytes],
        knows: Callable[[str], None],
        wake: Callable[[str], None],
        late: Late,
        most_bytes: int,
        store: Callable[[Sequence[File]], Sequence[facts.FileBlock]],
    ) -> None:
        self.desk = desk
        self._log = log
        self._executor = executor
        self._changed = changed
        self._entropy = entropy
        self._knows = knows
        self._wake = wake
        self._late = late
        self._most_bytes = most_bytes
        self._store = store
        self._agents: dict[str, RemoteAgent] = {}
        self._under_way: dict[CallId, UnderWay] = {}
        desk.late_with("agent", self._came_late)
        desk.watch(self._heard)

    # --- at a start

    def begin(self, *, expects: bool) -> Sequence[QueuedCall]:
        """Have the attempts adopted that the log says are under way; withdraw those that are over, and drop the rest.

        Agents of living workers are known from then on, before sessions and exchanges go on. Returns what the process before left
        in the queue. Some workers are expected, or not.

        Raises:
            StoreUnavailable: the store is away.
        """
        found = self.desk.begin(expects=expects)
        for one in found:
            if one.kind == "agent":
                self._adopt(one)
        if found or expects:
            self._heard(self.desk.queue.workers(), wakes=False)
        return found

    def _adopt(self, one: QueuedCall) -> None:
        match stands(self._log, one):
            case "open":
                self._executor.adopted.add((one.id, one.attempt))
                self._executor.register_remote(one.name, self._agent(one.name), is_away=True)
            case "cut off":
                self.desk.withdraw(one.call)
            case "on record":
                self.desk.done([one.call])

    # --- which agents there are

    def _agent(self, name: str) -> RemoteAgent:
        return self._agents.setdefault(name, RemoteAgent(self, name))

    def _heard(self, workers: Sequence[Worker], *, wakes: bool = True) -> None:
        found = names_at(workers, "agent")
        for name, said in found.items():
            if not valid_agent_id(name):
                logger.warning(
                    "a worker says that it has the agent %r, which can't be the id of one", name[:64]
                )
                continue
            agent = self._agent(name)
            agent.model_window = _window_in(said)
            if self._executor.register_remote(name, agent):
                logger.info("agent %s is at a worker", name)
                self._knows(name)
                if wakes:
                    self._wake(name)
        for name in self._agents.keys() - found.keys():
            self._executor.register_remote(name, self._agents[name], is_away=True)

    # --- calls

    async def call(self, name: str, turn: Turn) -> AgentResult:
        """Have a worker make a turn, and return what came of it."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[bytes | None] = loop.create_future()

        def settle(content: bytes | None) -> None:
            if not answered.done():
                answered.set_result(content)

        def told(content: bytes | None) -> None:
            with suppress(RuntimeError):  # the loop has ended: the next writer adopts it
                loop.call_soon_threadsafe(settle, content)

        call = CallId("agent", turn.run_id, turn.attempt)
        version, context_hash = turn.begun
        known = self.desk.secret_of(call)
        secret = known or self._entropy(SECRET_BYTES).hex()
        self._under_way[call] = under = UnderWay(name, turn, secret, self._changed(), self)
        under.is_adopted = known is not None
        offer = Offer(
            kind="agent",
            id=turn.run_id,
            attempt=turn.attempt,
            name=name,
            stream=ids.session_stream(turn.session_key),
            version=version,
            secret=secret,
            context_hash=context_hash,
            content=EDITION,
            deadline=turn.deadline,
        )
        self.desk.offer(offer, told)
        try:
            content = await answered
            if content is None:
                return Broke(
                    code="interrupted",
                    error=f"interrupted: the worker of agent {name!r} is not heard of any more",
                )
            if b'"files"' in content:
                return await off_loop(self._checked, content, turn, under)
            return self._checked(content, turn, under)
        except asyncio.CancelledError:
            self.desk.withdraw(call)
            raise
        finally:
            self._under_way.pop(call, None)

    def under_way(self, call: CallId) -> UnderWay | None:
        """Return an attempt that is under way in this process; None also where it is yet to be called (`check`)."""
        return self._under_way.get(call)

    def check(self, call: CallId) -> None:
        """Refuse what is done in an attempt that is not under way; one that is about to be adopted is.

        Raises:
            ToolRefused: it is over (`run_over`), or this process ends (`unavailable`).
        """
        agents = self._executor
        self.desk.check_stays()
        if not ((call.id, call.attempt) in agents.adopted or agents.is_running(call.id, call.attempt)):
            raise ToolRefused("run_over", "run: this attempt is over, stop working on it")

    def _checked(self, content: bytes, turn: Turn, under: UnderWay | None) -> AgentResult:
        """Return what a worker answered, held against the limits on what any agent answers."""
        try:
            result = received_result(content)
        except ValueError as error:
            return Broke(
                code="bad_reply", error=f"the worker of agent {turn.agent_id!r} gave no result: {error}"
            )
        if isinstance(result, Answered) and result.files:
            files = () if under is None else tuple(self._stored_for(under, file) for file in result.files)
            if None in files:
                return Broke(
                    code="bad_reply", error="its answer names files that were not stored for it (putFile)"
                )
            result = msgspec.structs.replace(result, files=files)
        return result_of(Came(result), turn, most_bytes=self._most_bytes)

    def _stored_for(self, under: UnderWay, file: facts.FileBlock) -> facts.FileBlock | None:
        """Return a file of an answer as it was stored; one that the process before had stored is looked at anew."""
        if file.sha256 in under.files or not under.is_adopted:
            return under.files.get(file.sha256)
        data = self._log.files.read(file.sha256)
        if data is None:
            return None
        try:
            (block,) = self._store(
                [File(data=data, name=file.name, mime_type=file.claimed or file.mime_type)]
            )
        except ToolRefused:
            return None
        return block

    # --- what is over

    def take(self, recorded: Sequence[Recorded]) -> None:
        """Be done with the attempts whose end is on record."""
        for item in recorded:
            event = item.event
            match event:
                case facts.RunCompleted() | facts.LateReplyDropped():
                    self.desk.done([CallId("agent", event.run_id, event.attempt)])
                case facts.RunFailed() | facts.RunInterrupted() | facts.RunAborted():
                    call = CallId("agent", event.run_id, event.attempt)
                    # The end of one whose answer is still to be recorded as late did not come of that answer.
                    is_late = call in self._under_way or isinstance(
                        self._executor.results.of(event.run_id, event.attempt), Answered
                    )
                    if self.desk.is_told(call) and not is_late:
                        self.desk.done([call])
                case _:
                    pass

    def _came_late(self, answer: Answer, known: QueuedCall | Offer) -> None:
        key = known.stream.partition(":")[2]
        begun = begun_in(self._log, known.stream, answer.id, answer.attempt)
        if begun is None:
            self.desk.done([answer.call])
            return
        asked = facts.Message(id="", role="user", content="", timestamp=0)
        turn = Turn(
            agent_id=known.name,
            session_key=key,
            step="message",
            asked=asked,
            run_id=answer.id,
            attempt=answer.attempt,
        )
        result = self._checked(answer.content, turn, None)
        if isinstance(result, Broke):  # nothing is recorded of a failure that comes late
            self.desk.done([answer.call])
        else:
            self._late(answer.id, answer.attempt, result, begun)


def stands(log: ReadsEvents, one: QueuedCall) -> Literal["open", "cut off", "on record"]:
    """Return how an attempt in the queue stands by the log. "cut off": its end is not what came of its worker.

    One that never began has nothing to wait for, as one whose answer is on record.
    """
    ended = False
    for recorded in _backwards(log, one.stream):
        event = recorded.event
        if not isinstance(event, facts.RunAttempt | facts.LateReplyDropped):
            continue
        if (event.run_id, event.attempt) != (one.id, one.attempt):
            continue
        match event:
            case facts.RunStarted():
                return "cut off" if ended else "open"
            case facts.RunAborted() | facts.RunInterrupted(too_long=None):
                ended = True
            case facts.RunFailed(code=code) if code == "timeout":
                ended = True
            case facts.RunCompleted() | facts.RunFailed() | facts.RunInterrupted() | facts.LateReplyDropped():
                return "on record"
            case _:
                pass
    return "on record"


def begun_in(log: ReadsEvents, stream: str, run_id: str, attempt: int) -> Recorded | None:
    """Return the event with which an attempt of a run began."""
    for recorded in _backwards(log, stream):
        event = recorded.event
        if isinstance(event, facts.RunStarted) and (event.run_id, event.attempt) == (run_id, attempt):
            return recorded
    return None


def _backwards(log: ReadsEvents, stream: str) -> Iterator[Recorded]:
    to: int | None = None
    while page := log.stream(stream, to=to, backwards=True, limit=_PAGE):
        yield from page
        to = page[-1].version - 1


def _window_in(said: str) -> ModelWindow | None:
    try:
        return _WINDOW.decode(said) if said else None
    except ValueError as error:
        logger.warning("what a worker says of the window of a model can't be read: %s", error)
        return None
