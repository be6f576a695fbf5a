"""The coordinator: drives each exchange through primary run, reply-back loop and announce (LOOP, ANN).

Its whole state is the exchanges' streams; after a restart it is told `Resume` for each that is open and carries on.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeGuard, assert_never

import msgspec

from intersession_actors.chains import Cause
from intersession_actors.exchange.commands import (
    ExchangeCommand,
    HoldExchange,
    HoldRuled,
    OpenExchange,
    ReleaseExchange,
    StopAsking,
)
from intersession_actors.exchange.exchange import Exchange, Phase
from intersession_actors.exchange.holds import decide_hold, decide_release, may_hold
from intersession_actors.exchange.records import inputs_of, knew_of
from intersession_actors.exchange.rules import Circumstances, Command, Gone, decide, decide_open, evolve
from intersession_actors.exchange.steps import announce_step, primary_step, turn_step
from intersession_actors.gate import word_of
from intersession_actors.holding import GoingOn, Ruling
from intersession_actors.policy import HoldOrder
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
    present,
    spent_of,
)
from intersession_events import facts, ids
from intersession_events.crash_points import crash_point
from intersession_events.log import InFlight, Recorded, StreamAppend
from intersession_events.plain_json import JsonObject

_DECIDING: dict[Phase, str] = {"primary": "S8", "turn": "K4"}
"""Crash points where a run of the exchange has ended and nothing is decided on it, by phase."""

ExchangeFlow = Flow[Exchange, ExchangeCommand]


_ASKED: Final = HoldOrder(source="rule", before="every-turn", by="rule", order="rule")
"""Stands for the host's rule until it has said something: what would be held by it is what it is asked about."""


class _Ruling(NamedTuple):
    """A text about which the host's rule is asked: the hold that it would be, what came in, and whether the rule has spoken."""

    hold_id: str
    outcome: RunEnded
    is_given: bool = False


class _Decided(NamedTuple):
    """What a decision was asked, what it knew, and the events that it comes to."""

    command: Command
    now: Circumstances
    events: list[facts.ExchangeEvent]


