"""The coordinator: drives each exchange through primary run, reply-back loop and announce (LOOP, ANN).

Its whole state is the exchanges' streams; after a restart it is told `Resume` for each that is open and carries on.
"""

from collections.abc import Callable

from intersession_actors.exchange import rules as exchange_rules
from intersession_actors.exchange.chain_meter import ChainMeter
from intersession_actors.exchange.commands import OpenExchange
from intersession_actors.exchange.rules import Exchange, Facts, Phase
from intersession_actors.exchange.steps import announce_step, primary_step, turn_step
from intersession_actors.policy import ChainSoFar, Tripped, check_turn
from intersession_actors.session import Enqueue
from intersession_actors.streams import (
    Accepted,
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
    DeliveryDecided,
    ExchangeAccepted,
    LoopEnded,
    TurnRequested,
)
from intersession_events.log import Recorded, StreamAppend


class Coordinator(ProcessManager[Exchange]):
    """One actor for all exchanges."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._meter = ChainMeter()

    def stream_of(self, command: Command) -> str:
        """Return the exchange a command is about."""
        if isinstance(command, OpenExchange):
            return ids.exchange_stream(command.accepted.exchange_id)
        return super().stream_of(command)

    def begins(self, command: Command) -> bool:
        """Only an accepted send begins an exchange."""
        return isinstance(command, OpenExchange)

    def evolve(self, state: Exchange | None, recorded: Recorded) -> Exchange:
        """Apply one recorded event."""
        after = exchange_rules.evolve(state, recorded.event)
        self._meter.note(after.accepted, recorded.event)
        return after

    def is_over(self, state: Exchange) -> bool:
        """Whether the exchange is closed."""
        return state.phase == "closed"

    def act(self, stream: str, state: Exchange, recorded: Recorded) -> None:
        """Do nothing but die where a test wants it: runs are queued and deliveries decided in the append of the step."""
        del stream, state
        match recorded.event:
            case LoopEnded():
                crash_point("K6")
            case AnnounceDecided(text=None):
                crash_point("A4")
            case _:
                pass

    def plan(self, flow: Flow[Exchange], command: Command) -> Plan | Refused | None:
        """Decide the next step of an exchange."""
        match command:
            case OpenExchange():
                return self._open(flow, command)
            case RunEnded() | DeliveryEnded():
                return self._after(flow, command)
            case Resume():
                return self._resume(flow, command)
            case _:
                return None

    def _open(self, flow: Flow[Exchange], command: OpenExchange) -> Plan | Refused | None:
        if flow.state is not None:
            # The same key raced with itself: one of the two was first (SEND-11).
            if flow.state.accepted.request_digest != command.accepted.request_digest:
                return Refused(
                    code="idempotency_conflict",
                    error="idempotencyKey: it was used for another message, use a new key",
                )
            if command.answer is not None:
                command.answer(Accepted(recorded=(), again=True))
            return None

        tripped = self._guarded(command.accepted)
        if tripped is not None:
            return Refused(code="limit", error=tripped.error, limit=tripped.setting, value=tripped.value)

        def through(appends: tuple[StreamAppend, ...]) -> tuple[str, Enqueue]:
            return primary_step(command, appends, self._now())

        return Plan(
            events=(command.accepted,),
            through=through,
            cause=command.causation,
            correlation=command.correlation,
        )

    def _guarded(self, accepted: ExchangeAccepted) -> Tripped | None:
        """Count the exchange's first run, unless its chain has no more to give (LOOP-5)."""
        spent = self._meter.of(accepted)
        so_far = ChainSoFar(
            runs=max(spent.runs, accepted.chain_runs),
            tokens=max(spent.tokens, accepted.chain_tokens),
            cost_micros=max(spent.cost_micros, accepted.chain_cost_micros),
            started_ms=accepted.chain_started_ms or None,
        )
        tripped = check_turn(accepted.settings.limits, so_far, self._now())
        if tripped is None:
            spent.ask(accepted.run_id)
        return tripped

    def refuse(self, command: Command, refused: Refused) -> None:
        """Tell whoever waits; a run that was refused is not counted."""
        if isinstance(command, OpenExchange):
            self._meter.of(command.accepted).take_back(command.accepted.run_id)
        super().refuse(command, refused)

    def _resume(self, flow: Flow[Exchange], command: Resume) -> Plan | Refused | None:
        state = flow.state
        for ended in command.ended:
            if state is not None and state.pending in {
                getattr(ended, "run_id", None),
                getattr(ended, "delivery_id", None),
            }:
                return self._after(flow, ended)
        return None

    def _after(self, flow: Flow[Exchange], outcome: RunEnded | DeliveryEnded) -> Plan | None:
        state = flow.state
        if state is None:
            return None
        if state.phase in _DECIDING:
            crash_point(_DECIDING[state.phase])
        events = exchange_rules.decide(state, outcome, self._facts(flow))
        if not events:
            return None
        after = state
        accepted = state.accepted
        for event in events:
            after = exchange_rules.evolve(after, event)
            # Counted from here on, not from when it is recorded: other branches decide meanwhile.
            self._meter.note(accepted, event)
        crash_point("K5")
        plan = Plan(events=tuple(events), cause=outcome.cause, correlation=accepted.root)
        last = events[-1]
        match last:
            case TurnRequested():
                return _with(plan, lambda appends: turn_step(after, last, appends, self._now()))
            case AnnounceRequested():
                return _with(plan, lambda appends: announce_step(after, last, appends, self._now()))
            case AnnounceDecided(delivery_id=str() as delivery_id, text=str() as text):
                return Plan(
                    events=plan.events,
                    carried=self._delivery(after, delivery_id, text, outcome),
                    cause=plan.cause,
                    correlation=plan.correlation,
                )
            case _:
                return plan

    def _delivery(
        self, state: Exchange, delivery_id: str, text: str, outcome: RunEnded | DeliveryEnded
    ) -> tuple[StreamAppend, ...]:
        route = self.world.announce_route(state.accepted)
        if route is None:  # the rules decided a delivery because there was a route
            raise RuntimeError(f"exchange {state.accepted.exchange_id} lost its route")
        decided = DeliveryDecided(
            delivery_id=delivery_id,
            session_key=state.accepted.target,
            route=route,
            text=text,
            key=delivery_id,
            purpose="announce",
            run_id=getattr(outcome, "run_id", None),
            owner=ids.exchange_stream(state.accepted.exchange_id),
        )
        return (
            append_of(
                self.world.log.log_id,
                ids.delivery_stream(delivery_id),
                0,
                (decided,),
                time=self._now(),
                causation=outcome.cause,
                correlation=state.accepted.root,
            ),
        )

    def _facts(self, flow: Flow[Exchange]) -> Facts:
        accepted = flow.state.accepted if flow.state is not None else None
        spent = self._meter.of(accepted) if accepted is not None else None
        return Facts(
            log_id=self.world.log.log_id,
            now_ms=self._now(),
            requester_has_agent=accepted is not None and self._has_agent(accepted.requester),
            has_route=accepted is not None and self.world.announce_route(accepted) is not None,
            refused=dict(flow.refused),
            chain_runs=spent.runs if spent is not None else 0,
            chain_tokens=spent.tokens if spent is not None else 0,
            chain_cost_micros=spent.cost_micros if spent is not None else 0,
        )

    def _has_agent(self, key: str | None) -> bool:
        return key is not None and self.world.agents.has(self.world.agent_of(key))

    def _now(self) -> int:
        return self.world.clock.now_ms()


_DECIDING: dict[Phase, str] = {"primary": "S8", "turn": "K4"}
"""Crash points where a run of the exchange has ended and nothing is decided on it, by phase."""

Through = Callable[[tuple[StreamAppend, ...]], tuple[str, Command]]


def _with(plan: Plan, through: Through) -> Plan:
    return Plan(events=plan.events, through=through, cause=plan.cause, correlation=plan.correlation)
