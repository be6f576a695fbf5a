"""The coordinator: drives each exchange through primary run, reply-back loop and announce (LOOP, ANN).

Its whole state is the exchanges' streams; after a restart it is told `Resume` for each that is open and carries on.
"""

from typing import TypeGuard, assert_never

import msgspec

from intersession_actors.exchange.chain_meter import ChainMeter
from intersession_actors.exchange.commands import ExchangeCommand, OpenExchange
from intersession_actors.exchange.rules import Circumstances, Exchange, Phase, chain_of, decide, evolve
from intersession_actors.exchange.steps import announce_step, primary_step, turn_step
from intersession_actors.policy import Tripped, check_turn, fullest
from intersession_actors.streams import (
    Accepted,
    DeliveryEnded,
    Flow,
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
from intersession_events import ids
from intersession_events.crash_points import crash_point
from intersession_events.facts import (
    AnnounceDecided,
    AnnounceRequested,
    DeliveryDecided,
    ExchangeAccepted,
    ExchangeEvent,
    LoopEnded,
    TurnRequested,
)
from intersession_events.log import Recorded, StreamAppend

_DECIDING: dict[Phase, str] = {"primary": "S8", "turn": "K4"}
"""Crash points where a run of the exchange has ended and nothing is decided on it, by phase."""

ExchangeFlow = Flow[Exchange, ExchangeCommand]


class Coordinator(ProcessManager[Exchange, ExchangeCommand]):
    """One actor for all exchanges."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._meter = ChainMeter()

    def takes(self, message: object) -> TypeGuard[ExchangeCommand]:
        """Whether this is a command to an exchange."""
        return isinstance(message, ExchangeCommand)

    def evolve(self, state: Exchange | None, recorded: Recorded) -> Exchange:
        """Apply one recorded event."""
        event = recorded.event
        if not isinstance(event, ExchangeEvent):
            raise foreign(recorded)
        after = evolve(state, event)
        self._meter.note(after.accepted, event)
        return after

    def is_over(self, state: Exchange) -> bool:
        """Whether the exchange is closed."""
        return state.phase == "closed"

    def act(self, stream: str, state: Exchange, recorded: Recorded) -> None:
        """Do nothing but die where a test wants it: runs are queued and deliveries decided in the append of the step."""
        del stream, state
        event = recorded.event
        if isinstance(event, LoopEnded):
            crash_point("K6")
        elif isinstance(event, AnnounceDecided) and event.text is None:
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
        """Tell whoever waits; a run that was refused is not counted."""
        if isinstance(command, OpenExchange):
            self._meter.of(command.accepted).take_back(command.accepted.run_id)
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
        tripped = self._guarded(command.accepted)
        if tripped is not None:
            return Refused(code="limit", error=tripped.error, limit=tripped.setting, value=tripped.value)
        return Plan(
            events=(command.accepted,),
            through=lambda appends: primary_step(command, appends, self._now()),
            cause=command.causation,
            correlation=command.correlation,
        )

    def _guarded(self, accepted: ExchangeAccepted) -> Tripped | None:
        """Count the exchange's first run, unless its chain has no more to give (LOOP-5)."""
        spent = self._meter.of(accepted)
        so_far = fullest(chain_of(accepted), spent.so_far)
        tripped = check_turn(accepted.settings.limits, so_far, self._now())
        if tripped is None:
            spent.ask(accepted.run_id)
        return tripped

    # --- after a run or a delivery

    def _resume(self, flow: ExchangeFlow, command: Resume) -> Plan | None:
        state = flow.state
        if state is None:
            return None
        ended = next((ended for ended in command.ended if ended.awaited == state.pending), None)
        return self._after(flow, ended) if ended is not None else None

    def _after(self, flow: ExchangeFlow, outcome: RunEnded | DeliveryEnded) -> Plan | None:
        state = flow.state
        if state is None:
            return None
        if state.phase in _DECIDING:
            crash_point(_DECIDING[state.phase])
        events = decide(state, outcome, self._circumstances(flow, state))
        if not events:
            return None
        after = self._foreseen(state, events)
        crash_point("K5")
        plan = Plan(events=tuple(events), cause=outcome.cause, correlation=state.accepted.root)
        return self._carried_on(plan, after, events[-1], outcome)

    def _foreseen(self, state: Exchange, events: list[ExchangeEvent]) -> Exchange:
        """Return the state after events that are about to be recorded.

        Their runs are counted from here on, not from when they are recorded: other branches of the chain decide meanwhile.
        """
        for event in events:
            state = evolve(state, event)
            self._meter.note(state.accepted, event)
        return state

    def _carried_on(
        self, plan: Plan, after: Exchange, last: ExchangeEvent, outcome: RunEnded | DeliveryEnded
    ) -> Plan:
        """Add to the plan what the last event asks for: a run of a session, or a text for the outbox."""
        if isinstance(last, TurnRequested):
            return plan.sent_through(lambda appends: turn_step(after, last, appends, self._now()))
        if isinstance(last, AnnounceRequested):
            return plan.sent_through(lambda appends: announce_step(after, last, appends, self._now()))
        if isinstance(last, AnnounceDecided) and last.delivery_id is not None and last.text is not None:
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
        decided = DeliveryDecided(
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
            self.world.log.log_id,
            decided,
            time=self._now(),
            causation=outcome.cause,
            correlation=accepted.root,
        )

    def _circumstances(self, flow: ExchangeFlow, state: Exchange) -> Circumstances:
        accepted = state.accepted
        return Circumstances(
            log_id=self.world.log.log_id,
            now_ms=self._now(),
            requester_has_agent=self._has_agent(accepted.requester),
            has_route=self.world.announce_route(accepted) is not None,
            refused=dict(flow.refused),
            chain=self._meter.of(accepted).so_far,
        )

    def _has_agent(self, key: str | None) -> bool:
        return key is not None and self.world.agents.has(self.world.agent_of(key))

    def _now(self) -> int:
        return self.world.clock.now_ms()
