"""The spawner: drives each sub-agent through its task, its announce and its archiving (SPAWN).

Its whole state is the spawns' streams; after a restart it is told `Resume` for each that is open and carries on.
"""

from collections.abc import Sequence
from functools import partial
from typing import TypeGuard, assert_never

import msgspec

from intersession_actors.chains import Cause
from intersession_actors.policy import budget_of
from intersession_actors.spawn import rules
from intersession_actors.spawn.cleanup import Cleanup, SpawnFlow
from intersession_actors.spawn.commands import (
    ArchiveDue,
    AskStarted,
    FilesRemoved,
    OpenSpawn,
    Prepared,
    SpawnCommand,
)
from intersession_actors.spawn.preparation import prepare
from intersession_actors.spawn.records import inputs_of, knew_of
from intersession_actors.spawn.steps import Causes, announce_step, result_step, start_step
from intersession_actors.spawn.waiting import Waiting, why_not_started
from intersession_actors.streams import (
    Accepted,
    ChildGone,
    DeliveryEnded,
    Plan,
    ProcessManager,
    Refused,
    Resume,
    RunEnded,
    World,
    answer,
    foreign,
    into_outbox,
)
from intersession_events import facts
from intersession_events.crash_points import crash_point
from intersession_events.errors import NotStorable
from intersession_events.log import Recorded
from intersession_events.plain_json import JsonObject


