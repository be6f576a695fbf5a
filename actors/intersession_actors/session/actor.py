"""The session actor: the lane of one session. It takes messages in order and runs the agent on them one at a time.

The thin shell round `session_rules.py`: decide, append, and only when the log has it act. It is woken from the log by its
first message and put to sleep when it has nothing to do.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import pykka

from intersession_actors.agents import Answered, Broke
from intersession_actors.policy import Verdict
from intersession_actors.prompt import RunContext
from intersession_actors.runtime import Handler
from intersession_actors.session import rules as session_rules
from intersession_actors.session import state as session_state
from intersession_actors.session.answers import decide_returned, ended_of
from intersession_actors.session.commands import (
    Abort,
    AddMessage,
    Archive,
    CheckSend,
    ContextBuilt,
    DeadlinePassed,
    Enqueue,
    IdleFor,
    Patch,
    ReadAgain,
    RecordMessages,
    Reset,
    RunReturned,
    Unbind,
    Wake,
)
from intersession_actors.session.context_cache import ContextCache
from intersession_actors.session.runs import RETURNED, RunStarter, TurnMaker
from intersession_actors.session.state import Session
from intersession_actors.streams import (
    Accepted,
    Appended,
    ChildGone,
    Command,
    Refused,
    StepRefused,
    StepTaken,
    StreamLoaded,
    World,
    append_of,
)
from intersession_events import ids
from intersession_events.crash_points import crash_point
from intersession_events.errors import AppendConflict, NotStorable
from intersession_events.facts import Event, RunAborted, RunCompleted, RunFailed, RunStarted, SessionArchived
from intersession_events.log import Committed, Conflict, Recorded, StreamAppend, Unavailable

logger = logging.getLogger(__name__)
STORE_RETRY_MS = 500
_OF_A_RUN = (RunReturned, RecordMessages, DeadlinePassed, Abort, Wake)


class SessionActor(Handler):
    """The single writer of one session's stream."""

    def __init__(self, world: World, contexts: ContextCache, make_turn: TurnMaker, key: str) -> None:
        super().__init__()
        self.world = world
        self._transcripts = contexts
        self.key = key
        self.stream = ids.session_stream(key)
        self.state = Session()
        self.version = 0
        self._loading = True
        self._command: Command | None = None
        """What the append under way decides; None if none is."""
        self._building: str | None = None
        """The run whose context is being read."""
        self._contexts: dict[str, RunContext] = {}
        self._waiting: deque[Command] = deque()
        self._left_behind: tuple[str, int] | None = None
        """The attempt that an earlier process, or an earlier life of this actor, left under way."""
        self._asleep_after = -1
        self._store_gone_since: int | None = None
        self._starter = RunStarter(world, contexts, make_turn, key, self._tell_self)

    def on_start(self) -> None:
        """Read the stream."""
        self._load()

    def on_receive(self, message: Any) -> None:
        """Take a command, or what comes back from the log, the agent or the clock."""
        match message:
            case StreamLoaded():
                self._loaded(message)
            case Appended():
                self._appended(message)
            case ContextBuilt():
                self._built(message)
            case IdleFor():
                self._sleep(message)
            case Command():
                self._waiting.append(message)
                self._go_on()
            case _:
                logger.warning("%s can't take %r", self.key, message)

    # --- reading the log

    def _load(self) -> None:
        self._loading = True
        self.world.log.load(
            self.stream, lambda recorded: self._tell_self(StreamLoaded(stream=self.stream, recorded=recorded))
        )

    def _loaded(self, message: StreamLoaded) -> None:
        if isinstance(message.recorded, Exception):
            raise message.recorded
        self.state, self.version = Session(), 0
        for recorded in message.recorded:
            self._evolve(recorded)
        self._loading = False
        self._watch_thread()
        running = self.state.running
        if running is not None and self._command is None:
            # Begun by this process before this actor was started again, it will come back; begun by an earlier
            # one, it never will.
            run_id = running.waiting.queued.run_id
            if self.world.agents.is_running(run_id, running.attempt):
                self._starter.watch(running)
            else:
                self._left_behind = (run_id, running.attempt)
                self._waiting.appendleft(Wake())
        self._go_on()

    def _was_left_behind(self) -> bool:
        """Whether the run under way was found so in the log, and nobody works on it."""
        running = self.state.running
        return running is not None and (running.waiting.queued.run_id, running.attempt) == self._left_behind

    def _made_good(self) -> Sequence[Event]:
        if not self._was_left_behind():
            return ()  # told to go on, and it does
        return session_rules.decide_wake(
            self.state,
            retry_interrupted=self.world.retry_interrupted,
            now_ms=self.world.clock.now_ms(),
        )

    def _evolve(self, recorded: Recorded) -> None:
        self.state = session_state.evolve(self.state, recorded)
        self.version = recorded.version

    # --- one command at a time

    def _go_on(self) -> None:
        while self._waiting and not self._loading and self._command is None:
            self._decide(self._waiting.popleft())
        if self._loading or self._command is not None or self._waiting:
            return
        self._start_next()
        if self._command is None and self._building is None and self.state.idle:
            self._rest()

    def _decide(self, command: Command) -> None:  # noqa: C901, PLR0912 - one line a command
        match command:
            case Enqueue():
                self._enqueue(command)
            case RunReturned():
                self._returned(command)
            case RecordMessages():
                self._record(command, session_rules.decide_messages(self.state, command))
            case AddMessage():
                verdict = self._policy(None) if command.check_policy else None
                self._record(
                    command,
                    Refused(code="policy_denied", error=f"sessionKey: {verdict.rule}")
                    if verdict is not None and not verdict.allowed
                    else session_rules.decide_add(self.state, command),
                )
            case Patch():
                self._record(command, session_rules.decide_patch(self.state, command))
            case Reset():
                self._record(command, session_rules.decide_reset(self.state, command))
            case Archive():
                self._record(
                    command, session_rules.decide_archive(self.state, command), carried=command.carried
                )
            case Abort():
                self._record(command, session_rules.decide_abort(self.state, command))
            case DeadlinePassed():
                self._timed_out(command)
            case CheckSend():
                command.answer(self._policy(command.channel))
            case Wake():
                self._record(command, self._made_good())
            case ReadAgain():
                self._load()
            case Unbind():
                now = self.world.clock.now_ms()
                self._record(command, session_rules.decide_unbind(self.state, command, now))
            case _:
                logger.warning("%s can't take %r", self.key, command)

    def _enqueue(self, command: Enqueue) -> None:
        run = command.queue
        known = self.state.knows(run.run_id) if run is not None else command.message.id in self.state.heard
        if known:
            # Told twice, after a restart of whoever tells it: the log has it.
            self._step_taken(command, ())
            return
        if command.check_policy:
            verdict = self._policy(None)
            if not verdict.allowed:
                self._refuse(command, Refused(code="policy_denied", error=f"sessionKey: {verdict.rule}"))
                return
        decided = session_rules.decide_enqueue(self.state, command)
        self._record(
            command,
            decided,
            carried=command.carried,
            causation=command.causation,
            correlation=command.correlation,
        )

    def _policy(self, channel: str | None) -> Verdict:
        """Return the send policy's word on this session's words (POL-3)."""
        return self.world.judge_send(
            key=self.key,
            channel=channel or self.state.channel,
            chat_type=self.state.chat_type,
            override=self.state.send_override,
        )

    def _timed_out(self, command: DeadlinePassed) -> None:
        crash_point("P7")
        running = self.state.running
        self.world.agents.cancel(command.run_id)
        self._record(
            command,
            session_rules.decide_failure(
                self.state,
                run_id=command.run_id,
                attempt=command.attempt,
                code="timeout",
                error=session_rules.timed_out(running.waiting.queued) if running is not None else "timeout",
            ),
        )

    def _returned(self, command: RunReturned) -> None:
        self._starter.unwatch(command.run_id)
        running = self.state.running
        if running is not None:
            crash_point(RETURNED[running.waiting.queued.step])
        events, carried = decide_returned(
            self.state,
            command,
            key=self.key,
            log_id=self.world.log.log_id,
            now_ms=self.world.clock.now_ms(),
        )
        self._record(command, events, carried=carried)

    # --- starting runs

    def _start_next(self) -> None:
        if self.state.running is not None or not self.state.queue or not self.state.exists:
            return
        run_id = self.state.queue[0].queued.run_id
        if self.world.stopping:
            return  # it begins after the restart, as a first attempt
        if self._building is not None or not self.world.agents.has(self.world.agent_of(self.key)):
            return  # parked until the agent is registered (KEY-9)
        context = self._contexts.get(run_id)
        if context is None:
            self._building = run_id
            self._starter.build(run_id, self.state.interrupted + 1, self.version)
            return
        now = self.world.clock.now_ms()
        self._record(Wake(), session_rules.decide_start(self.state, context_hash=context.hash, now_ms=now))

    def _built(self, message: ContextBuilt) -> None:
        if self._building == message.run_id:
            self._building = None
            if isinstance(message.context, Exception):
                raise message.context
            self._contexts = {message.run_id: message.context}
        self._go_on()

    def _run(self, started: RunStarted) -> None:
        """Call the agent: its start is durable."""
        running = self.state.running
        context = self._contexts.pop(started.run_id, None)
        if running is not None and context is not None:
            self._starter.watch(running)
            self._starter.call(running, context)

    # --- appending

    def _record(
        self,
        command: Command,
        decided: Sequence[Event] | Refused,
        *,
        carried: tuple[StreamAppend, ...] = (),
        causation: str | None = None,
        correlation: str | None = None,
    ) -> None:
        if isinstance(decided, Refused):
            self._refuse(command, decided)
            return
        if not decided and not carried:
            self._accepted(command, ())
            return
        if causation is None and isinstance(command, _OF_A_RUN):
            causation, correlation = session_state.causes(self.state)
        own = append_of(
            self.world.log.log_id,
            self.stream,
            self.version,
            decided,
            time=self.world.clock.now_ms(),
            causation=causation,
            correlation=correlation,
        )
        self._command = command
        self.world.log.append(
            (own, *carried), lambda outcome: self._tell_self(Appended(stream=self.stream, outcome=outcome))
        )

    def _appended(self, message: Appended) -> None:
        command, self._command = self._command, None
        match message.outcome:
            case Committed(recorded=recorded):
                self._committed(command, recorded)
            case Conflict(stream=stream) if stream != self.stream:
                # The flow's step was taken by somebody else; whoever leads it reads its stream again.
                if isinstance(command, RunReturned):
                    raise AppendConflict(stream, 0, message.outcome.actual)
                self._step_taken(command, ())
            case Conflict():
                # Never happens with one writer, save after a doubtful commit: read what is there, decide again.
                if command is not None:
                    self._waiting.appendleft(command)
                self._load()
                return
            case Unavailable(error=error):
                self._store_failed(command, error)
                return
        self._go_on()

    def _committed(self, command: Command | None, recorded: Sequence[Recorded]) -> None:
        self._store_gone_since = None
        fresh = [item for item in recorded if item.stream == self.stream and item.version > self.version]
        before = self.state
        for item in fresh:
            self._evolve(item)
        self._transcripts.take(self.key, fresh)
        if command is not None:
            self._accepted(command, tuple(recorded))
        for stream in dict.fromkeys(item.stream for item in recorded if item.stream != self.stream):
            taken = tuple(item for item in recorded if item.stream == stream)
            self.world.tell_flow(stream, StepTaken(stream=stream, recorded=taken))
        if isinstance(command, Enqueue) and command.queue is not None:
            crash_point("S3")
        self._watch_thread()
        for item in fresh:
            self._act(before, item)

    def _act(self, before: Session, recorded: Recorded) -> None:
        event = recorded.event
        match event:
            case RunStarted():
                self._run(event)
            case RunCompleted() | RunFailed() | RunAborted():
                self._starter.unwatch(event.run_id)
                if isinstance(event, RunAborted):
                    self.world.agents.cancel(event.run_id)
                ended = ended_of(before, recorded)
                if ended is not None:
                    self.world.tell_flow(ended.stream, ended)
            case SessionArchived() if before.opened is not None and before.opened.spawn_id is not None:
                stream = ids.spawn_stream(before.opened.spawn_id)
                self.world.tell_flow(stream, ChildGone(stream=stream))
            case _:
                pass

    def _watch_thread(self) -> None:
        """Have the thread that belongs to this session taken from it when it has had its time (SPAWN-12)."""
        due = self.state.unbind_at
        if due is not None:
            world, key = self.world, self.key
            world.timers.at(due[0], ("thread", key), lambda: world.tell_session(key, Unbind(only_due=True)))

    def _store_failed(self, command: Command | None, error: Exception) -> None:
        if isinstance(error, NotStorable):
            self._not_storable(command, error)
            return
        logger.warning("%s: the store is unavailable: %s", self.key, error)
        if command is None:
            return
        now = self.world.clock.now_ms()
        self._store_gone_since = self._store_gone_since or now
        if isinstance(command, RunReturned | DeadlinePassed | Wake | Unbind):
            # What an agent gave is tried again for a while; given up, its attempt is interrupted at the next start.
            limit = self.world.store_retry_ms
            if limit and now - self._store_gone_since > limit:
                logger.error("%s: the store was unavailable for %d s, giving up", self.key, limit // 1000)
                return
            key = self.key
            self.world.timers.at(
                now + STORE_RETRY_MS,
                ("store", self.key, type(command).__name__),
                lambda: self.world.tell_session(key, command),
            )
            return
        self._refuse(command, Refused(code="unavailable", error=f"the store is unavailable: {error}"))
        self._go_on()

    def _not_storable(self, command: Command | None, error: NotStorable) -> None:
        """Give up what no store will ever take: an agent's answer is a bad reply then, anything else is refused."""
        if isinstance(command, RunReturned) and isinstance(command.result, Answered):
            broke = Broke(code="bad_reply", error=f"the agent answered what can't be recorded: {error}")
            self._waiting.appendleft(msgspec.structs.replace(command, result=broke))
        elif command is not None:
            self._refuse(
                command, Refused(code="invalid_request", error=f"message: can't be recorded: {error}")
            )
        self._go_on()

    # --- answering

    def _accepted(self, command: Command, recorded: tuple[Recorded, ...]) -> None:
        answer = getattr(command, "answer", None)
        if answer is not None:
            answer(Accepted(recorded=recorded))

    def _step_taken(self, command: Command | None, recorded: tuple[Recorded, ...]) -> None:
        flow = getattr(command, "flow", None)
        if flow is not None:
            self.world.tell_flow(flow, StepTaken(stream=flow, recorded=recorded))
        elif command is not None:
            self._accepted(command, recorded)

    def _refuse(self, command: Command, refused: Refused) -> None:
        flow = getattr(command, "flow", None)
        if flow is not None:
            run = getattr(command, "queue", None)
            self.world.tell_flow(
                flow,
                StepRefused(
                    stream=flow,
                    run_id=run.run_id if run is not None else "",
                    code=refused.code,
                    error=refused.error,
                ),
            )
        answer: Callable[[Any], None] | None = getattr(command, "answer", None)
        if answer is not None:
            answer(refused)

    # --- falling asleep

    def _rest(self) -> None:
        if self._asleep_after == self.version:
            return
        self._asleep_after = version = self.version
        self.world.timers.at(
            self.world.clock.now_ms() + self.world.idle_ms,
            ("idle", self.key),
            lambda: self._tell_self(IdleFor(version=version)),
        )

    def _sleep(self, message: IdleFor) -> None:
        if message.version != self.version or self._command is not None or not self.state.idle:
            self._asleep_after = -1
            self._go_on()
            return
        if not self._waiting and self.me.close_if_idle():
            self.world.passivated(self.key)
        else:
            self._asleep_after = -1

    def _tell_self(self, command: Command) -> None:
        with suppress(pykka.ActorDeadError):  # stopped or started again; the log has what matters
            self.me.tell(command, urgent=True)
