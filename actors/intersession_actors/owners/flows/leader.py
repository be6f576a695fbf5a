"""The common course of exchanges and spawns: begun once, decided, run by run requested from sessions, announced at the end."""

from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

import msgspec

from intersession_actors.owners.flows.led import Begins, Circumstances, Led
from intersession_actors.owners.flows.process_manager import Flow, ProcessManager
from intersession_actors.owners.flows.steps import announce_of
from intersession_actors.owners.streams.commands import Accepted, FlowCommand, FlowRequest, Refused
from intersession_actors.owners.streams.effects import Plan, Through
from intersession_actors.owners.streams.judgements import judged_at_door
from intersession_actors.owners.streams.records import present, spent_of
from intersession_actors.rules.policy.chain import age_s
from intersession_events import facts
from intersession_events.basics.plain_json import JsonObject
from intersession_events.log.log import InFlight

S = TypeVar("S", bound=Led)
C = TypeVar("C", bound=FlowCommand | FlowRequest | Begins)
N = TypeVar("N", bound=Circumstances)
E = TypeVar("E", facts.ExchangeAccepted, facts.SpawnAccepted)


class Decided(msgspec.Struct, Generic[S, C, N], frozen=True):
    """A decision's command, circumstances and events, and the states before and after them."""

    command: C
    now: N
    events: Sequence[facts.Event]
    before: S
    after: S


class Leader(ProcessManager[S, C, N]):
    """Base of the coordinator and the spawner."""

    asks_with: ClassVar[str]
    """The parameter that holds what is sent, or asked for."""
    guards: ClassVar[str]
    """The parameter that is named where a guard over the causal chain refuses the call."""

    # --- what a leader is made of

    def after(self, state: S, events: Sequence[facts.Event]) -> S:
        """Return the state after some events."""
        raise NotImplementedError

    def step(
        self, flow: Flow[S, C], decided: Decided[S, C, N], event: facts.Event, cause: str | None
    ) -> Through | None:
        """Return the step that an event asks of a session, if any."""
        raise NotImplementedError

    def announced(self, flow: Flow[S, C], decided: Decided[S, C, N], event: facts.AnnounceDecided) -> str:
        """Return the text that is announced."""
        raise NotImplementedError

    def stored(self, flow: Flow[S, C], decided: Decided[S, C, N]) -> Sequence[facts.Event]:
        """Return the events of a decision in their stored form."""
        del flow
        return decided.events

    def way_out(self, after: S, command: C) -> tuple[facts.Route | None, str]:
        """Return the announce's route and speaker."""
        raise NotImplementedError

    # --- what is alike

    def begins(self, flow: Flow[S, C], command: Begins, now_ms: int) -> Accepted | Refused | None:
        """Reserve the first run of a new flow; if it does not begin, return the caller's answer."""
        budget, accepted = command.budget, command.accepted
        if flow.state is not None:
            # The same key raced with itself: one of the two was first (SEND-11).
            if facts.same_request(flow.state.accepted.digests, accepted.request_digests):
                return Accepted(recorded=(), again=True)
            return Refused(
                code="idempotency_conflict",
                error=f"idempotencyKey: it was used for another {self.asks_with}, use a new key",
            )
        tripped = self.world.chains.reserve(budget, accepted.run_id, now_ms, by=flow.stream)
        if tripped is None:
            return None
        return Refused(code="limit", error=tripped.error_text(self.guards), tripped=tripped)

    def let_in(
        self,
        flow: Flow[S, C],
        command: Begins,
        accepted: E,
        now_ms: int,
    ) -> tuple[E, JsonObject]:
        """Return the event that accepts a call, and the circumstances for its record: of its chain, and at the door."""
        spent = self.world.chains.spent(command.budget.root, besides=flow.stream)
        door = judged_at_door(command.judged, accepted, spent, age_s(command.budget, now_ms))
        return accepted, door | present({"spent": spent_of(spent)})

    def refuse(self, command: C, refused: Refused) -> None:
        """Refuse to the waiting caller, and return the run's reservation."""
        if isinstance(command, Begins):
            self.world.chains.release(command.budget.root, command.accepted.run_id, by=command.stream)
        super().refuse(command, refused)

    def decided(
        self, flow: Flow[S, C], state: S, command: C, known: Callable[[], N]
    ) -> Decided[S, C, N] | Refused:
        """Decide, and reserve the requested run; if another branch of the chain was faster, decide again."""
        while True:
            now = known()
            events = self.rules.decide(state, command, now)
            if isinstance(events, Refused):
                return events
            after = self.after(state, events)
            decided, run_id = Decided(command, now, events, state, after), _run_asked_in(events)
            if run_id is None:
                return decided
            budget = after.budget
            now_ms = now.now_ms or self.world.now_of(budget)
            if not self.world.chains.reserve(budget, run_id, now_ms, by=flow.stream):
                return decided

    def carried_on(
        self,
        flow: Flow[S, C],
        decided: Decided[S, C, N],
        cause: str | None,
        behind: InFlight | None = None,
    ) -> Plan:
        """Return the plan of a decision, with its step: a run of a session, or a text for the outbox."""
        events = facts.joined(self.stored(flow, decided))
        carried = [
            announce_of(
                decided.after,
                event,
                self.announced(flow, decided, event),
                self.way_out(decided.after, decided.command),
                log_id=self.world.log.log_id,
                time=self.world.time.clock.now_ms(),
                cause=cause,
            )
            for event in decided.events
            if isinstance(event, facts.AnnounceDecided) and event.delivery_id is not None
        ]
        return Plan(
            events=events,
            carried=tuple(carried),
            # What was held is decided at its release: that is what leads to the text, not what was held.
            carried_by_last=bool(carried) and isinstance(events[0], facts.ExchangeReleased),
            through=self.step(flow, decided, events[0], cause) if events else None,
            behind=behind,
            cause=cause,
            correlation=flow.correlation,
            asked=decided.command,
            knew=self.rules.knew_of(decided.before, decided.now),
        )


def _run_asked_in(events: Sequence[facts.Event]) -> str | None:
    """Return the run that a decision asks for; none is, where a result is put to a session whose chain has no run left."""
    for event in events:
        if isinstance(event, facts.TurnRequested | facts.AnnounceRequested) or (
            isinstance(event, facts.ResultHanded) and event.limit is None
        ):
            return event.run_id
    return None
