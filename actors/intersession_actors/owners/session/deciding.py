"""Decides what each command to a session leads to: gathers what the rules look at, and has them asked; watches its thread."""

from collections.abc import Sequence
from typing import Final

import msgspec

from intersession_actors.outside.agents.result import Answered, Broke
from intersession_actors.owners.session import commands, rules
from intersession_actors.owners.session.answers import ended_of, has_asker, leads_on
from intersession_actors.owners.session.commands import Unbind
from intersession_actors.owners.session.effects import beside, effects
from intersession_actors.owners.session.messaging import collected
from intersession_actors.owners.session.records import inputs_of, knew_of
from intersession_actors.owners.session.rules import Circumstances, ThreadLeft
from intersession_actors.owners.session.runs import RETURNED, RunStarter
from intersession_actors.owners.session.state import EMPTY, Running, Session, evolve, without
from intersession_actors.owners.streams.commands import Refused, RunEnded, Step
from intersession_actors.owners.streams.drafting import recorded_as
from intersession_actors.owners.streams.effects import Effect, Plan
from intersession_actors.owners.streams.owner import Owner
from intersession_actors.owners.streams.records import record_of
from intersession_actors.owners.streams.world import World
from intersession_actors.rules.policy.budgets import judge_spending
from intersession_actors.rules.policy.chain import Spent, counts_use
from intersession_actors.rules.policy.sending import Verdict
from intersession_events import facts
from intersession_events.basics.crash_points import crash_point
from intersession_events.basics.errors import NotStorable
from intersession_events.log.recorded import Recorded, StreamAppend

_MAY_END: Final = (
    commands.Enqueue
    | commands.RunReturned
    | commands.Abort
    | commands.DeadlinePassed
    | commands.Reset
    | commands.Archive
    | commands.Wake
)
"""The commands that may end the run under way."""

SessionOwner = Owner[Session, commands.SessionCommand]


