"""The coordinator: drives each exchange through primary run, reply-back loop and announce (LOOP, ANN).

Its whole state is the exchanges' streams; after a restart it is told `Resume` for each that is open and carries on.
"""

from collections.abc import Sequence
from functools import partial, reduce
from typing import Final, NamedTuple, assert_never, cast

import msgspec

from intersession_actors.outside.agents.runners import runner_of
from intersession_actors.owners.chains.cause import CausedBy
from intersession_actors.owners.exchange.commands import (
    ExchangeCommand,
    HoldExchange,
    HoldRuled,
    OpenExchange,
    ReleaseExchange,
    StopAsking,
)
from intersession_actors.owners.exchange.effects import ForgetRuling, LookForAgent, UnwatchSessions
from intersession_actors.owners.exchange.exchange import Exchange, Phase
from intersession_actors.owners.exchange.holds import may_hold
from intersession_actors.owners.exchange.records import RULES
from intersession_actors.owners.exchange.rules import Circumstances, Gone, decide_open, evolve
from intersession_actors.owners.exchange.steps import announced_text, primary_step, step_asked
from intersession_actors.owners.flows.leader import Decided, Leader
from intersession_actors.owners.flows.process_manager import Flow
from intersession_actors.owners.streams.commands import Accepted, DeliveryEnded, Refused, Resume, RunEnded
from intersession_actors.owners.streams.effects import Effect, Plan, Through
from intersession_actors.owners.streams.owner import Owner
from intersession_actors.owners.streams.texts import RunTexts
from intersession_actors.owners.streams.world import World
from intersession_actors.rules.gate.texts import word_of
from intersession_actors.rules.policy.holding import GoingOn, HoldOrder, Ruling
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.basics.crash_points import crash_point
from intersession_events.log.recorded import Recorded

_DECIDING: dict[Phase, str] = {"primary": "S8", "turn": "K4"}
"""Crash points where a run of the exchange has ended and nothing is decided on it, by phase."""

ExchangeFlow = Flow[Exchange, ExchangeCommand]
ExchangeDecided = Decided[Exchange, ExchangeCommand, Circumstances]


_ASKED: Final = HoldOrder(source="rule", before="every-turn", by="rule", order="rule")
"""Stands for the host's rule until it has said something: what would be held by it is what it is asked about."""


class _Ruling(NamedTuple):
    """A text about which the host's rule is asked: its possible hold, the pending command, and the rule's verdict."""

    hold_id: str
    outcome: RunEnded
    is_given: bool = False


