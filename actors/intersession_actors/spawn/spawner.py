"""The spawner: drives each sub-agent through its task, its announce and its archiving (SPAWN).

Its whole state is the spawns' streams; after a restart it is told `Resume` for each that is open and carries on.
"""

from collections.abc import Callable
from functools import partial

from intersession_actors.errors import REFUSAL_CODES, RefusalCode
from intersession_actors.session import Archive
from intersession_actors.spawn import rules as spawn_rules
from intersession_actors.spawn.commands import ArchiveDue, AskStarted, FilesRemoved, OpenSpawn, Prepared
from intersession_actors.spawn.preparation import prepare, remove_files
from intersession_actors.spawn.rules import Facts, Spawn
from intersession_actors.spawn.steps import Causes, announce_step, result_step, start_step
from intersession_actors.streams import (
    Accepted,
    Answer,
    ChildGone,
    Command,
    DeliveryEnded,
    Flow,
    Plan,
    ProcessManager,
    Refused,
    Resume,
    RunEnded,
    World,
    append_of,
)
from intersession_events import ids
from intersession_events.crash_points import crash_point
from intersession_events.facts import (
    AnnounceDecided,
    AnnounceRequested,
    AttachmentsReady,
    ChildArchived,
    DeliveryDecided,
    ResultHanded,
    Route,
    SpawnAccepted,
    SpawnClosed,
    ThreadOpened,
)
from intersession_events.log import Recorded, StreamAppend

BUSY_CHILD_MS = 60_000
"""How long a child that is due for archiving but still runs is left alone."""


