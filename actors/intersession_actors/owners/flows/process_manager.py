"""A process manager: many small flows, each one a stream with an owner. Base of the coordinator, the spawner and the outbox.

One flow is loaded from the log when it is first spoken of and forgotten when nothing can happen to it any more. The manager itself never
waits, so one serves thousands of flows.

A step that also touches a session's stream is appended by that session's actor (rule 3 of the design): the plan is then
a command to it that carries the flow's events, and the flow goes on when it hears `StepTaken` or `StepRefused`.

A flow that can't go on is set aside alone: its stream is damaged, or its commands break the rules again and again. It is named in
`status`, what is told to it is refused, and the manager serves the others. The next start of the process tries it again.
"""

import logging
from collections.abc import Sequence
from typing import Generic, TypeVar

from intersession_actors.owners.flows.rules import Rules
from intersession_actors.owners.streams.commands import (
    Accepted,
    Appended,
    BeginsFlow,
    FlowCommand,
    FlowRequest,
    Refused,
    RunEnded,
    SessionReadBack,
    StepRefused,
    StepTaken,
    StoreDue,
    StreamLoaded,
    WasRead,
)
from intersession_actors.owners.streams.effects import CommandOutcome, Effect, Plan, ReadBack
from intersession_actors.owners.streams.owner import Owner, answer
from intersession_actors.owners.streams.records import record_of
from intersession_actors.owners.streams.shell import Failures, Shell
from intersession_actors.owners.streams.texts import RunTexts, Texts
from intersession_actors.owners.streams.world import World
from intersession_actors.rules.errors import refused_by
from intersession_events.basics.errors import AppendConflict, LogError, NotStorable
from intersession_events.log.recorded import Recorded, StreamAppend

S = TypeVar("S")
N = TypeVar("N")
C = TypeVar("C", bound=FlowCommand | FlowRequest | BeginsFlow)
logger = logging.getLogger("intersession.flows")


class Flow(Owner[S, C]):
    """One stream as its manager sees it."""

    looks_again = False
    """Whether it is to be resumed once the store has taken what it is asked for again."""

    def __init__(self, stream: str, manager: "ProcessManager[S, C, N]") -> None:
        super().__init__(stream, manager, manager.world)
        self.refused: dict[str, StepRefused] = {}
        """Steps of the command under way that a session's actor would not take, by run id."""
        self.texts = Texts()


