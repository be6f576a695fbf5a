"""The spawner: drives each sub-agent through its task, its announce and its archiving (SPAWN).

Its whole state is the spawns' streams; after a restart it is told `Resume` for each that is open and carries on.
"""

from collections.abc import Sequence
from functools import partial, reduce
from typing import assert_never, cast

import msgspec

from intersession_actors.owners.flows.leader import Decided, Leader
from intersession_actors.owners.flows.process_manager import Flow
from intersession_actors.owners.spawn.commands import (
    ArchiveDue,
    AskStarted,
    ClaimResult,
    FilesRemoved,
    OpenSpawn,
    Prepared,
    SpawnCommand,
)
from intersession_actors.owners.spawn.effects import (
    Prepare,
    RemoveFiles,
    TellStarted,
    ThreadRecorded,
    clean_up,
    prepared,
    why_not_started,
)
from intersession_actors.owners.spawn.preparation import is_own, prepare, remove_files
from intersession_actors.owners.spawn.records import RULES
from intersession_actors.owners.spawn.rules import (
    Circumstances,
    Spawn,
    announced_text,
    decide_open,
    evolve,
    with_text,
)
from intersession_actors.owners.spawn.steps import step_asked, way_out
from intersession_actors.owners.streams.commands import (
    Accepted,
    ChildGone,
    DeliveryEnded,
    OnAnswer,
    Refused,
    Resume,
    RunEnded,
)
from intersession_actors.owners.streams.effects import Effect, Plan, Sleep, TellFlow, Through
from intersession_actors.owners.streams.owner import Owner
from intersession_actors.owners.streams.texts import RunTexts
from intersession_actors.owners.streams.world import World
from intersession_events import facts
from intersession_events.basics.crash_points import crash_point
from intersession_events.basics.errors import NotStorable

BUSY_CHILD_MS = 60_000
"""How long a child that is due for archiving but still runs is left alone."""

SpawnFlow = Flow[Spawn, SpawnCommand]
SpawnDecided = Decided[Spawn, SpawnCommand, Circumstances]


class Waiting:
    """The waiting callers, by spawn."""

    def __init__(self) -> None:
        self._started: dict[str, list[OnAnswer]] = {}

    def hear(self, stream: str, state: Spawn, started: OnAnswer) -> None:
        """Tell a caller how a child began, now if that is known, else later."""
        if state.closed is not None and state.not_started:
            started(why_not_started(state.closed))
        elif state.phase == "preparing":
            waiting = self._started.setdefault(stream, [])
            if started not in waiting:  # decided twice is heard once
                waiting.append(started)
        else:
            started(Accepted(recorded=(), again=True))

    def tell(self, stream: str, outcome: Accepted | Refused) -> None:
        """Tell all that wait for a child."""
        for started in self._started.pop(stream, ()):
            started(outcome)

    def tell_all(self, outcome: Refused) -> None:
        """Tell all that wait for any child."""
        for stream in list(self._started):
            self.tell(stream, outcome)

    def forget(self, stream: str, started: OnAnswer | None) -> None:
        """Forget a waiting caller, who is told in another way."""
        if started in self._started.get(stream, ()):
            self._started.pop(stream)


