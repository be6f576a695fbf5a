"""Decides what each command to a session leads to: gives the rules what they ask for, and makes a plan of what they say."""

from collections.abc import Callable, Sequence
from typing import assert_never

import msgspec

from intersession_actors.policy import Verdict
from intersession_actors.session import commands, rules
from intersession_actors.session.answers import decide_returned, failure_notice, leads_on
from intersession_actors.session.bound_thread import BoundThread
from intersession_actors.session.next_run import NextRun
from intersession_actors.session.runs import RETURNED, RunStarter
from intersession_actors.session.state import Session, causes
from intersession_actors.streams import Plan, Refused, World
from intersession_events import facts
from intersession_events.crash_points import crash_point
from intersession_events.log import InFlight, StreamAppend


class Decider:
    """Decides for one session, whose `state` it asks for. What it decides is recorded by others, and only then done."""

    def __init__(
        self,
        world: World,
        key: str,
        state: Callable[[], Session],
        *,
        starter: RunStarter,
        next_run: NextRun,
        thread: BoundThread,
    ) -> None:
        self.world = world
        self.key = key
        self._state = state
        self._starter = starter
        self._next_run = next_run
        self._thread = thread
        self._left_behind: tuple[str, int] | None = None
        """The attempt under way that nobody works on: an earlier process left it, or its answer could not be recorded."""

    def decide(  # noqa: C901, PLR0912 - one case a command
        self, version: int, command: commands.SessionCommand
    ) -> Plan | Refused | None:
        """Return what a command leads to, at a version of the stream; None where nothing is to be recorded."""
        match command:
            case commands.Enqueue():
                return self._enqueue(command, version)
            case commands.RunReturned():
                return self._returned(command)
            case commands.RecordMessages():
                return self._of_the_run(rules.decide_messages(self._state(), command))
            case commands.AddMessage():
                denied = self._denied() if command.check_policy else None
                return denied or _plan(rules.decide_add(self._state(), command))
            case commands.Patch():
                return _plan(rules.decide_patch(self._state(), command))
            case commands.Reset():
                return _plan(rules.decide_reset(self._state(), command))
            case commands.Archive():
                return self._archived(command)
            case commands.Abort():
                return self._of_the_run(rules.decide_abort(self._state(), command))
            case commands.DeadlinePassed():
                return self._timed_out(command)
            case commands.CheckSend():
                if command.answer is not None:
                    command.answer(self._policy(command.channel))
                return None
            case commands.Wake():
                events = self._made_good()
                return self._of_the_run(events, self._notice(events))
            case commands.StartNext():
                decided = self._next_run.decide(self._state(), version)
                # Without one the context is read anew before the run is started.
                return Plan() if decided is None else self._of_the_run(decided)
            case commands.Unbind():
                self._thread.watch(self._state())  # it may have been said since that it is not time yet
                return _plan(rules.decide_unbind(self._state(), command, self._thread.left(self._state())))
            case commands.ReadAgain():
                return None  # whoever asks for it has read
            case _:
                assert_never(command)

    def _of_the_run(
        self, decided: Sequence[facts.Event] | Refused, carried: tuple[StreamAppend, ...] = ()
    ) -> Plan | Refused:
        """Plan what the run under way, or one that waits, leads to: it is caused by the run's own start, or by what queued it."""
        first = None if isinstance(decided, Refused) or not decided else decided[0]
        run_id = first.run_id if isinstance(first, facts.RunEvent) else None
        cause, correlation = causes(self._state(), run_id)
        return _plan(decided, carried=carried, cause=cause, correlation=correlation)

    def _enqueue(self, command: commands.Enqueue, version: int) -> Plan | Refused:
        run = command.queue
        if (run is not None and self._state().knows(run.run_id)) or command.message.id in self._state().heard:
            return Plan()  # told twice, after a restart of whoever tells it: the log has it
        if command.behind is not None and command.behind.has_failed:
            return Plan()  # what it follows from was not recorded: who leads the flow reads its stream again
        denied = self._denied() if command.check_policy else None
        if denied is not None:
            return denied
        decided = rules.decide_enqueue(self._state(), command, thread_left=self._thread.left(self._state()))
        if isinstance(decided, Refused):
            return decided
        start = self._next_run.with_its_message(self._state(), decided, version)
        return _plan(
            (*decided, *start),
            carried=command.carried,
            behind=command.behind,
            cause=command.causation,
            correlation=command.budget.root,
        )

    def _archived(self, command: commands.Archive) -> Plan | Refused:
        """Plan the archiving. That of a sub-agent whose work is done is caused by the end of its spawn; time is its own cause."""
        decided = rules.decide_archive(self._state(), command)
        ends = [append.drafts[0] for append in command.carried if command.reason == "cleanup"]
        cause, correlation = (ends[0].causation, ends[0].correlation) if ends else (None, None)
        return _plan(decided, carried=command.carried, cause=cause, correlation=correlation)

    def _denied(self) -> Refused | None:
        verdict = self._policy(None)
        if verdict.allowed:
            return None
        return Refused(code="policy_denied", error=f"sessionKey: {verdict.rule}")

    def _policy(self, channel: str | None) -> Verdict:
        """Return the send policy's word on this session's words (POL-3)."""
        return self.world.rules.judge_send(
            key=self.key,
            channel=channel or self._state().channel,
            chat_type=self._state().chat_type,
            override=self._state().send_override,
        )

    def _timed_out(self, command: commands.DeadlinePassed) -> Plan | Refused:
        crash_point("P7")
        running = self._state().running
        events = rules.decide_failure(
            self._state(),
            run_id=command.run_id,
            attempt=command.attempt,
            code="timeout",
            error=rules.timed_out(running.waiting.queued) if running is not None else "timeout",
        )
        return self._of_the_run(events, self._notice(events))

    def _returned(self, command: commands.RunReturned) -> Plan | Refused:
        if self.world.agents.results.of(command.run_id, command.attempt) is None:
            return Plan()  # told twice, to the actor before this one and to this one: the log has it
        self._starter.unwatch(command.run_id)
        running = self._state().running
        if running is not None:
            crash_point(RETURNED[running.waiting.queued.step])
        events, carried = decide_returned(
            self._state(),
            command,
            key=self.key,
            log_id=self.world.log.log_id,
            now_ms=self.world.clock.now_ms(),
            retry_interrupted=self.world.retry_interrupted,
        )
        if isinstance(events[0] if events else None, facts.LateReplyDropped):
            return _plan(events, cause=command.causation, correlation=command.correlation)
        plan = self._of_the_run(events, carried or self._notice(events))
        # A rule of the host's is asked about what is recorded, not about what may yet fail to be.
        if (
            isinstance(plan, Refused)
            or self.world.holds.rule is not None
            or not leads_on(self._state(), events)
        ):
            return plan
        return msgspec.structs.replace(plan, leads_on=True)

    def _notice(self, events: Sequence[facts.Event]) -> tuple[StreamAppend, ...]:
        """Return what the person is told whose message found no answer."""
        world = self.world
        return failure_notice(
            self._state(),
            events,
            key=self.key,
            text=world.rules.failure_text(),
            log_id=world.log.log_id,
            now_ms=world.clock.now_ms(),
        )

    def leave_behind(self) -> None:
        """Take it that nobody works on the attempt under way."""
        running = self._state().running
        if running is not None:
            self._left_behind = (running.waiting.queued.run_id, running.attempt)

    def _made_good(self) -> Sequence[facts.Event]:
        """Return the end of an attempt that was left behind; nothing where somebody works on it."""
        running = self._state().running
        if running is None or (running.waiting.queued.run_id, running.attempt) != self._left_behind:
            return ()  # told to go on, and it does
        run_id, attempt = running.waiting.queued.run_id, running.attempt
        now_ms = running.began_ms + self._starter.age_ms(running)
        # An attempt that no agent was called for is none that was cut off.
        was_called = not self.world.agents.results.is_due(run_id, attempt)
        retries = self.world.retry_interrupted if was_called else attempt
        return rules.decide_wake(self._state(), retry_interrupted=retries, now_ms=now_ms)


def _plan(
    decided: Sequence[facts.Event] | Refused,
    *,
    carried: tuple[StreamAppend, ...] = (),
    behind: InFlight | None = None,
    cause: str | None = None,
    correlation: str | None = None,
) -> Plan | Refused:
    """Return a plan for what the rules decided, unless they refused it."""
    if isinstance(decided, Refused):
        return decided
    return Plan(events=tuple(decided), carried=carried, behind=behind, cause=cause, correlation=correlation)