class Coordinator(ProcessManager[Exchange, ExchangeCommand]):
    """One actor for all exchanges."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._rulings: dict[str, _Ruling] = {}
        """Exchanges about which the host's rule is asked. What it said is needed until that is durable: a session may refuse the step."""

    def takes(self, message: object) -> TypeGuard[ExchangeCommand]:
        """Whether this is a command to an exchange."""
        return isinstance(message, ExchangeCommand)

    def evolve(self, state: Exchange | None, recorded: Recorded) -> Exchange:
        """Apply one recorded event."""
        event = recorded.event
        if not isinstance(event, facts.ExchangeEvent):
            raise foreign(recorded)
        return evolve(
            state, self.world.accepted_as(event) if isinstance(event, facts.ExchangeAccepted) else event
        )

    def inputs(self, command: ExchangeCommand) -> JsonObject:
        """Return what a decision record says of a command beside its name."""
        return inputs_of(command)

    def is_over(self, state: Exchange) -> bool:
        """Whether the exchange is closed."""
        return state.phase == "closed"

    def act(self, stream: str, state: Exchange, recorded: Recorded) -> None:
        """Let go of a hold that is over, and die where a test wants it: what follows is in the append of the step."""
        event = recorded.event
        if not isinstance(event, facts.HoldRequested | facts.HoldWithdrawn):
            self._rulings.pop(stream, None)
        if isinstance(event, facts.LoopEnded):
            crash_point("K6")
        elif isinstance(event, facts.ExchangeReleased):
            self.world.stopwatch.forget("held", event.hold_id)
        elif isinstance(event, facts.ExchangeClosed):
            self._unwatch(state.accepted)
        elif isinstance(event, facts.AnnounceDecided) and event.text is None:
            crash_point("A4")

    def decide(self, flow: ExchangeFlow, command: ExchangeCommand) -> Plan | Refused | None:
        """Decide the next step of an exchange."""
        match command:
            case OpenExchange():
                return self._open(flow, command)
            case RunEnded() | DeliveryEnded():
                return self._after(flow, command)
            case HoldExchange():
                return self._hold(flow, command)
            case ReleaseExchange():
                return self._release(flow, command)
            case HoldRuled():
                return self._ruled(flow, command)
            case StopAsking():
                return self._stop_asking(flow, command)
            case Resume():
                return self._resume(flow, command)
            case _:
                assert_never(command)

    def refuse(self, command: ExchangeCommand, refused: Refused) -> None:
        """Tell whoever waits, and give back the run that will not be."""
        if isinstance(command, OpenExchange):
            root, run_id = command.budget.root, command.accepted.run_id
            self.world.chains.release(root, run_id, by=command.stream)
            flow = self._flows.get(command.stream)
            if flow is None or flow.state is None:
                self._unwatch(command.accepted)
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
        self._watch(accepted)
        return Plan(
            events=(decide_open(accepted, budget, spent),),
            knew=present({"spent": spent_of(spent)}),
            through=lambda appends: primary_step(command, appends, self._now()),
            cause=command.causation,
            correlation=command.budget.root,
        )

    # --- after a run or a delivery

    def _resume(self, flow: ExchangeFlow, command: Resume) -> Plan | None:
        state = flow.state
        if state is None:
            return None
        self._watch(state.accepted)
        if state.phase == "released":
            return self._go_on(flow, state, command)
        ended = next((ended for ended in command.ended if ended.awaited == state.pending), None)
        return self._after(flow, ended) if ended is not None else None

    def _after(
        self, flow: ExchangeFlow, outcome: RunEnded | DeliveryEnded, ruling: Ruling | None = None
    ) -> Plan | None:
        state = flow.state
        behind = outcome.behind if isinstance(outcome, RunEnded) else None
        if state is None or (behind is not None and behind.has_failed):
            return None
        if state.phase in _DECIDING and behind is None:
            crash_point(_DECIDING[state.phase])
        decided = self._decided(flow, state, outcome, ruling)
        if not decided.events:
            if behind is not None:
                behind.hurry()
            return None
        if (
            isinstance(outcome, RunEnded)
            and ruling is None
            and self._asks_rule(flow, state, outcome, decided.events)
        ):
            return None
        crash_point("K5")
        return self._carried_on(state, decided, outcome.cause, behind)

    def _decided(
        self,
        flow: ExchangeFlow,
        state: Exchange,
        command: Command,
        ruling: Ruling | None = None,
    ) -> _Decided:
        """Decide, and reserve the run that is asked for; where another branch of the chain was faster, decide again."""
        while True:
            now = self._circumstances(flow, state, ruling)
            events = decide(state, command, now)
            budget = _evolved(state, events).budget
            last = events[-1] if events else None
            if not isinstance(last, facts.TurnRequested | facts.AnnounceRequested):
                return _Decided(command, now, events)
            tripped = self.world.chains.reserve(
                budget, last.run_id, self.world.now_of(budget), by=flow.stream
            )
            if tripped is None:
                return _Decided(command, now, events)

    # --- holds

    def _hold(self, flow: ExchangeFlow, command: HoldExchange) -> Plan | Refused | None:
        state = flow.state
        if state is None:
            return None
        events = decide_hold(state, command)
        if isinstance(events, Refused):
            return events
        return Plan(events=tuple(events), correlation=state.budget.root)

    def _release(self, flow: ExchangeFlow, command: ReleaseExchange) -> Plan | Refused | None:
        state = flow.state
        if state is None:
            return None
        refused = decide_release(state, command, 0)
        if isinstance(refused, Refused):
            return refused
        if not refused:
            return Plan(events=())
        decided = self._decided(flow, state, command)
        was_held = isinstance(next(iter(decided.events), None), facts.ExchangeReleased)
        # A release goes on with what was held, so that causes lead on to what was said (WHY-1).
        cause = flow.cause if was_held else None
        return self._carried_on(state, decided, cause)

    def _go_on(self, flow: ExchangeFlow, state: Exchange, command: Resume) -> Plan | None:
        """Go on from a release that nothing followed yet: the agent that the next turn needs was not here, or this process was not."""
        decided = self._decided(flow, state, command)
        return self._carried_on(state, decided, flow.cause) if decided.events else None

    def _asks_rule(
        self, flow: ExchangeFlow, state: Exchange, outcome: RunEnded, events: Sequence[facts.ExchangeEvent]
    ) -> bool:
        """Ask the host's rule about a text, if it is to be asked; what came in is decided upon once it has spoken."""
        held, rule, tell = events[-1], self.world.holds.rule, self.world.tell_flow
        if rule is None or not isinstance(held, facts.ExchangeHeld) or held.source != "rule":
            return False
        stream, hold_id, accepted = flow.stream, held.hold_id, state.accepted
        before = self._rulings.get(stream)
        self._rulings[stream] = _Ruling(hold_id, outcome)
        if before is not None and before.hold_id == hold_id and not before.is_given:
            return True
        route = self.world.rules.announce_route(accepted)
        going = GoingOn(
            run_id=accepted.run_id,
            exchange_id=accepted.exchange_id,
            step=held.step,
            text=held.text,
            speaker=held.speaker,
            to=held.to,
            channel=route.channel if held.step == "announce" and route is not None else None,
            turn=held.turn,
            requester=accepted.requester,
            target=accepted.target,
            request=accepted.message,
        )
        rule.rules_on(
            hold_id,
            stream,
            going,
            lambda ruling: tell(stream, HoldRuled(stream=stream, hold_id=hold_id, ruling=ruling)),
            inside=Cause(
                session_key=held.speaker,
                budget=state.budget,
                event=outcome.cause,
                clock=self.world.clock,
            ).inside,
        )
        return True

    def _ruled(self, flow: ExchangeFlow, command: HoldRuled) -> Plan | None:
        asked = self._rulings.get(flow.stream)
        if asked is None or asked.hold_id != command.hold_id:
            return None
        self._rulings[flow.stream] = asked._replace(is_given=True)
        return self._after(flow, asked.outcome, command.ruling)

    def _stop_asking(self, flow: ExchangeFlow, command: StopAsking) -> Plan:
        asked, ended, state = self._rulings.get(flow.stream), command.ended, flow.state
        if asked is not None:
            self._rulings[flow.stream], ended = asked._replace(is_given=True), asked.outcome
        elif ended is None or state is None or state.pending != ended.awaited:
            return Plan(events=())
        note = word_of(f"{command.by} stopped it before the host's rule had spoken")
        plan = self._after(flow, ended, Ruling(holds=True, note=note)) or Plan(events=())
        # What leads to no text that could be held goes on when the flow hears of it.
        is_held = isinstance(next(reversed(plan.events), None), facts.ExchangeHeld)
        return plan if asked is not None or is_held else Plan(events=())

    def _orders(self, state: Exchange, ruling: Ruling | None) -> tuple[HoldOrder, ...]:
        accepted, holds = state.accepted, self.world.holds
        orders = holds.sessions.orders(accepted.requester, accepted.target)
        if holds.rule is None or (ruling is not None and not ruling.holds):
            return orders
        order = _ASKED if ruling is None else msgspec.structs.replace(_ASKED, note=ruling.note)
        return (*orders, order)

    # --- what follows

    def _carried_on(
        self,
        state: Exchange,
        decided: _Decided,
        cause: str | None,
        behind: InFlight | None = None,
    ) -> Plan:
        """Return the plan of some events, with what the last one asks for: a run of a session, or a text for the outbox."""
        events = decided.events
        after = _evolved(state, events)
        last = events[-1] if events else None
        plan = Plan(
            events=tuple(events),
            behind=behind,
            cause=cause,
            correlation=state.budget.root,
            asked=decided.command,
            knew=knew_of(state, decided.now),
        )
        if isinstance(last, facts.ExchangeHeld):
            self.world.stopwatch.begin("held", last.hold_id, at=self.world.clock.monotonic())
        if isinstance(last, facts.TurnRequested):
            return plan.sent_through(lambda appends: turn_step(after, last, appends, self._now()))
        if isinstance(last, facts.AnnounceRequested):
            return plan.sent_through(lambda appends: announce_step(after, last, appends, self._now()))
        if isinstance(last, facts.AnnounceDecided) and last.delivery_id is not None and last.text is not None:
            # What was held is decided at its release: that is what leads to the text, not what was held.
            return msgspec.structs.replace(
                plan,
                carried=(self._delivery(after, last, last.delivery_id, last.text, cause),),
                carried_by_last=isinstance(events[0], facts.ExchangeReleased),
            )
        return plan

    def _delivery(
        self,
        state: Exchange,
        announced: facts.AnnounceDecided,
        delivery_id: str,
        text: str,
        cause: str | None,
    ) -> StreamAppend:
        accepted = state.accepted
        route = self.world.rules.announce_route(accepted)
        if route is None:  # the rules decided a delivery because there was a route
            raise RuntimeError(f"exchange {accepted.exchange_id} lost its route")
        decided = facts.DeliveryDecided(
            delivery_id=delivery_id,
            session_key=accepted.target,
            route=route,
            text=text,
            key=delivery_id,
            purpose="announce",
            run_id=announced.run_id,
            owner=ids.exchange_stream(accepted.exchange_id),
        )
        return into_outbox(
            self.world.log.log_id, decided, budget=state.budget, time=self._now(), causation=cause
        )

    def _circumstances(
        self, flow: ExchangeFlow, state: Exchange, ruling: Ruling | None = None
    ) -> Circumstances:
        accepted, held, orders = state.accepted, state.held, self._orders(state, ruling)
        held_ms = 0
        if held is not None and state.phase == "held":
            held_ms = self.world.stopwatch.elapsed_ms("held", held.hold_id, since_ms=held.since_ms)
        known = Circumstances(
            log_id=self.world.log.log_id,
            refused=dict(flow.refused),
            orders=orders,
            wall_ms=self._now() if orders or may_hold(state) else 0,
            held_ms=held_ms,
        )
        # What nothing that can follow looks at is not asked: a decision record names all that was known.
        if state.phase == "delivery":
            return Circumstances(log_id=known.log_id)
        if state.is_announcing:
            has_route = self.world.rules.announce_route(accepted) is not None
            return msgspec.structs.replace(known, has_route=has_route)
        return msgspec.structs.replace(
            known,
            now_ms=self.world.now_of(state.budget),
            requester_has_agent=accepted.requester is None or self._has_agent(accepted.requester),
            spent=self.world.chains.spent(state.budget.root, besides=flow.stream),
            gone=self._gone(accepted),
        )

    def _gone(self, accepted: facts.ExchangeAccepted) -> tuple[Gone, ...]:
        """Return who of the two is not there any more, as it was when the exchange began."""
        is_over, found = self.world.generations.is_over, list[Gone]()
        if is_over(accepted.target, accepted.target_session_id):
            found.append("target_gone")
        requester, session_id = accepted.requester, accepted.requester_session_id
        if requester is not None and session_id is not None and is_over(requester, session_id):
            found.append("requester_gone")
        return tuple(found)

    def _watch(self, accepted: facts.ExchangeAccepted) -> None:
        generations, stream = self.world.generations, ids.exchange_stream(accepted.exchange_id)
        generations.watch(accepted.target, by=stream)
        if accepted.requester is not None:
            generations.watch(accepted.requester, by=stream)

    def _unwatch(self, accepted: facts.ExchangeAccepted) -> None:
        for key in (accepted.target, accepted.requester):
            if key is not None:
                self.world.generations.unwatch(key, by=ids.exchange_stream(accepted.exchange_id))

    def _has_agent(self, key: str) -> bool:
        if self.world.log.forked is not None:
            return True  # a fork waits for the agents that it is not given: it ends nothing that had an agent (FORK-4)
        return self.world.agents.has(self.world.agent_of(key))

    def _now(self) -> int:
        return self.world.clock.now_ms()


def _evolved(state: Exchange, events: Sequence[facts.ExchangeEvent]) -> Exchange:
    for event in events:
        state = evolve(state, event)
    return state
