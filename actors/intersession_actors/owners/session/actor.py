"""Single writer of `session:<key>`: queues messages and runs the agent on them, one at a time. The supervisor starts it.

The thin shell around `rules.py` and the owner of the stream: decide, append, and only when the log has it act. It is woken from the
log by its first message and put to sleep when it has nothing to do.
"""

import logging
from collections.abc import Callable, Sequence

from intersession_actors.owners.session import commands
from intersession_actors.owners.session.context_cache import ContextCache
from intersession_actors.owners.session.deciding import Decider
from intersession_actors.owners.session.effects import (
    CallAgent,
    CancelAgent,
    Remember,
    WatchThread,
    answer_lost,
    begun,
    deadline,
)
from intersession_actors.owners.session.folding import Awake
from intersession_actors.owners.session.held_calls import still_held
from intersession_actors.owners.session.runs import RunStarter, TurnMaker
from intersession_actors.owners.session.showing import ShowDraft
from intersession_actors.owners.session.state import EMPTY, Running, Session, without
from intersession_actors.owners.streams.commands import Accepted, Appended, Ask, Refused, StoreDue, WasRead
from intersession_actors.owners.streams.effects import AttemptDue, CommandOutcome, Effect
from intersession_actors.owners.streams.owner import Owner, answer
from intersession_actors.owners.streams.shell import Shell
from intersession_actors.owners.streams.world import World
from intersession_actors.rules.config.settings import milliseconds
from intersession_actors.rules.errors import refused_by
from intersession_events.basics import ids
from intersession_events.basics.errors import AppendConflict
from intersession_events.basics.ids import session_stream
from intersession_events.log.recorded import Recorded
from intersession_events.log.states import EVERY, Folded

SessionOwner = Owner[Session, commands.SessionCommand]
logger = logging.getLogger("intersession.actors")