class Spawner(ProcessManager[rules.Spawn, SpawnCommand]):
    """One actor for all spawns."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._waiting = Waiting()
        self._cleanup = Cleanup(world, self.tell_self)

    def on_stop(self) -> None:
        """Tell who waits for a child that this process will not hear of it."""
        self._waiting.tell_all(Refused(code="unavailable", error="the system is stopping, try again"))

    def takes(self, message: object) -> TypeGuard[SpawnCommand]:
        """Whether this is a command to a spawn."""
        return isinstance(message, SpawnCommand)

    def evolve(self, state: rules.Spawn | None, recorded: Recorded) -> rules.Spawn:
        """Apply one recorded event."""
        event = recorded.event
        if not isinstance(event, facts.SpawnEvent):
            raise foreign(recorded)
        return rules.evolve(state, event)

    def inputs(self, command: SpawnCommand) -> JsonObject:
        """Return what a decision record says of a command beside its name."""
        return inputs_of(command)

    def is_over(self, state: rules.Spawn) -> bool:
        """Whether the spawn is closed and its child needs no archiving any more."""
        return state.phase == "closed" and state.archive_after_ms is None and state.files_due is None

    def act(self, stream: str, state: rules.Spawn, recorded: Recorded) -> None:
        """Set the clock for the child's archiving once the announce is final (SPAWN-11)."""
        event = recorded.event
        if isinstance(event, facts.SpawnAccepted):
            crash_point("P2")
            if state.phase == "preparing":
                self._prepare(stream, state, again=False)
            else:
                self._waiting.tell(stream, Accepted(recorded=()))
        elif isinstance(event, facts.ThreadOpened | facts.AttachmentsReady):
            crash_point("P4")
            self._thread_recorded(state)
            self._waiting.tell(stream, Accepted(recorded=()))
        elif isinstance(event, facts.ChildEnded):
            self.world.stopwatch.begin("ended", stream, at=self._flow(stream).decided_at)
        elif isinstance(event, facts.AnnounceDecided) and event.text is None:
            crash_point("A4")
        elif isinstance(event, facts.SpawnClosed):
            self._thread_recorded(state)
            if state.not_started:
                self._waiting.tell(stream, why_not_started(event))
            self._cleanup.begin(stream, state)
        elif isinstance(event, facts.ChildArchived):
            self.world.stopwatch.forget("ended", stream)
            self._cleanup.remove_files(stream, state)
        elif isinstance(event, facts.AttachmentRemovalFailed):
            self.world.reports.tell("files_left", stream=stream, error=f"{event.directory}: {event.error}")

    def decide(self, flow: SpawnFlow, command: SpawnCommand) -> Plan | Refused | None:
        """Decide the next step of a spawn."""
        match command:
            case OpenSpawn():
                return self._open(flow, command)
            case RunEnded() | DeliveryEnded():
                return self._after(flow, command)
            case Resume():
                return self._resume(flow, command)
            case ArchiveDue():
                return self._cleanup.archive(flow)
            case AskStarted():
                if flow.state is not None:
                    self._waiting.hear(flow.stream, flow.state, command.started)
                return None
            case Prepared():
                return self._start(flow, command)
            case FilesRemoved():
                return self._cleanup.removed(flow, command)
            case ChildGone():
                return self._cleanup.gone(flow)
            case _:
                assert_never(command)

    def _open(self, flow: SpawnFlow, command: OpenSpawn) -> Plan | Refused | None:
        if flow.state is not None:
            if flow.state.accepted.request_digest != command.accepted.request_digest:
                return Refused(
                    code="idempotency_conflict",
                    error="idempotencyKey: it was used for another task, use a new key",
                )
            if command.started is not None:
                self._waiting.hear(flow.stream, flow.state, command.started)
            answer(command, Accepted(recorded=(), again=True))
            return None
        budget, accepted, chains = command.budget, command.accepted, self.world.chains
        now = self.world.now_of(budget)
        tripped = chains.reserve(budget, accepted.run_id, now, by=flow.stream)
        if tripped is not None:
            return Refused(code="limit", error=tripped.told("task"), tripped=tripped)
        accepted = rules.decide_open(accepted, budget)
        state = rules.evolve(None, accepted)
        if command.started is not None:
            self._waiting.hear(flow.stream, state, command.started)
        plan = Plan(events=(accepted,), cause=command.causation, correlation=budget.root)
        if state.phase == "preparing":
            if accepted.thread is not None:
                self.world.channels.threads.due(accepted.thread.key, 1)
            return plan  # there is no child before it has what it needs
        causes = self._causes(command.causation, budget)
        return plan.sent_through(partial(start_step, accepted, None, causes))

    def _causes(self, cause: str | None, budget: facts.Budget) -> Causes:
        return Causes(cause=cause, budget=budget, time=self.world.clock.now_ms())

    def _prepare(self, stream: str, state: rules.Spawn, *, again: bool) -> None:
        flow, accepted = self._flow(stream), state.accepted
        asking = Cause(
            session_key=accepted.requester or accepted.child,
            budget=_budget(flow, state),
            event=flow.cause,
            clock=self.world.clock,
        )
        # Not told to ourselves: the spawner may have been started anew while the channel was at work.
        prepare(
            self.world,
            accepted,
            lambda ready: self.world.tell_flow(stream, ready),
            inside=asking.inside,
            again=again,
        )

    def _start(self, flow: SpawnFlow, command: Prepared) -> Plan | None:
        state = flow.state
        if state is None:
            return None
        child = state.accepted.child
        is_its_own = command.thread is None or command.thread_withheld or state.phase != "preparing"
        if (
            not is_its_own
            and command.thread is not None
            and not self.world.threads.claim(command.thread, child)
        ):
            why = "thread: the channel gave one that belongs to another session, spawn without one"
            command = Prepared(stream=command.stream, refused=Refused(code="no_threads", error=why))
        now = rules.Circumstances(
            log_id=self.world.log.log_id, budget=_budget(flow, state), refused=dict(flow.refused)
        )
        events = rules.decide(state, command, now)
        if not events:
            return None
        if isinstance(events[-1], facts.SpawnClosed):
            self.world.threads.release(child)
        plan = Plan(
            events=tuple(events),
            cause=flow.cause,
            correlation=flow.correlation,
            asked=command,
            knew=knew_of(now),
        )
        if isinstance(events[-1], facts.SpawnClosed):
            return plan
        causes = self._causes(flow.cause, now.budget)
        return plan.sent_through(partial(start_step, state.accepted, command.thread, causes))

    def _thread_recorded(self, state: rules.Spawn) -> None:
        thread = state.accepted.thread
        if thread is not None:
            self.world.channels.threads.recorded(thread.key, 1)

    def refuse(self, command: SpawnCommand, refused: Refused) -> None:
        """Tell whoever waits for a command that it was refused, and wait no more."""
        super().refuse(command, refused)
        if isinstance(command, OpenSpawn):
            root, run_id = command.budget.root, command.accepted.run_id
            self.world.chains.release(root, run_id, by=command.stream)
            self._waiting.forget(command.stream, command.started)
        elif isinstance(command, AskStarted):
            command.started(refused)

    def given_up(self, stream: str, refused: Refused) -> None:
        """Tell who waits for a child that it will not hear of it."""
        self._waiting.tell(stream, refused)

    def unstorable(self, command: SpawnCommand, error: NotStorable) -> SpawnCommand | Refused | None:
        """Let the child not start where its thread can't be recorded; keep of an error what can be."""
        if isinstance(command, Prepared) and command.refused is None:
            why = f"thread: the channel opened one whose id can't be recorded ({error}), spawn without one"
            return Prepared(stream=command.stream, refused=Refused(code="no_threads", error=why))
        if isinstance(command, Prepared) and command.refused is not None:
            return _spelled_out(command, refused=command.refused)
        if isinstance(command, FilesRemoved) and command.error is not None and not command.error.isascii():
            return msgspec.structs.replace(command, error=ascii(command.error))
        return super().unstorable(command, error)

    def _resume(self, flow: SpawnFlow, command: Resume) -> Plan | None:
        state = flow.state
        if state is None:
            return None
        ended = next((ended for ended in command.ended if ended.awaited == state.pending), None)
        if ended is not None:
            return self._after(flow, ended)
        if state.phase == "preparing":
            self._prepare(flow.stream, state, again=True)
        self._cleanup.begin(flow.stream, state)
        return None

    def _after(self, flow: SpawnFlow, outcome: RunEnded | DeliveryEnded) -> Plan | None:
        state = flow.state
        if state is None:
            return None
        accepted = state.accepted
        route, speaker = _way_out(accepted, outcome)
        budget = _budget(flow, state)
        events, now = self._decided(flow, state, outcome, budget, has_route=route is not None)
        if not events:
            return None
        crash_point("P6")
        after = state
        for event in events:
            after = rules.evolve(after, event)
        plan = Plan(
            events=tuple(events),
            cause=outcome.cause,
            correlation=flow.correlation,
            asked=outcome,
            knew=knew_of(now),
        )
        causes = self._causes(outcome.cause, budget)
        for event in events:
            if isinstance(event, facts.AnnounceRequested):
                return plan.sent_through(partial(announce_step, after, event, causes))
            if isinstance(event, facts.ResultHanded):
                return plan.sent_through(partial(result_step, after, event, _words(plan), causes))
            if (
                isinstance(event, facts.AnnounceDecided)
                and event.delivery_id is not None
                and event.text is not None
            ):
                if route is None:  # the rules decided a delivery because there was a route
                    raise RuntimeError(f"spawn {accepted.spawn_id} lost its route")
                decided = facts.DeliveryDecided(
                    delivery_id=event.delivery_id,
                    session_key=speaker,
                    route=route,
                    text=event.text,
                    key=event.delivery_id,
                    purpose="spawn_announce",
                    run_id=accepted.run_id,
                    owner=flow.stream,
                )
                carried = into_outbox(
                    self.world.log.log_id, decided, budget=budget, time=causes.time, causation=outcome.cause
                )
                return msgspec.structs.replace(plan, carried=(carried,))
        return plan

    def _decided(
        self,
        flow: SpawnFlow,
        state: rules.Spawn,
        outcome: RunEnded | DeliveryEnded,
        budget: facts.Budget,
        *,
        has_route: bool,
    ) -> tuple[list[facts.SpawnEvent], rules.Circumstances]:
        """Decide, and reserve the run that is asked for; where another branch of the chain was faster, decide again."""
        if isinstance(outcome, DeliveryEnded):
            known = rules.Circumstances(log_id=self.world.log.log_id, budget=budget)
            return rules.decide(state, outcome, known), known
        while True:
            now = rules.Circumstances(
                log_id=self.world.log.log_id,
                now_ms=self.world.now_of(budget),
                has_route=has_route,
                budget=budget,
                spent=self.world.chains.spent(budget.root, besides=flow.stream),
                transcript_path=self.world.transcript_path(state.accepted.child_session_id),
                refused=dict(flow.refused),
            )
            events = rules.decide(state, outcome, now)
            asked = _asked(events)
            if asked is None:
                return events, now
            if self.world.chains.reserve(budget, asked, now.now_ms, by=flow.stream) is None:
                return events, now