class Coordinator(Leader[Exchange, ExchangeCommand, Circumstances]):
    """One actor for all exchanges."""

    asks_with = "message"
    guards = "sessionKey"

    def __init__(self, world: World) -> None:
        super().__init__(world, RULES)
        self._rulings: dict[str, _Ruling] = {}
        """Exchanges about which the host's rule is asked. What it said is needed until that is durable: a session may refuse the step."""

    def evolve(self, state: Exchange | None, recorded: Recorded) -> Exchange:
        """Apply one recorded event; in a fork, the fork's settings apply to the exchange."""
        after = super().evolve(state, recorded)
        if state is not None:
            return after
        return msgspec.structs.replace(after, accepted=self.world.fork.accepted_as(after.accepted))

    def is_over(self, state: Exchange) -> bool:
        """Whether the exchange is closed."""
        return state.phase == "closed"

    def act(self, owner: Owner[Exchange, ExchangeCommand], effect: Effect) -> None:
        """Carry out an effect of an exchange."""
        match effect:
            case ForgetRuling():
                self._rulings.pop(owner.stream, None)
            case LookForAgent(accepted):
                if accepted.requester is not None and self.world.agents.has(runner_of(accepted.requester)):
                    self.world.mail.tell_flow(owner.stream, Resume(stream=owner.stream))
            case UnwatchSessions(accepted):
                self._unwatch(accepted)
            case _:
                super().act(owner, effect)

    def decide(self, flow: ExchangeFlow, command: ExchangeCommand) -> Plan | Accepted | Refused | None:
        """Decide the next step of an exchange."""
        if isinstance(command, OpenExchange):
            return self._open(flow, command)
        state = flow.state
        if state is None:
            return None
        match command:
            case RunEnded() | DeliveryEnded():
                return self._after(flow, state, command)
            case HoldExchange() | ReleaseExchange():
                return self._ordered(flow, state, command)
            case HoldRuled():
                return self._ruled(flow, state, command)
            case StopAsking():
                return self._stop_asking(flow, state, command)
            case Resume():
                return self._resume(flow, state, command)
            case _:
                assert_never(command)

    def refuse(self, command: ExchangeCommand, refused: Refused) -> None:
        """Refuse to the waiting caller, and unwatch the sessions of an exchange that does not begin."""
        if isinstance(command, OpenExchange):
            flow = self._flows.get(command.stream)
            if flow is None or flow.state is None:
                self._unwatch(command.accepted)
        super().refuse(command, refused)

    # --- the beginning

    def _open(self, flow: ExchangeFlow, command: OpenExchange) -> Plan | Accepted | Refused:
        now_ms = self.world.now_of(command.budget)
        outcome = self.begins(flow, command, now_ms)
        if outcome is not None:
            return outcome
        accepted, knew = self.let_in(flow, command, decide_open(command.accepted, command.budget), now_ms)
        flow.texts.take(accepted.run_id, RunTexts(asked=command.accepted.message))
        self._watch(accepted)
        return Plan(
            events=(accepted,),
            knew=knew,
            through=partial(primary_step, command),
            cause=command.causation,
            correlation=command.budget.root,
        )

    # --- after a run or a delivery

    def _resume(self, flow: ExchangeFlow, state: Exchange, command: Resume) -> Plan | Refused | None:
        self._watch(state.accepted)
        if state.phase == "released":
            # Nothing followed yet: the agent that the next turn needs was not here, or this process was not.
            return self._ordered(flow, state, command)
        ended = state.awaited_in(command)
        return None if ended is None else self._after(flow, state, ended)

    def _after(
        self,
        flow: ExchangeFlow,
        state: Exchange,
        outcome: RunEnded | DeliveryEnded,
        ruling: Ruling | None = None,
    ) -> Plan | Refused | None:
        behind = outcome.behind if isinstance(outcome, RunEnded) else None
        if behind is not None and behind.has_failed:
            return None
        if state.phase in _DECIDING and behind is None:
            crash_point(_DECIDING[state.phase])
        if isinstance(outcome, RunEnded):
            flow.texts.take(outcome.run_id, RunTexts(reply=outcome.text or ""))
        decided = self.decided(flow, state, outcome, lambda: self._circumstances(flow, state, ruling))
        if isinstance(decided, Refused):
            return decided
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
        plan = self.carried_on(flow, decided, outcome.cause, behind=behind)
        flow.texts.keep(decided.after.quoted)
        return plan

    # --- holds

    def _ordered(
        self, flow: ExchangeFlow, state: Exchange, command: HoldExchange | ReleaseExchange | Resume
    ) -> Plan | Refused:
        def known() -> Circumstances:
            if isinstance(command, HoldExchange):
                return Circumstances(log_id=self.world.log.log_id)  # nothing else is looked at
            return self._circumstances(flow, state)

        decided = self.decided(flow, state, command, known)
        if isinstance(decided, Refused):
            return decided
        first = next(iter(decided.events), None)
        # A release goes on with what was held, so that causes lead on to what was said (WHY-1).
        goes_on = isinstance(command, Resume) or isinstance(first, facts.ExchangeReleased)
        return self.carried_on(flow, decided, flow.cause if goes_on else None)

    def _asks_rule(
        self, flow: ExchangeFlow, state: Exchange, outcome: RunEnded, events: Sequence[facts.Event]
    ) -> bool:
        """Ask the host's rule about a text, if necessary; the pending command is decided after its verdict."""
        held, rule, tell = events[-1], self.world.standing.holds.rule, self.world.mail.tell_flow
        if rule is None or not isinstance(held, facts.ExchangeHeld) or held.source != "rule":
            return False
        stream, hold_id, accepted = flow.stream, held.hold_id, state.accepted
        request = accepted.message or flow.texts.asked(accepted.run_id)
        before = self._rulings.get(stream)
        self._rulings[stream] = _Ruling(hold_id, outcome)
        if before is not None and before.hold_id == hold_id and not before.is_given:
            return True
        route = self.world.rules.announce_route(accepted)
        going = GoingOn(
            run_id=accepted.run_id,
            exchange_id=accepted.exchange_id,
            step=held.step,
            text=outcome.text or "",
            speaker=held.speaker,
            to=held.to,
            channel=route.channel if held.step == "announce" and route is not None else None,
            turn=held.turn,
            requester=accepted.requester,
            target=accepted.target,
            request=request,
        )
        rule.rules_on(
            hold_id,
            stream,
            going,
            lambda ruling: tell(stream, HoldRuled(stream=stream, hold_id=hold_id, ruling=ruling)),
            inside=self.world.inside(
                CausedBy(session_key=held.speaker, budget=state.budget, event=outcome.cause)
            ),
        )
        return True

    def _ruled(self, flow: ExchangeFlow, state: Exchange, command: HoldRuled) -> Plan | Refused | None:
        asked = self._rulings.get(flow.stream)
        if asked is None or asked.hold_id != command.hold_id:
            return None
        self._rulings[flow.stream] = asked._replace(is_given=True)
        return self._after(flow, state, asked.outcome, command.ruling)

    def _stop_asking(self, flow: ExchangeFlow, state: Exchange, command: StopAsking) -> Plan | Refused:
        asked, ended = self._rulings.get(flow.stream), command.ended
        if asked is not None:
            self._rulings[flow.stream], ended = asked._replace(is_given=True), asked.outcome
        elif ended is None or state.pending != ended.awaited:
            return Plan()
        note = word_of(f"{command.by} stopped it before the host's rule had spoken")
        plan = self._after(flow, state, ended, Ruling(holds=True, note=note)) or Plan()
        if asked is not None or isinstance(plan, Refused):
            return plan
        # What leads to no text that could be held goes on when the flow hears of it.
        is_held = any(
            isinstance(part, facts.ExchangeHeld) for one in plan.events for part in facts.parts_of(one)
        )
        return plan if is_held else Plan()

    def _orders(self, state: Exchange, ruling: Ruling | None) -> tuple[HoldOrder, ...]:
        accepted, holds = state.accepted, self.world.standing.holds
        orders = holds.sessions.orders(accepted.requester, accepted.target)
        if holds.rule is None or (ruling is not None and not ruling.holds):
            return orders
        order = _ASKED if ruling is None else msgspec.structs.replace(_ASKED, note=ruling.note)
        return (*orders, order)

    # --- what follows

    def after(self, state: Exchange, events: Sequence[facts.Event]) -> Exchange:
        """Return the exchange after some events."""
        return reduce(evolve, cast("Sequence[facts.ExchangeEvent]", events), state)

    def step(
        self, flow: ExchangeFlow, decided: ExchangeDecided, event: facts.Event, cause: str | None
    ) -> Through | None:
        """Return the turn or the announce turn that an event asks for, if any."""
        del cause
        return step_asked(decided.after, event, flow.texts)

    def announced(self, flow: ExchangeFlow, decided: ExchangeDecided, event: facts.AnnounceDecided) -> str:
        """Return the announced text: the target's, or that of the release."""
        return announced_text(decided.after, event, flow.texts)

    def way_out(self, after: Exchange, command: ExchangeCommand) -> tuple[facts.Route | None, str]:
        """Return the announce's route, as the target's text (ANN-2)."""
        del command
        return self.world.rules.announce_route(after.accepted), after.accepted.target

    def _circumstances(
        self, flow: ExchangeFlow, state: Exchange, ruling: Ruling | None = None
    ) -> Circumstances:
        # What nothing that can follow looks at is not asked: a decision record names all that was known.
        if state.phase == "delivery":
            return Circumstances(log_id=self.world.log.log_id)
        accepted, held, orders = state.accepted, state.held, self._orders(state, ruling)
        held_ms = 0
        if held is not None and state.phase == "held":
            held_ms = self.world.time.stopwatch.elapsed_ms("held", held.hold_id, since_ms=held.since_ms)
        known = Circumstances(
            log_id=self.world.log.log_id,
            refused=dict(flow.refused),
            orders=orders,
            wall_ms=self.world.time.clock.now_ms() if orders or may_hold(state) else 0,
            held_ms=held_ms,
        )
        if state.is_announcing:
            has_route = self.world.rules.announce_route(accepted) is not None
            return msgspec.structs.replace(known, has_route=has_route)
        budget = state.budget
        return msgspec.structs.replace(
            known,
            now_ms=self.world.now_of(budget),
            requester_has_agent=accepted.requester is None or self._has_agent(accepted.requester),
            spent=self.world.chains.spent(budget.root, besides=flow.stream),
            gone=self._gone(accepted),
        )

    def _gone(self, accepted: facts.ExchangeAccepted) -> tuple[Gone, ...]:
        """Return which of the two sessions are gone, compared with the exchange's beginning."""
        is_over, found = self.world.standing.generations.is_over, list[Gone]()
        if is_over(accepted.target, accepted.target_session_id):
            found.append("target_gone")
        requester, session_id = accepted.requester, accepted.requester_session_id
        if requester is not None and session_id is not None and is_over(requester, session_id):
            found.append("requester_gone")
        return tuple(found)

    def _watch(self, accepted: facts.ExchangeAccepted) -> None:
        generations, stream = self.world.standing.generations, ids.exchange_stream(accepted.exchange_id)
        generations.watch(accepted.target, by=stream)
        if accepted.requester is not None:
            generations.watch(accepted.requester, by=stream)

    def _unwatch(self, accepted: facts.ExchangeAccepted) -> None:
        for key in (accepted.target, accepted.requester):
            if key is not None:
                self.world.standing.generations.unwatch(key, by=ids.exchange_stream(accepted.exchange_id))

    def _has_agent(self, key: str) -> bool:
        if self.world.log.forked is not None:
            return True  # a fork waits for the agents that it is not given: it ends nothing that had an agent (FORK-4)
        return self.world.agents.has(runner_of(key))