class ProcessManager(Shell[S, C], Generic[S, C, N]):
    """Base of the coordinator, the spawner and the outbox. `S` is the state of one flow, `C` its commands."""

    def __init__(self, world: World, rules: Rules[S, C, N]) -> None:
        super().__init__(world)
        self.rules = rules
        self._flows: dict[str, Flow[S, C]] = {}
        self._failures: dict[str, Failures] = {}
        self._set_aside: dict[str, Refused] = {}
        """Flows that can't go on, and why, by stream."""

    def on_stop(self) -> None:
        """Tell waiting doors that the system stops."""
        for flow in self._flows.values():
            self.stopped(flow)

    # --- what a manager is made of

    def decide(self, flow: Flow[S, C], command: C) -> Plan | Accepted | Refused | None:
        """Return the plan of a command; None if there is none."""
        raise NotImplementedError

    def is_over(self, state: S) -> bool:
        """Whether the flow has ended for good."""
        raise NotImplementedError

    def refuse(self, command: C, refused: Refused) -> None:
        """Tell the waiting caller of a command that it was refused."""
        answer(command, refused)

    def given_up(self, stream: str, refused: Refused) -> None:
        """Tell the other waiting callers of a flow that it is set aside."""

    def unstorable(self, command: C, error: NotStorable) -> C | Refused | None:
        """Return a replacement for a command that can't be recorded; None if the flow can't go on."""
        if isinstance(command, BeginsFlow):
            return Refused(code="invalid_request", error=f"message: it can't be recorded: {error}")
        return None

    # --- messages

    def on_receive(self, message: object) -> None:
        """Take a command, or an answer of the log or of a session's actor."""
        match message:
            case StreamLoaded() | WasRead() | Appended() | StoreDue() | StepTaken() | StepRefused():
                if message.stream not in self._set_aside:  # else it was asked for before
                    self._came_back(message)
            case SessionReadBack():
                self._look_again(message.key, lost=message.lost)
            case _ if self.rules.takes(message):
                self._take(message)
            case _:
                logger.warning("%s can't take %r", type(self).__name__, message)

    def _flow(self, stream: str) -> Flow[S, C]:
        flow = self._flows.get(stream)
        if flow is None:
            flow = self._flows[stream] = Flow(stream, self)
        return flow

    def _take(self, command: C) -> None:
        refused = self._set_aside.get(command.stream)
        if refused is not None:
            self.refuse(command, refused)
            return
        flow = self._flow(command.stream)
        if not flow.is_busy and flow.state is None and not isinstance(command, BeginsFlow):
            flow.load()
        flow.take(command)
        self.do(flow)

    def _came_back(
        self, message: StreamLoaded | WasRead | Appended | StoreDue | StepTaken | StepRefused
    ) -> None:
        flow = self._flow(message.stream)
        match message:
            case StreamLoaded():
                flow.texts.keep(())  # an attempt may have replied something else since
                flow.read(message)
            case WasRead():
                if isinstance(message.found, RunTexts):
                    flow.texts.take(message.run_id, message.found)
                flow.was_read(message)
            case Appended():
                flow.appended(message)
            case StoreDue():
                flow.ask_store_again(message)
            case StepTaken():
                self._taken(flow, message)
            case StepRefused():
                self._step_refused(flow, message)
        self.do(flow)

    # --- what the owner of a flow gives back

    def answered(self, command: C, outcome: Accepted | Refused) -> None:
        """Tell the waiting caller of a command its outcome."""
        if isinstance(outcome, Refused):
            self.refuse(command, outcome)
        else:
            answer(command, outcome)

    def read_back(self, owner: Owner[S, C]) -> None:
        """Have the flow resumed like after a restart."""
        self.world.mail.resume_flow(owner.stream)

    def loaded(self, owner: Owner[S, C]) -> None:
        """Continue from the stream that was read, if the flow ever began."""
        if owner.state is None:
            self._never_began(owner)

    # --- what the owner of a flow asks

    def evolve(self, state: S | None, recorded: Recorded) -> S:
        """Apply one recorded event."""
        return self.rules.fold(state, recorded)

    def plan(self, owner: Owner[S, C], command: C) -> Plan | Accepted | Refused | None:
        """Decide a command."""
        return self.decide(self._flow(owner.stream), command)

    def effects(
        self, owner: Owner[S, C], command: C | None, before: S | None, fresh: Sequence[Recorded]
    ) -> Sequence[Effect]:
        """Return the effects of a flow's durable events."""
        del command, before
        if isinstance(owner, Flow):
            owner.refused.clear()
        effects = list[Effect]()
        for item in fresh:
            if owner.state is not None:
                effects += self.rules.effects(owner.state, item, self.world.limits)
        return effects

    def ahead(self, owner: Owner[S, C], append: StreamAppend) -> None:
        """Return nothing: flows tell others only of durable events."""

    def next_decision(self, owner: Owner[S, C], append: StreamAppend) -> None:
        """Return nothing: a flow decides only on commands."""

    def record(self, command: C, plan: Plan) -> str:
        """Return the record of a decision."""
        asked = plan.asked or command
        inputs = self.rules.inputs_of(asked) if self.rules.takes(asked) else {}
        return record_of(type(asked).__name__, inputs, plan.knew, plan.told)

    def cannot_go_on(self, owner: Owner[S, C], error: Exception, told: CommandOutcome[C] | None) -> None:
        """Retry a failed flow, from the log; set it aside if that does not help."""
        if isinstance(error, AppendConflict) and told is not None and _is_void(told.command):
            return  # a word that is void leads to nothing
        stream = owner.stream
        failures = self._failures.setdefault(stream, Failures())
        damaged = isinstance(error, LogError) and not isinstance(error, AppendConflict)
        if damaged or failures.too_many(self.world.time.clock.monotonic()):
            self._put_aside(owner, error, told)
            return
        self.world.reports.tell("flow_restarted", stream=stream, error=error)
        if told is not None:
            owner.take_first(told.command)
            owner.load()
            return
        # An effect failed after its event was recorded, as if the process had been killed there: the flow is resumed as after a restart.
        self._flows.pop(stream, None)
        for command in owner.give_up():
            self._take(command)
        self.world.mail.resume_flow(stream)

    def at_rest(self, owner: Owner[S, C]) -> None:
        """Look for messages missed while the store was away; forget a flow that has ended, or never began."""
        flow = self._flows.get(owner.stream)
        if flow is not None and flow.looks_again and not flow.put_off:
            flow.looks_again = False
            self.world.mail.resume_flow(owner.stream)
        if flow is owner and not owner.put_off and (owner.state is None or self.is_over(owner.state)):
            del self._flows[owner.stream]

    def _put_aside(self, owner: Owner[S, C], error: Exception, told: CommandOutcome[C] | None) -> None:
        reason = f"{type(error).__name__}: {error}"
        self._flows.pop(owner.stream, None)
        self._failures.pop(owner.stream, None)
        refusal = refused_by(error, f"it is set aside until the next start: {reason}")
        refused = self._set_aside[owner.stream] = Refused(code=refusal.code, error=refusal.error)
        self.world.mail.set_aside(owner.stream, reason)
        self.given_up(owner.stream, refused)
        for command in (*((told.command,) if told is not None else ()), *owner.give_up()):
            self.refuse(command, refused)
        self.world.reports.tell("flow_set_aside", stream=owner.stream, error=error)

    def _never_began(self, owner: Owner[S, C]) -> None:
        """Forget a flow; what waits to begin it (the same key, given twice at once) may do so, what else was told to it is dropped."""
        self._flows.pop(owner.stream, None)
        for command in owner.give_up():
            if isinstance(command, BeginsFlow):
                self._take(command)
            else:
                logger.warning("%s does not exist; %s is dropped", owner.stream, type(command).__name__)

    # --- steps that a session's actor records

    def _taken(self, flow: Flow[S, C], message: StepTaken) -> None:
        recorded = message.recorded
        if flow.under_way is not None and not flow.awaits(message.ask):
            # Another append has carried events of the flow, or this answers late what was asked before the flow was read again.
            looks_again = flow.is_fresh(recorded) if recorded else message.ask is None
        else:
            # Without events, the step was taken before, perhaps in a life before ours. What it led to may have been told
            # already, and was not understood: the flow did not know of the step.
            looks_again = not recorded or (flow.state is None and recorded[0].version > 1)
            if not looks_again:
                flow.committed(recorded)
        if looks_again:
            flow.read_back()

    def _step_refused(self, flow: Flow[S, C], message: StepRefused) -> None:
        """Decide again what a session would not take part in; a flow that has not begun does not begin."""
        told = flow.give_back() if flow.awaits(message.ask) else None
        if told is None:
            return
        if flow.state is None:
            self.refuse(told.command, Refused(code=message.code, error=message.error))
            self._never_began(flow)
        elif message.code == "unavailable":
            # The store, not the session: nothing is decided by that.
            flow.store_away(told, LogError(message.error))
        else:
            flow.refused[message.run_id] = message
            flow.decide_again(told)

    def _look_again(self, session_key: str, *, lost: bool) -> None:
        """Look for the ends of runs that a session may not have told, and tell it the steps again that it has lost.

        A step that it did take is known to it, and an end that was told is heard once. What the log is asked for, it answers.
        """
        for flow in list(self._flows.values()):
            if flow.told not in {session_key, None}:
                continue
            if lost and flow.told is not None and flow.asks_session:
                flow.reload()
                self.do(flow)
            if flow.put_off:
                # Resumed now, it would ask the store at once, be refused, have the session read back, be told again, …
                flow.looks_again = True
            else:
                flow.effects.append(ReadBack())
                self.do(flow)


def _is_void(command: FlowCommand | FlowRequest | BeginsFlow) -> bool:
    return isinstance(command, RunEnded) and command.is_void