def _budget(flow: SpawnFlow, state: rules.Spawn) -> facts.Budget:
    """Return what the causal chain that a spawn is of may use (LOOP-5)."""
    return budget_of(state.accepted, flow.correlation, 0)


def _asked(events: Sequence[facts.SpawnEvent]) -> str | None:
    """Return the run that a decision asks for."""
    for event in events:
        if isinstance(event, facts.AnnounceRequested) or (
            isinstance(event, facts.ResultHanded) and event.limit is None
        ):
            return event.run_id
    return None


def _spelled_out(command: Prepared, *, refused: Refused) -> Prepared | None:
    """Return the command with its error in ASCII, where that is not yet so."""
    if refused.error.isascii():
        return None
    return msgspec.structs.replace(
        command, refused=msgspec.structs.replace(refused, error=ascii(refused.error))
    )


def _way_out(
    accepted: facts.SpawnAccepted, outcome: RunEnded | DeliveryEnded
) -> tuple[facts.Route | None, str]:
    """Return where the announce goes, and as whose words: the child's thread while it has one (SPAWN-12)."""
    thread = outcome.thread if isinstance(outcome, RunEnded) else None
    if thread is not None:
        return thread, accepted.child
    return accepted.route, accepted.requester or accepted.child


def _words(plan: Plan) -> str:
    return next(
        event.text
        for event in plan.events
        if isinstance(event, facts.AnnounceDecided) and event.text is not None
    )