class Spawner(ProcessManager[Spawn]):
    """One actor for all spawns."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._started: dict[str, list[Answer]] = {}
        """Who waits, by spawn, to hear that the child is there (SPAWN-12)."""
        self._removing: set[str] = set()
        """Spawns whose files are being removed."""

    def on_stop(self) -> None:
        """Tell who waits for a child that this process will not hear of it."""
        for stream in list(self._started):
            self._say_started(stream, Refused(code="unavailable", error="the system is stopping, try again"))

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
        return state.phase == "closed" and state.archive_at_ms is None and state.files_due is None

    def act(self, stream: str, state: Spawn, recorded: Recorded) -> None:
        """Set the clock for the child's archiving once the announce is final (SPAWN-11)."""
        match recorded.event:
            case SpawnAccepted():
                crash_point("P2")
                if state.phase == "preparing":
                    prepare(self.world, state.accepted, self.tell_self, again=False)
                else:
                    self._say_started(stream, Accepted(recorded=()))
            case ThreadOpened() | AttachmentsReady():
                crash_point("P4")
                self._say_started(stream, Accepted(recorded=()))
            case AnnounceDecided(text=None):
                crash_point("A4")
            case SpawnClosed():
                if state.not_started:
                    self._say_started(stream, why_not_started(recorded.event))
                self._archive_later(stream, state)
                self._remove_files(stream, state)
            case ChildArchived():
                self._remove_files(stream, state)
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
            case AskStarted():
                if flow.state is not None:
                    self._hear_started(flow.stream, flow.state, command.started)
                return None
            case Prepared():
                return self._start(flow, command)
            case FilesRemoved():
                return self._removed(flow, command)
            case ChildGone():
                return self._gone(flow)
            case _:
                return None

    def _open(self, flow: Flow[Spawn], command: OpenSpawn) -> Plan | Refused | None:
        if flow.state is not None:
            if flow.state.accepted.request_digest != command.accepted.request_digest:
                return Refused(
                    code="idempotency_conflict",
                    error="idempotencyKey: it was used for another task, use a new key",
                )
            if command.started is not None:
                self._hear_started(flow.stream, flow.state, command.started)
            if command.answer is not None:
                command.answer(Accepted(recorded=(), again=True))
            return None
        state = spawn_rules.evolve(None, command.accepted)
        if command.started is not None:
            self._hear_started(flow.stream, state, command.started)
        plan = Plan(events=(command.accepted,), cause=command.causation, correlation=command.correlation)
        if state.phase == "preparing":
            return plan  # there is no child before it has what it needs
        causes = Causes(
            cause=command.causation, correlation=command.correlation, time=self.world.clock.now_ms()
        )
        return _through(plan, partial(start_step, command.accepted, None, causes))

    def _start(self, flow: Flow[Spawn], command: Prepared) -> Plan | None:
        state = flow.state
        if state is None:
            return None
        events = spawn_rules.decide_prepared(state, command, flow.refused.get(state.accepted.run_id))
        if not events:
            return None
        plan = Plan(events=tuple(events), cause=flow.cause, correlation=flow.correlation)
        if isinstance(events[-1], SpawnClosed):
            return plan
        causes = Causes(cause=flow.cause, correlation=flow.correlation, time=self.world.clock.now_ms())
        return _through(plan, partial(start_step, state.accepted, command.thread, causes))

    def refuse(self, command: Command, refused: Refused) -> None:
        """Tell whoever waits for a command that it was refused, and wait no more."""
        super().refuse(command, refused)
        started = command.started if isinstance(command, OpenSpawn) else None
        if started in self._started.get(self.stream_of(command), ()):
            self._started.pop(self.stream_of(command))

    def _hear_started(self, stream: str, state: Spawn, started: Answer) -> None:
        if state.closed is not None and state.not_started:
            started(why_not_started(state.closed))
        elif state.phase == "preparing":
            waiting = self._started.setdefault(stream, [])
            if started not in waiting:  # decided twice is heard once
                waiting.append(started)
        else:
            started(Accepted(recorded=(), again=True))

    def _say_started(self, stream: str, outcome: Accepted | Refused) -> None:
        for started in self._started.pop(stream, ()):
            started(outcome)

    def _remove_files(self, stream: str, state: Spawn) -> None:
        """Have the child's files removed if it is time, once (ATT-5)."""
        files = state.files_due
        if files is not None and stream not in self._removing:
            self._removing.add(stream)
            remove_files(self.world, state.accepted.spawn_id, files, self.tell_self)

    def _removed(self, flow: Flow[Spawn], command: FilesRemoved) -> Plan | None:
        self._removing.discard(flow.stream)
        events = () if flow.state is None else spawn_rules.decide_removed(flow.state, command.error)
        return Plan(events=tuple(events), cause=flow.cause, correlation=flow.correlation)

    def _gone(self, flow: Flow[Spawn]) -> Plan | None:
        """Note that somebody else archived the child (HIST-7)."""
        if flow.state is None or flow.state.archived or flow.state.phase == "preparing":
            return None
        event = ChildArchived(child=flow.state.accepted.child, reason="deleted")
        return Plan(events=(event,), cause=flow.cause, correlation=flow.correlation)

    def _resume(self, flow: Flow[Spawn], command: Resume) -> Plan | None:
        state = flow.state
        if state is None:
            return None
        for ended in command.ended:
            if state.pending in {getattr(ended, "run_id", None), getattr(ended, "delivery_id", None)}:
                return self._after(flow, ended)
        if state.phase == "preparing":
            prepare(self.world, state.accepted, self.tell_self, again=True)
        self._archive_later(flow.stream, state)
        self._remove_files(flow.stream, state)
        return None

    def _after(self, flow: Flow[Spawn], outcome: RunEnded | DeliveryEnded) -> Plan | None:
        state = flow.state
        if state is None:
            return None
        accepted = state.accepted
        route, speaker = _way_out(accepted, outcome)
        facts = Facts(
            log_id=self.world.log.log_id,
            has_route=route is not None,
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
                case AnnounceDecided(delivery_id=str() as delivery_id, text=str() as text) if (
                    route is not None
                ):
                    decided = DeliveryDecided(
                        delivery_id=delivery_id,
                        session_key=speaker,
                        route=route,
                        text=text,
                        key=delivery_id,
                        purpose="spawn_announce",
                        run_id=accepted.run_id,
                        owner=flow.stream,
                    )
                    return Plan(
                        events=plan.events,
                        carried=(self._delivery(flow, decided, outcome.cause),),
                        cause=plan.cause,
                        correlation=plan.correlation,
                    )
                case _:
                    pass
        return plan

    def _delivery(self, flow: Flow[Spawn], decided: DeliveryDecided, cause: str | None) -> StreamAppend:
        return append_of(
            self.world.log.log_id,
            ids.delivery_stream(decided.delivery_id),
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


def why_not_started(closed: SpawnClosed) -> Refused:
    """Return what a caller is told of a child that never was."""
    codes: dict[str | None, RefusalCode] = {code: code for code in REFUSAL_CODES}
    return Refused(
        code=codes.get(closed.code, "internal"),
        error=closed.note or "the sub-agent could not be started, spawn again",
    )


def _way_out(accepted: SpawnAccepted, outcome: RunEnded | DeliveryEnded) -> tuple[Route | None, str]:
    """Return where the announce goes, and as whose words: the child's thread while it has one (SPAWN-12)."""
    thread = outcome.thread if isinstance(outcome, RunEnded) else None
    if thread is not None:
        return thread, accepted.child
    return accepted.route, accepted.requester or accepted.child


def _words(plan: Plan) -> str:
    return next(
        event.text for event in plan.events if isinstance(event, AnnounceDecided) and event.text is not None
    )