class Memory:
    """The memory of one awake session. Its transcript is with those of all others, in `contexts`."""

    __slots__ = ("_contexts", "_erasures", "_key", "_snapshot_due", "_world")

    def __init__(self, world: World, contexts: ContextCache, key: str) -> None:
        self._world = world
        self._contexts = contexts
        self._key = key
        self._erasures = 0
        """How often words had been erased as the stream was read."""
        self._snapshot_due = EVERY
        """From which version on there is to be another snapshot."""

    def read(self, told: Callable[[Folded[Awake] | Exception], None]) -> None:
        """Have the stream read from its last snapshot; never blocks."""
        self._erasures = self._contexts.erasures
        # How it is read is made for each time, since that is seldom, and sessions that are awake are many.
        self._world.log.states.load(session_stream(self._key), self._contexts.folding(self._key), told)

    def woken(self, folded: Folded[Awake]) -> None:
        """Take over the state that was read."""
        self._contexts.offer(self._key, folded.state.transcript, self._erasures)
        self._snapshot_due = folded.kept + EVERY

    def take(self, fresh: Sequence[Recorded], state: Session) -> None:
        """Take new events in, and the state after them. Now and then a snapshot is stored, without waiting."""
        self._contexts.take(self._key, fresh)
        if not fresh or fresh[-1].version < self._snapshot_due:
            return
        last = fresh[-1]
        transcript = self._contexts.transcript_at(self._key, last.version)
        kept = transcript is not None and self._world.log.states.keep(
            last.stream, self._contexts.folding(self._key), Folded(Awake(state, transcript), last, 0)
        )
        # One that was too large is tried again when the run that made it so has ended.
        self._snapshot_due = last.version + (EVERY if kept else EVERY // 10)

    def forget(self) -> None:
        """Drop the transcript: the session sleeps, or has failed."""
        self._contexts.forget(self._key)


class SessionActor(Shell[Session, commands.SessionCommand]):
    """The single writer of one session's stream."""

    def __init__(self, world: World, contexts: ContextCache, make_turn: TurnMaker, key: str) -> None:
        super().__init__(world)
        self.key = key
        self._memory = Memory(world, contexts, key)
        self._asleep_after = -1
        self._starter = RunStarter(world, contexts, make_turn, key, self.tell_self)
        self._decider = Decider(world, key, self._starter)
        self._owner: SessionOwner = Owner(ids.session_stream(key), self._decider, world, empty=EMPTY)

    @property
    def state(self) -> Session:
        """The state of the session; in a fork, without the frozen runs."""
        state, frozen = self._owner.state or EMPTY, self.world.fork.frozen_runs
        return without(state, frozen) if frozen else state

    def on_start(self) -> None:
        """Read the stream."""
        self._owner.load()
        self.do(self._owner)

    def failed(self, error: BaseException) -> None:
        """Tell waiting doors that this actor ends; flows repeat their steps when they hear of the restart."""
        self._memory.forget()
        why = f"{type(error).__name__}: {error}"
        unsure = (
            f"the session failed, and it is not known whether this is recorded ({why}), look, or try again"
        )
        refused = refused_by(error, f"the session failed: {why}")
        self._owner.end(unsure, Refused(code=refused.code, error=refused.error))

    def on_stop(self) -> None:
        """Tell waiting doors that the system stops."""
        self.stopped(self._owner)

    def on_receive(self, message: object) -> None:
        """Take a command, or an answer of the log, the agent or the clock."""
        match message:
            case commands.SessionRead():
                self._wake(message.folded)
            case WasRead():
                self._owner.was_read(message)
            case Appended():
                self._owner.appended(message)
            case StoreDue():
                self._owner.ask_store_again(message)
            case commands.ContextBuilt():
                self._starter.built(message)
                self._go_on()
            case commands.ContextDue():
                self._starter.read_again(message)
            case commands.IdleFor():
                if self._sleeps(message):
                    return
            case _ if isinstance(message, commands.SessionCommand):
                self._owner.take(message)
            case _:
                logger.warning("%s can't take %r", self.key, message)
        self.do(self._owner)

    def _wake(self, folded: Folded[Awake] | Exception) -> None:
        if isinstance(folded, Exception):
            self._owner.loaded(folded)
            return
        self._memory.woken(folded)
        self._owner.resume(folded.state.session, folded.last)

    # --- what the owner of the stream gives back

    def load(self, stream: str, ask: Ask) -> None:
        """Have the stream read from its last snapshot."""
        del stream, ask
        tell = self.tell_self
        self._memory.read(lambda folded: tell(commands.SessionRead(folded=folded)))

    def answered(self, command: commands.SessionCommand, outcome: Accepted | Refused) -> None:
        """Tell the waiting caller; drop an agent's answer that has no effect."""
        if isinstance(command, commands.RunReturned) and outcome == Accepted(recorded=()):
            self.world.agents.results.forget(command.run_id, command.attempt)
        answer(command, outcome)

    def read_back(self, owner: SessionOwner) -> None:
        """Have flows look for messages they missed: a run of theirs may have ended."""
        del owner
        self.world.mail.read_back(self.key)

    def cannot_go_on(
        self, owner: SessionOwner, error: Exception, told: CommandOutcome[commands.SessionCommand] | None
    ) -> None:
        """Fail, unless another actor took the step: then the flow's manager reads its stream again."""
        if (
            isinstance(error, AppendConflict)
            and told is not None
            and not isinstance(told.command, commands.RunReturned)
        ):
            owner.drop(told.command)
        else:
            # So is an agent's answer never dropped: it is kept beside the actors, and the restarted one decides on it.
            self._refuse_and_raise(error, told)

    def act(self, owner: SessionOwner, effect: Effect) -> None:
        """Carry out an effect of a session."""
        agents = self.world.agents
        match effect:
            case Remember(fresh):
                self._memory.take(fresh, owner.state or EMPTY)
            case AttemptDue(run_id, attempt):
                agents.results.due(run_id, attempt)
            case CallAgent(running, opened):
                self._starter.call(running, opened)
            case ShowDraft(running):
                self._starter.show(running)
            case CancelAgent(run_id):
                agents.cancel(run_id)
            case WatchThread(state):
                self._decider.watch_thread(state)
            case _:
                super().act(owner, effect)

    def give_up(self, owner: SessionOwner, command: commands.SessionCommand) -> None:
        """Give an agent's answer up, since the store was away too long. Its attempt is interrupted once the store is back."""
        if isinstance(command, commands.RunReturned):
            limit_ms = milliseconds(self.world.limits.runs.store_retry_max_seconds)
            owner.effects.append(answer_lost(self.key, self.state, command, limit_ms))
            self.world.agents.results.forget(command.run_id, command.attempt)
            self._decider.leave_behind(self.state)
            owner.take_first(commands.Wake())

    def _refuse_and_raise(
        self, error: Exception, told: CommandOutcome[commands.SessionCommand] | None
    ) -> None:
        """Fail: the supervisor starts the session again from its log, and gives it up when that does not help.

        What doors have asked for ends with this actor, so they are told.
        """
        if told is not None and not isinstance(error, AppendConflict):
            if isinstance(told.command, commands.RunReturned):
                self.world.agents.results.failed_on(told.command.run_id, told.command.attempt, error)
            refused = refused_by(error, f"the session failed: {type(error).__name__}: {error}")
            answer(told.command, Refused(code=refused.code, error=refused.error))
        raise error

    def loaded(self, owner: SessionOwner) -> None:
        """Look for a running attempt in the log: it will return, or an earlier process left it behind."""
        owner.effects.append(WatchThread(self.state))
        owner.effects += still_held(self.key, self.state, self.world.fork)
        running = self.state.running
        if running is not None and not any(
            isinstance(told, commands.RunReturned) and told.run_id == running.waiting.queued.run_id
            for told in owner.commands()  # else it has come back, and is decided next
        ):
            self._look_after(owner, running)

    def _look_after(self, owner: SessionOwner, running: Running) -> None:
        """Go on with the attempt under way that an actor before this one began, or an earlier process."""
        run_id, attempt, agents = running.waiting.queued.run_id, running.attempt, self.world.agents
        # In this order: what comes back in between was kept before.
        is_running = agents.is_running(run_id, attempt)
        result = agents.results.of(run_id, attempt)
        if result is not None:
            owner.take_first(commands.RunReturned(run_id=run_id, attempt=attempt, result=result))
        elif is_running:
            owner.effects += deadline(self.key, running, self.world.fork)
        elif self._was_cut(running) or (run_id, attempt) in agents.adopted:
            self._starter.resume(run_id, attempt, owner.version)
        else:
            self._decider.leave_behind(self.state)
            owner.take_first(commands.Wake())

    def _was_cut(self, running: Running) -> bool:
        """Whether a fork cut the attempt in its middle: that was no crash, so it goes on where its agent can."""
        agents, runner = self.world.agents, self._starter.runner
        return running.waiting.queued.run_id in self.world.fork.cut_runs and agents.has(runner)

    def _go_on(self) -> None:
        """Continue an attempt after a fork's cut, or one that a worker makes, once its earlier actions are read.

        An agent that begins at the beginning can only if that was nothing; else it is tried again, as after a crash.
        """
        owner, state, agents = self._owner, self.state, self.world.agents
        running = state.running
        is_adopted = (
            running is not None and (running.waiting.queued.run_id, running.attempt) in agents.adopted
        )
        goes_on = self._starter.resumed(state, resumes=is_adopted or agents.resumes(self._starter.runner))
        if goes_on and is_adopted and running is not None:  # a worker is at it, and its time goes on
            owner.effects += (*deadline(self.key, running, self.world.fork), CallAgent(running, state.opened))
        elif goes_on and state.running is not None:
            owner.decided_at = self.world.time.clock.monotonic()  # its time begins anew
            owner.effects += begun(self.key, state.running, state, self.world.fork)
        elif goes_on is False:
            self._decider.leave_behind(state)
            owner.take_first(commands.Wake())

    def at_rest(self, owner: SessionOwner) -> None:
        """Start the next run, or else fall asleep after a while."""
        if owner.put_off:
            return  # what is begun now would only be put off, too
        state = self.state
        if state.running is not None:
            return
        if not state.queue:
            self._rest()
        elif self._starter.is_due(state):
            owner.take(commands.StartNext())
            self.do(owner)
        elif (told := self._starter.parked(state)) is not None:
            owner.effects.append(told)
            self.do(owner)

    # --- falling asleep

    def _rest(self) -> None:
        if self._asleep_after == self._owner.version:
            return
        self._asleep_after = self._owner.version
        idle_ms = milliseconds(self.world.limits.runs.idle_seconds)
        self.world.time.timers.after(idle_ms, ("idle", self.key), self._was_idle)

    def _was_idle(self) -> None:
        """Say so, from the thread of the timers. Should the timer be set anew just now, the session only sleeps too early."""
        self.tell_self(commands.IdleFor(version=self._asleep_after))

    def _sleeps(self, message: commands.IdleFor) -> bool:
        """Fall asleep, unless there is something to do."""
        owner = self._owner
        rests = message.version == owner.version and not owner.has_work and self.state.idle
        if rests and self.me.close_if_idle():
            self._memory.forget()
            self.world.mail.passivated(self.key)
            return True
        self._asleep_after = -1
        return False