class Spawner(Leader[Spawn, SpawnCommand, Circumstances]):
    """One actor for all spawns."""

    asks_with = guards = "task"

    def __init__(self, world: World) -> None:
        super().__init__(world, RULES)
        self._waiting = Waiting()
        self._removing: set[str] = set()
        """Spawns whose files are being removed."""

    def on_stop(self) -> None:
        """Tell those that wait for a child that this process will not hear of it."""
        super().on_stop()
        self._waiting.tell_all(Refused(code="unavailable", error="the system is stopping, try again"))

    def is_over(self, state: Spawn) -> bool:
        """Whether the spawn is closed and its child archived, or kept for ever."""
        return state.phase == "closed" and state.archive_after_ms is None and state.files_due is None

    def act(self, owner: Owner[Spawn, SpawnCommand], effect: Effect) -> None:
        """Carry out an effect of a spawn."""
        stream = owner.stream
        match effect:
            case TellStarted(outcome):
                self._waiting.tell(stream, outcome)
            case ThreadRecorded(key):
                self.world.channels.threads.recorded(key, 1)
            case Prepare(accepted, caused, again):
                # Not told to ourselves: the spawner may have been started anew while the channel was at work.
                tell = partial(self.world.mail.tell_flow, stream)
                prepare(self.world, accepted, tell, inside=self.world.inside(caused), again=again)
            case RemoveFiles(accepted, files):
                if stream not in self._removing and is_own(self.world.log, accepted):
                    self._removing.add(stream)
                    remove_files(self.world, accepted.spawn_id, files, self.tell_self)
            case _:
                super().act(owner, effect)

    def decide(self, flow: SpawnFlow, command: SpawnCommand) -> Plan | Accepted | Refused | None:
        """Decide the next step of a spawn."""
        if isinstance(command, OpenSpawn):
            return self._open(flow, command)
        state = flow.state
        if state is None:
            return None
        match command:
            case ClaimResult():
                return self._on(flow, state, command) or Accepted(recorded=(), again=True)
            case RunEnded() | DeliveryEnded() | ChildGone():
                return self._on(flow, state, command)
            case Prepared():
                return self._start(flow, state, command)
            case FilesRemoved():
                self._removing.discard(flow.stream)
                return self._on(flow, state, command)
            case ArchiveDue():
                return self._archive(flow, state, command)
            case Resume():
                return self._resume(flow, state, command)
            case AskStarted():
                self._waiting.hear(flow.stream, state, command.started)
                return None
            case _:
                assert_never(command)

    # --- the beginning

    def _open(self, flow: SpawnFlow, command: OpenSpawn) -> Plan | Accepted | Refused:
        now_ms = self.world.now_of(command.budget)
        outcome = self.begins(flow, command, now_ms)
        if isinstance(outcome, Refused):
            return outcome
        accepted, knew = self.let_in(flow, command, decide_open(command.accepted, command.budget), now_ms)
        flow.texts.take(accepted.run_id, RunTexts(asked=command.accepted.task))
        state = flow.state or evolve(None, accepted)
        if command.started is not None:
            self._waiting.hear(flow.stream, state, command.started)
        if outcome is not None:
            return outcome
        if state.phase == "preparing" and accepted.thread is not None:
            self.world.channels.threads.due(accepted.thread.key, 1)
        given = msgspec.structs.replace(state.accepted, given=command.accepted.given)
        state = msgspec.structs.replace(state, accepted=given)
        return Plan(
            events=(accepted,),
            knew=knew,
            through=step_asked(state, accepted, flow.texts, command.causation, None),
            cause=command.causation,
            correlation=command.budget.root,
        )

    def _start(self, flow: SpawnFlow, state: Spawn, command: Prepared) -> Plan | Refused | None:
        child, thread = state.accepted.child, command.thread
        if (
            thread is not None
            and not command.thread_withheld
            and state.phase == "preparing"
            and not self.world.standing.threads.claim(thread, child)
        ):
            why = "thread: the channel gave one that belongs to another session, spawn without one"
            command = Prepared(stream=command.stream, refused=Refused(code="no_threads", error=why))
        plan = self._on(flow, state, command)
        if isinstance(plan, Plan) and isinstance(plan.events[-1], facts.SpawnClosed):
            self.world.standing.threads.release(child)
        return plan

    def refuse(self, command: SpawnCommand, refused: Refused) -> None:
        """Tell the waiting caller of a command that it was refused, and forget it."""
        super().refuse(command, refused)
        if isinstance(command, OpenSpawn):
            self._waiting.forget(command.stream, command.started)
        elif isinstance(command, AskStarted):
            command.started(refused)

    def given_up(self, stream: str, refused: Refused) -> None:
        """Tell those that wait for a child that they will not hear of it."""
        self._waiting.tell(stream, refused)

    def unstorable(self, command: SpawnCommand, error: NotStorable) -> SpawnCommand | Refused | None:
        """Replace what can't be recorded: without its thread the child does not start; an error is shortened."""
        if isinstance(command, Prepared) and command.refused is None:
            why = f"thread: the channel opened one whose id can't be recorded ({error}), spawn without one"
            return Prepared(stream=command.stream, refused=Refused(code="no_threads", error=why))
        if isinstance(command, Prepared) and command.refused is not None:
            return _spelled_out(command, refused=command.refused)
        if isinstance(command, FilesRemoved) and command.error is not None and not command.error.isascii():
            return msgspec.structs.replace(command, error=ascii(command.error))
        return super().unstorable(command, error)

    def _resume(self, flow: SpawnFlow, state: Spawn, command: Resume) -> Plan | Refused | None:
        ended = state.awaited_in(command)
        if ended is not None:
            return self._on(flow, state, ended)
        again = (prepared(state, flow.cause, again=True),) if state.phase == "preparing" else ()
        return Plan(effects=(*again, *clean_up(state)))

    # --- what follows

    def _on(self, flow: SpawnFlow, state: Spawn, command: SpawnCommand) -> Plan | Refused | None:
        if isinstance(command, RunEnded):
            flow.texts.take(command.run_id, RunTexts(reply=command.text or ""))
        decided = self.decided(flow, state, command, lambda: self._circumstances(flow, state, command))
        if isinstance(decided, Refused):
            return decided
        if not decided.events:
            return None
        if not isinstance(command, RunEnded | DeliveryEnded):
            return self.carried_on(flow, decided, flow.cause)
        crash_point("P6")
        plan = self.carried_on(flow, decided, command.cause)
        if decided.after.phase == "closed":
            flow.texts.keep(())  # what is left is the time until the child is archived
        return plan

    def _circumstances(self, flow: SpawnFlow, state: Spawn, command: SpawnCommand) -> Circumstances:
        # What nothing that can follow looks at is not asked: a decision record names all that was known.
        log_id = self.world.log.log_id
        if isinstance(command, Prepared):
            return Circumstances(log_id=log_id, refused=dict(flow.refused))
        if not isinstance(command, RunEnded):
            return Circumstances(log_id=log_id)
        return Circumstances(
            log_id=log_id,
            now_ms=self.world.now_of(state.budget),
            has_route=not state.claimed and self.way_out(state, command)[0] is not None,
            spent=self.world.chains.spent(state.budget.root, besides=flow.stream),
            transcript_path=self.world.rules.transcript_path(state.accepted.child_session_id),
            refused=dict(flow.refused),
        )

    def after(self, state: Spawn, events: Sequence[facts.Event]) -> Spawn:
        """Return the spawn after some events."""
        return reduce(evolve, cast("Sequence[facts.SpawnEvent]", events), state)

    def step(
        self, flow: SpawnFlow, decided: SpawnDecided, event: facts.Event, cause: str | None
    ) -> Through | None:
        """Return the step that an event asks of a session: the task, the announce turn, taking the result, archiving."""
        return step_asked(decided.after, event, flow.texts, cause, decided.now.transcript_path)

    def announced(self, flow: SpawnFlow, decided: SpawnDecided, event: facts.AnnounceDecided) -> str:
        """Return the text that is announced."""
        return announced_text(decided.after, event, flow.texts, decided.now.transcript_path)

    def stored(self, flow: SpawnFlow, decided: SpawnDecided) -> Sequence[facts.Event]:
        """Return a decision's events, with the text of an announce that goes nowhere."""
        return with_text(decided.after, decided.events, flow.texts, decided.now.transcript_path)

    def way_out(self, after: Spawn, command: SpawnCommand) -> tuple[facts.Route | None, str]:
        """Return the announce's route and speaker."""
        return way_out(after.accepted, command)

    def _archive(self, flow: SpawnFlow, state: Spawn, command: ArchiveDue) -> Plan | Refused | None:
        """Archive the child, if it does nothing; else look again later."""
        refusal = flow.refused.pop("", None)
        if refusal is not None and refusal.code != "not_visible":
            return Plan(effects=(Sleep(("archive", flow.stream), TellFlow(command), BUSY_CHILD_MS),))
        plan = self._on(flow, state, command)
        if isinstance(plan, Plan):
            crash_point("P8" if state.accepted.cleanup == "delete" else "P9")
            if refusal is not None:  # somebody archived the child before us; say so in the spawn's stream
                return msgspec.structs.replace(plan, through=None)
        return plan


def _spelled_out(command: Prepared, *, refused: Refused) -> Prepared | None:
    """Return the command with its error in ASCII, where that is not yet so."""
    if refused.error.isascii():
        return None
    return msgspec.structs.replace(
        command, refused=msgspec.structs.replace(refused, error=ascii(refused.error))
    )