class Decider:
    """The decisions of one session's owner. They are recorded first, and carried out only then."""

    __slots__ = ("_left_behind", "_starter", "key", "world")

    def __init__(self, world: World, key: str, starter: RunStarter) -> None:
        self.world = world
        self.key = key
        self._starter = starter
        self._left_behind: tuple[str, int] | None = None
        """The attempt under way that nobody works on: an earlier process left it, or its answer could not be recorded."""

    evolve = staticmethod(evolve)

    def effects(
        self,
        owner: SessionOwner,
        command: commands.SessionCommand | None,
        before: Session | None,
        fresh: Sequence[Recorded],
    ) -> Sequence[Effect]:
        """Return the effects of the session's durable events."""
        state, fork = owner.state or EMPTY, self.world.fork
        if fork.frozen_runs:
            state = self._going_on(state)
        return effects(
            self.key, command, before or EMPTY, state, fresh, fork=fork, told_ahead=owner.told_ahead
        )

    def ahead(self, owner: SessionOwner, append: StreamAppend) -> RunEnded | None:
        """Return the message to the flow whose run ends, before that is durable, so that its next step shares the commit."""
        return ended_of(self._going_on(owner.state or EMPTY), append.drafts[-1])

    def next_decision(
        self, owner: SessionOwner, append: StreamAppend
    ) -> tuple[commands.SessionCommand, Plan] | None:
        """Return the start of the run at the head of the queue, if it can begin once the append is durable.

        None where its context has to be read, or where what its chain has used can keep it from starting: what the append adds
        to that counts once it is recorded (LOOP-5).
        """
        state = owner.state or EMPTY
        if not state.queue and not isinstance(append.drafts[-1].event, facts.RunQueued):
            return None
        fresh = recorded_as(append)
        for one in fresh:
            state = evolve(state, one)
        state = self._going_on(state)
        if not state.queue or counts_use(state.queue[0].budget):
            return None
        command = commands.StartNext()
        now = self._circumstances(owner, state, command, fresh)
        plan = rules.decide(state, command, now)
        if isinstance(plan, Refused) or not plan.events:
            return None
        return command, msgspec.structs.replace(plan, knew=knew_of(now))

    def _going_on(self, state: Session) -> Session:
        """Return where a session stands without those of its runs that are not to go on in a fork."""
        frozen = self.world.fork.frozen_runs
        return without(state, frozen) if frozen else state

    def record(self, command: commands.SessionCommand, plan: Plan) -> str:
        """Return the record of a decision."""
        return record_of(type(command).__name__, inputs_of(command), plan.knew, plan.told)

    def unstorable(
        self, command: commands.SessionCommand, error: NotStorable
    ) -> commands.SessionCommand | Refused | None:
        """Replace what no store will ever take: an agent's answer becomes a failed run, anything else is refused."""
        if isinstance(command, commands.RunReturned):
            result = command.result
            if isinstance(result, Answered):
                result = Broke(code="bad_reply", error=f"the agent answered what can't be recorded: {error}")
            elif result.error.isascii():
                return None  # the rules are at fault, not a text of the agent's
            else:
                result = msgspec.structs.replace(result, error=ascii(result.error))
            self.world.agents.results.keep(command.run_id, command.attempt, result)
            return msgspec.structs.replace(command, result=result)
        if isinstance(
            command,
            Step
            | commands.RecordMessages
            | commands.AddMessage
            | commands.Patch
            | commands.Reset
            | commands.Compact
            | commands.Abort,
        ):
            return Refused(code="invalid_request", error=f"message: it can't be recorded: {error}")
        return None

    def plan(self, owner: SessionOwner, command: commands.SessionCommand) -> Plan | Refused | None:
        """Return the plan of a command; None if nothing is to be recorded."""
        if isinstance(command, commands.ReadAgain):
            owner.load()
            return None
        state = owner.state or EMPTY
        if self.world.fork.frozen_runs:
            state = self._going_on(state)
        if isinstance(command, commands.CheckSend):
            if command.answer is not None:
                command.answer(self._policy(state, command.channel))
            return None
        if not self._is_due(state, command):
            return Plan()
        now = self._circumstances(owner, state, command)
        plan = rules.decide(state, command, now)
        if isinstance(plan, Refused):
            return plan
        if now.shown is not None and not any(_has_partial(event, now.shown) for event in plan.events):
            now = msgspec.structs.replace(now, shown=None)  # no event tells it
        at_once = beside(command, state, leads_to_events=bool(plan.events))
        if not plan.events:
            return Plan(effects=at_once)
        return msgspec.structs.replace(
            plan,
            effects=at_once,
            knew=knew_of(now),
            behind=command.behind if isinstance(command, commands.Enqueue) else None,
            # A rule of the host's is asked about what is recorded, not about what may yet fail to be.
            leads_on=isinstance(command, commands.RunReturned)
            and self.world.standing.holds.rule is None
            and leads_on(state, plan.events),
        )

    def _is_due(self, state: Session, command: commands.Decidable) -> bool:
        """Whether anything is to be decided; what a command asks for beside that is done."""
        running = state.running
        match command:
            case commands.Enqueue(behind=behind):
                # Its cause was not recorded: the flow's manager reads its stream again.
                return behind is None or not behind.has_failed
            case commands.RunReturned():
                if self.world.agents.results.of(command.run_id, command.attempt) is None:
                    return False  # told twice, to the actor before this one and to this one: the log has it
                if running is not None:
                    crash_point(RETURNED[running.waiting.queued.step])
            case commands.DeadlinePassed():
                crash_point("P7")
            case commands.Wake():  # told to go on, an attempt that somebody works on does
                return (
                    running is not None
                    and (running.waiting.queued.run_id, running.attempt) == self._left_behind
                )
            case _:
                pass
        return True

    def _circumstances(  # noqa: C901, PLR0912 - one case a command
        self,
        owner: SessionOwner,
        state: Session,
        command: commands.Decidable,
        fresh: Sequence[Recorded] = (),
    ) -> Circumstances:
        """Return the rules' inputs: those that no possible event depends on are not looked up.

        `fresh` are events that are recorded together with those, behind which the session is in that state.
        """
        world = self.world
        known, running = Circumstances(log_id=world.log.log_id, key=self.key), state.running
        if running is not None and isinstance(command, _MAY_END):
            # It may end a message that is shown while it is said (STREAM-5).
            now_ms = 0 if running.waiting.shown is None else world.time.clock.now_ms()
            known = msgspec.structs.replace(known, shown=self._shown(running, command), now_ms=now_ms)
        match command:
            case commands.Enqueue():
                return self._of_message(known, state, command)
            case commands.AddMessage(check_policy=True):
                return msgspec.structs.replace(known, verdict=self._policy(state, None))
            case commands.RunReturned(result=Answered()):
                return msgspec.structs.replace(known, now_ms=world.time.clock.now_ms())
            case commands.RunReturned(result=Broke() as broke):
                retries = world.limits.runs.retry_interrupted if broke.code == "interrupted" else 0
                return msgspec.structs.replace(self._of_end(known, state), retries=retries)
            case commands.ShowAnswer() if state.running is not None:
                route = state.running.waiting.queued.route
                verdict = self._policy(state, None if route is None else route.channel)
                return msgspec.structs.replace(known, verdict=verdict)
            case commands.DeadlinePassed():
                return self._of_end(known, state)
            case commands.Wake():
                return self._of_wake(self._of_end(known, state), state)
            case commands.StartNext() if state.queue and state.queue[0].queued.collects and collected(state):
                return known
            case commands.StartNext() if (start := self._starter.next_start(owner, state, fresh)) is not None:
                return self._of_start(known, state, start)
            case commands.Compact():
                return self._of_compaction(known)
            case commands.Unbind(only_due=True):
                return msgspec.structs.replace(known, thread_left=self.thread_left(state))
            case _:
                return known

    def _shown(self, running: Running, command: commands.Decidable) -> str | None:
        """Return what the attempt under way has shown in pieces, if the command may end it without an answer (STREAM-3)."""
        match command:
            case commands.Enqueue(interrupts=None) | commands.RunReturned(result=Answered()):
                return None
            case _:
                shown = self.world.agents.pieces.of(running.waiting.queued.run_id)
                is_now = shown is not None and shown.attempt == running.attempt
                return shown.text or None if shown is not None and is_now else None

    def _of_start(self, known: Circumstances, state: Session, start: rules.Start) -> Circumstances:
        head, world = state.queue[0], self.world
        # What its chain has used is read only where that can keep it from starting (LOOP-5).
        spent = world.chains.spent(head.budget.root) if counts_use(head.budget) else Spent()
        now_ms = world.time.clock.now_ms() if head.queued.timeout_ms else 0
        known = msgspec.structs.replace(known, start=start, spent=spent, now_ms=now_ms)
        if start.beginning.compacts_at is None or not rules.is_full(state, start):
            return known
        return self._of_compaction(known)

    def _of_compaction(self, known: Circumstances) -> Circumstances:
        return msgspec.structs.replace(known, compaction=self.world.rules.compaction(self._starter.runner))

    def _of_message(self, known: Circumstances, state: Session, command: commands.Enqueue) -> Circumstances:
        if rules.is_known(state, command):
            return known
        return msgspec.structs.replace(
            known,
            verdict=self._policy(state, None) if command.check_policy else None,
            thread_left=None if command.only_bound is None else self.thread_left(state),
            failure_text=self.world.rules.limit_text()
            if command.counted and judge_spending(command.counted)
            else "",
        )

    def _of_end(self, known: Circumstances, state: Session) -> Circumstances:
        if state.running is None or not has_asker(state.running):
            return known
        text, now_ms = self.world.rules.failure_text(), self.world.time.clock.now_ms()
        return msgspec.structs.replace(known, failure_text=text, now_ms=now_ms)

    def _of_wake(self, known: Circumstances, state: Session) -> Circumstances:
        running, world = state.running, self.world
        if running is None:
            return known
        run_id, attempt = running.waiting.queued.run_id, running.attempt
        was_called = not world.agents.results.is_due(run_id, attempt)
        has_deadline = rules.is_task(running.waiting.queued) and running.deadline_ms
        return msgspec.structs.replace(
            known,
            age_ms=self._starter.age_ms(running) if has_deadline else 0,
            was_called=was_called,
            retries=world.limits.runs.retry_interrupted if was_called else 0,
        )

    def _policy(self, state: Session, channel: str | None) -> Verdict:
        """Return the send policy's word on this session's words (POL-3)."""
        return self.world.rules.judge_send(
            key=self.key,
            channel=channel or state.channel,
            chat_type=state.chat_type,
            override=state.send_override,
        )

    def leave_behind(self, state: Session) -> None:
        """Mark the running attempt as left behind."""
        if state.running is not None:
            self._left_behind = (state.running.waiting.queued.run_id, state.running.attempt)

    # --- its thread

    def watch_thread(self, state: Session) -> None:
        """Have its thread taken from the session when it has had its time."""
        left = self.thread_left(state)
        if left is not None:
            world, key = self.world, self.key
            world.time.timers.after(
                left[0], ("thread", key), lambda: world.mail.tell_session(key, Unbind(only_due=True))
            )

    def thread_left(self, state: Session) -> ThreadLeft:
        """Return for how long the session's thread is still its own, by the monotonic clock as far as this process has seen it (SPAWN-12)."""
        if state.bound is None:
            return None
        elapsed = self.world.time.stopwatch.elapsed_ms
        return state.thread_left(
            age_ms=elapsed("bound", self.key, since_ms=state.bound_ms),
            quiet_ms=elapsed("said", self.key, since_ms=state.last_message_ms),
        )


def _has_partial(event: facts.Event, text: str) -> bool:
    return isinstance(event, facts.RunFailed | facts.RunAborted) and event.partial == text
