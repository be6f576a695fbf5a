"""The coordinator: drives each exchange through primary run, reply-back loop and announce (LOOP, ANN).

Its whole state is the exchanges' streams; after a restart it is told `Resume` for each that is open and carries on.
"""

from typing import TypeGuard, assert_never

import msgspec

from intersession_actors.exchange.commands import ExchangeCommand, OpenExchange
from intersession_actors.exchange.rules import Circumstances, Exchange, Phase, decide, evolve
from intersession_actors.exchange.steps import announce_step, primary_step, turn_step
from intersession_actors.streams import (
    Accepted,
    DeliveryEnded,
    Flow,
    Plan,
    ProcessManager,
    Refused,
    Resume,
    RunEnded,
    answer,
    foreign,
    into_outbox,
)
from intersession_events import facts, ids
from intersession_events.crash_points import crash_point
from intersession_events.log import Recorded, StreamAppend

_DECIDING: dict[Phase, str] = {"primary": "S8", "turn": "K4"}
"""Crash points where a run of the exchange has ended and nothing is decided on it, by phase."""

ExchangeFlow = Flow[Exchange, ExchangeCommand]


class Coordinator(ProcessManager[Exchange, ExchangeCommand]):
    """One actor for all exchanges."""

    def takes(self, message: object) -> TypeGuard[ExchangeCommand]:
        """Whether this is a command to an exchange."""
        return isinstance(message, ExchangeCommand)

    def evolve(self, state: Exchange | None, recorded: Recorded) -> Exchange:
        """Apply one recorded event."""
        event = recorded.event
        if not isinstance(event, facts.ExchangeEvent):
            raise foreign(recorded)
        return evolve(state, event)

    def is_over(self, state: Exchange) -> bool:
        """Whether the exchange is closed."""
        return state.phase == "closed"

    def act(self, stream: str, state: Exchange, recorded: Recorded) -> None:
        """Do nothing but die where a test wants it: runs are queued and deliveries decided in the append of the step."""
        del stream, state
        event = recorded.event
        if isinstance(event, facts.LoopEnded):
            crash_point("K6")
        elif isinstance(event, facts.AnnounceDecided) and event.text is None:
            crash_point("A4")

    def decide(self, flow: ExchangeFlow, command: ExchangeCommand) -> Plan | Refused | None:
        """Decide the next step of an exchange."""
        match command:
            case OpenExchange():
                return self._open(flow, command)
            case RunEnded() | DeliveryEnded():
                return self._after(flow, command)
            case Resume():
                return self._resume(flow, command)
            case _:
                assert_never(command)

    def refuse(self, command: ExchangeCommand, refused: Refused) -> None:
        """Tell whoever waits, and give back the run that will not be."""
        if isinstance(command, OpenExchange):
            root, run_id = command.budget.root, command.accepted.run_id
            self.world.chains.release(root, run_id, by=command.stream)
        super().refuse(command, refused)

    # --- the beginning

    def _open(self, flow: ExchangeFlow, command: OpenExchange) -> Plan | Refused | None:
        if flow.state is not None:
            # The same key raced with itself: one of the two was first (SEND-11).
            if flow.state.accepted.request_digest != command.accepted.request_digest:
                return Refused(
                    code="idempotency_conflict",
                    error="idempotencyKey: it was used for another message, use a new key",
                )
            answer(command, Accepted(recorded=(), again=True))
            return None
        budget, accepted, chains = command.budget, command.accepted, self.world.chains
        tripped = chains.reserve(budget, accepted.run_id, self.world.now_of(budget), by=flow.stream)
        if tripped is not None:
            return Refused(code="limit", error=tripped.told("sessionKey"), tripped=tripped)
        spent = chains.spent(budget.root, besides=flow.stream)
        accepted = msgspec.structs.replace(
            accepted,
            budget=budget,
            chain=budget.path,
            hops=budget.hops,
            root=budget.root,
            chain_started_ms=budget.started_ms,
            chain_runs=spent.runs,
            chain_tokens=spent.tokens,
            chain_cost_micros=spent.cost_micros,
        )
        return Plan(
            events=(accepted,),
            through=lambda appends: primary_step(command, appends, self._now()),
            cause=command.causation,
            correlation=command.budget.root,
        )

    # --- after a run or a delivery

    def _resume(self, flow: ExchangeFlow, command: Resume) -> Plan | None:
        state = flow.state
        if state is None:
            return None
        ended = next((ended for ended in command.ended if ended.awaited == state.pending), None)
        return self._after(flow, ended) if ended is not None else None

    def _after(self, flow: ExchangeFlow, outcome: RunEnded | DeliveryEnded) -> Plan | None:
        state = flow.state
        behind = outcome.behind if isinstance(outcome, RunEnded) else None
        if state is None or (behind is not None and behind.has_failed):
            return None
        if state.phase in _DECIDING and behind is None:
            crash_point(_DECIDING[state.phase])
        events = self._decided(flow, state, outcome)
        if not events:
            if behind is not None:
                behind.hurry()
            return None
        after = state
        for event in events:
            after = evolve(after, event)
        crash_point("K5")
        plan = Plan(events=tuple(events), behind=behind, cause=outcome.cause, correlation=state.budget.root)
        return self._carried_on(plan, after, events[-1], outcome)

    def _decided(
        self, flow: ExchangeFlow, state: Exchange, outcome: RunEnded | DeliveryEnded
    ) -> list[facts.ExchangeEvent]:
        """Decide, and reserve the run that is asked for; where another branch of the chain was faster, decide again."""
        while True:
            events = decide(state, outcome, self._circumstances(flow, state))
            last = events[-1] if events else None
            if not isinstance(last, facts.TurnRequested | facts.AnnounceRequested):
                return events
            now = self.world.now_of(state.budget)
            tripped = self.world.chains.reserve(state.budget, last.run_id, now, by=flow.stream)
            if tripped is None:
                return events

    def _carried_on(
        self, plan: Plan, after: Exchange, last: facts.ExchangeEvent, outcome: RunEnded | DeliveryEnded
    ) -> Plan:
        """Add to the plan what the last event asks for: a run of a session, or a text for the outbox."""
        if isinstance(last, facts.TurnRequested):
            return plan.sent_through(lambda appends: turn_step(after, last, appends, self._now()))
        if isinstance(last, facts.AnnounceRequested):
            return plan.sent_through(lambda appends: announce_step(after, last, appends, self._now()))
        if isinstance(last, facts.AnnounceDecided) and last.delivery_id is not None and last.text is not None:
            return msgspec.structs.replace(
                plan, carried=(self._delivery(after, last.delivery_id, last.text, outcome),)
            )
        return plan

    def _delivery(
        self, state: Exchange, delivery_id: str, text: str, outcome: RunEnded | DeliveryEnded
    ) -> StreamAppend:
        accepted = state.accepted
        route = self.world.announce_route(accepted)
        if route is None:  # the rules decided a delivery because there was a route
            raise RuntimeError(f"exchange {accepted.exchange_id} lost its route")
        decided = facts.DeliveryDecided(
            delivery_id=delivery_id,
            session_key=accepted.target,
            route=route,
            text=text,
            key=delivery_id,
            purpose="announce",
            run_id=outcome.run_id if isinstance(outcome, RunEnded) else None,
            owner=ids.exchange_stream(accepted.exchange_id),
        )
        return into_outbox(
            self.world.log.log_id, decided, budget=state.budget, time=self._now(), causation=outcome.cause
        )

    def _circumstances(self, flow: ExchangeFlow, state: Exchange) -> Circumstances:
        accepted = state.accepted
        return Circumstances(
            log_id=self.world.log.log_id,
            now_ms=self.world.now_of(state.budget),
            requester_has_agent=self._has_agent(accepted.requester),
            has_route=self.world.announce_route(accepted) is not None,
            refused=dict(flow.refused),
            spent=self.world.chains.spent(state.budget.root, besides=flow.stream),
        )

    def _has_agent(self, key: str | None) -> bool:
        return key is not None and self.world.agents.has(self.world.agent_of(key))

    def _now(self) -> int:
        return self.world.clock.now_ms()
