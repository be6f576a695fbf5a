"""The spawner: drives each sub-agent through its task, its announce and its archiving (SPAWN).

Its whole state is the spawns' streams; after a restart it is told `Resume` for each that is open and carries on.
"""

from collections.abc import Callable
from functools import partial

from intersession_actors import spawn_rules
from intersession_actors.commands import (
    Accepted,
    Archive,
    ArchiveDue,
    Command,
    DeliveryEnded,
    Enqueue,
    OpenSpawn,
    Refused,
    Resume,
    RunEnded,
)
from intersession_actors.drafting import append_of
from intersession_actors.process import Flow, Plan, ProcessManager
from intersession_actors.spawn_rules import Facts, Spawn
from intersession_actors.spawn_steps import Causes, announce_step, result_step
from intersession_events import ids
from intersession_events.crash_points import crash_point
from intersession_events.delivery import DeliveryDecided
from intersession_events.exchange import AnnounceDecided, AnnounceRequested
from intersession_events.recorded import Recorded, StreamAppend
from intersession_events.spawn import ChildArchived, ResultHanded, SpawnAccepted, SpawnClosed

BUSY_CHILD_MS = 60_000
"""How long a child that is due for archiving but still runs is left alone."""


class Spawner(ProcessManager[Spawn]):
    """One actor for all spawns."""

    def stream_of(self, command: Command) -> str:
        """Return the spawn a command is about."""
        if isinstance(command, OpenSpawn):
            return ids.spawn_stream(command.accepted.spawn_id)
        return super().stream_of(command)

    def begins(self, command: Command) -> bool:
        """Only an accepted spawn begins one."""
        return isinstance(command, OpenSpawn)

    def evolve(self, state: Spawn | None, recorded: Recorded) -> Spawn:
        """Apply one recorded event."""
        return spawn_rules.evolve(state, recorded.event)

    def is_over(self, state: Spawn) -> bool:
        """Whether the spawn is closed and its child needs no archiving any more."""
        return state.phase == "closed" and state.archive_at_ms is None

    def act(self, stream: str, state: Spawn, recorded: Recorded) -> None:
        """Set the clock for the child's archiving once the announce is final (SPAWN-11)."""
        match recorded.event:
            case SpawnAccepted():
                crash_point("P2")
            case AnnounceDecided(text=None):
                crash_point("A4")
            case SpawnClosed():
                self._archive_later(stream, state)
            case _:
                pass

    def plan(self, flow: Flow[Spawn], command: Command) -> Plan | Refused | None:
        """Decide the next step of a spawn."""
        match command:
            case OpenSpawn():
                return self._open(flow, command)
            case RunEnded() | DeliveryEnded():
                return self._after(flow, command)
            case Resume():
                return self._resume(flow, command)
            case ArchiveDue():
                return self._archive(flow)
            case _:
                return None

    def _open(self, flow: Flow[Spawn], command: OpenSpawn) -> Plan | Refused | None:
        if flow.state is not None:
            if flow.state.accepted.request_digest != command.accepted.request_digest:
                return Refused(
                    code="idempotency_conflict",
                    error="idempotencyKey: it was used for another task, use a new key",
                )
            if command.answer is not None:
                command.answer(Accepted(recorded=(), again=True))
            return None
        stream = flow.stream

        def through(appends: tuple[StreamAppend, ...]) -> tuple[str, Enqueue]:
            return command.accepted.child, Enqueue(
                message=command.message,
                queue=command.queue,
                opening=command.opening,
                flow=stream,
                carried=appends,
                causation=command.causation,
                correlation=command.correlation,
            )

        return Plan(
            events=(command.accepted,),
            through=through,
            cause=command.causation,
            correlation=command.correlation,
        )

    def _resume(self, flow: Flow[Spawn], command: Resume) -> Plan | None:
        state = flow.state
        if state is None:
            return None
        for ended in command.ended:
            if state.pending in {getattr(ended, "run_id", None), getattr(ended, "delivery_id", None)}:
                return self._after(flow, ended)
        self._archive_later(flow.stream, state)
        return None

    def _after(self, flow: Flow[Spawn], outcome: RunEnded | DeliveryEnded) -> Plan | None:
        state = flow.state
        if state is None:
            return None
        accepted = state.accepted
        facts = Facts(
            log_id=self.world.log.log_id,
            has_route=accepted.route is not None,
            transcript_path=self.world.transcript_path(accepted.child_session_id),
            refused=dict(flow.refused),
        )
        events = spawn_rules.decide(state, outcome, facts)
        if not events:
            return None
        crash_point("P6")
        after = state
        for event in events:
            after = spawn_rules.evolve(after, event)
        plan = Plan(events=tuple(events), cause=outcome.cause, correlation=flow.correlation)
        causes = Causes(cause=outcome.cause, correlation=flow.correlation, time=self.world.clock.now_ms())
        for event in events:
            match event:
                case AnnounceRequested():
                    return _through(plan, partial(announce_step, after, event, causes))
                case ResultHanded():
                    return _through(plan, partial(result_step, after, event, _words(plan), causes))
                case AnnounceDecided(delivery_id=str() as delivery_id, text=str() as text):
                    return Plan(
                        events=plan.events,
                        carried=(self._delivery(flow, delivery_id, text, outcome.cause),),
                        cause=plan.cause,
                        correlation=plan.correlation,
                    )
                case _:
                    pass
        return plan

    def _delivery(self, flow: Flow[Spawn], delivery_id: str, text: str, cause: str | None) -> StreamAppend:
        if flow.state is None or flow.state.accepted.route is None:
            raise RuntimeError(f"{flow.stream} decided a delivery without a route")
        accepted, route = flow.state.accepted, flow.state.accepted.route
        decided = DeliveryDecided(
            delivery_id=delivery_id,
            session_key=accepted.requester or accepted.child,
            route=route,
            text=text,
            key=delivery_id,
            purpose="spawn_announce",
            run_id=accepted.run_id,
            owner=flow.stream,
        )
        return append_of(
            self.world.log.log_id,
            ids.delivery_stream(delivery_id),
            0,
            (decided,),
            time=self.world.clock.now_ms(),
            causation=cause,
            correlation=flow.correlation,
        )

    def _archive_later(self, stream: str, state: Spawn) -> None:
        due = state.archive_at_ms
        if due is not None:
            self.world.timers.at(
                max(due, self.world.clock.now_ms()),
                ("archive", stream),
                lambda: self.tell_self(ArchiveDue(stream=stream)),
            )

    def _archive(self, flow: Flow[Spawn]) -> Plan | None:
        state, stream = flow.state, flow.stream
        if state is None or state.archive_at_ms is None:
            return None
        child = state.accepted.child
        refusal = flow.refused.pop("", None)
        if refusal is not None and refusal.code != "not_visible":
            self.world.timers.at(
                self.world.clock.now_ms() + BUSY_CHILD_MS,
                ("archive", stream),
                lambda: self.tell_self(ArchiveDue(stream=stream)),
            )
            return None
        deleted = state.accepted.cleanup == "delete"
        crash_point("P8" if deleted else "P9")
        event = ChildArchived(child=child, reason="cleanup" if deleted else "expired")
        plan = Plan(events=(event,), cause=flow.cause, correlation=flow.correlation)
        if refusal is not None:  # somebody archived the child before us; say so in the spawn's stream
            return plan
        return _through(
            plan,
            lambda appends: (
                child,
                Archive(
                    reason="cleanup" if deleted else "expired", flow=stream, carried=appends, only_idle=True
                ),
            ),
        )


Through = Callable[[tuple[StreamAppend, ...]], tuple[str, Command]]


def _through(plan: Plan, through: Through) -> Plan:
    return Plan(events=plan.events, through=through, cause=plan.cause, correlation=plan.correlation)


def _words(plan: Plan) -> str:
    return next(
        event.text for event in plan.events if isinstance(event, AnnounceDecided) and event.text is not None
    )
