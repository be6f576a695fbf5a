"""A decision of an exchange as it was made, to be made again: what was known, what came in, and which events it led to."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from intersession_actors import exchange
from intersession_actors.delivery import ended_in
from intersession_actors.errors import RefusalCode
from intersession_actors.policy import HoldOrder, Spent, spent_when_decided, time_of_chain
from intersession_actors.session import ended_again
from intersession_actors.streams import DeliveryEnded, RunEnded, StepRefused
from intersession_events import facts, ids
from intersession_events.log import Log, Recorded
from intersession_projections.run_outcomes import Runs


class Decision(NamedTuple):
    """What the rules of an exchange were asked, and the events that they led to (`came`, in one append).

    `told_at` is the position of the event that says how the run or the delivery ended.
    """

    state: exchange.Exchange
    outcome: exchange.Outcome
    now: exchange.Circumstances
    came: tuple[Recorded, ...]
    told_at: int | None

    def decided(self) -> list[facts.ExchangeEvent]:
        """Ask the rules of today."""
        return exchange.decide(self.state, self.outcome, self.now)

    @property
    def holds(self) -> bool | None:
        """Whether the rules of today say what was recorded; None where words were erased that they would look at."""
        if are_erased(self.came, self.outcome):
            return None
        return self.decided() == [recorded.event for recorded in self.came]


def are_erased(came: Sequence[Recorded], outcome: exchange.Outcome) -> bool:
    """Whether words were erased of what came in, or of the events that it led to: then nobody can decide it again."""
    said = outcome.text if isinstance(outcome, RunEnded | exchange.ReleaseExchange) else None
    return said == facts.ERASED or any(facts.ERASED in facts.words(recorded.event) for recorded in came)


def decision_of(log: Log, recorded: Recorded) -> Decision | None:
    """Return the decision that an event of an exchange is of; None where the log does not have what it was made on."""
    before, came = parted(log.stream(recorded.stream), recorded)
    state = exchange.exchange_in(before)
    if state is None or state.accepted.inferred:
        return None
    outcome = _outcome(log, state, came)
    if outcome is None:
        return None
    now = _circumstances(log, state, outcome, came)
    return Decision(state, outcome, now, tuple(came), _told_at(log, outcome, came[0]))


def _told_at(log: Log, outcome: exchange.Outcome, first: Recorded) -> int | None:
    if isinstance(outcome, exchange.ReleaseExchange):
        return first.position
    if isinstance(outcome, RunEnded):
        run = Runs(log).get(outcome.run_id)
        return None if run is None else run.position
    sent = log.stream(ids.delivery_stream(outcome.delivery_id))
    return next(
        (recorded.position for recorded in reversed(sent) if recorded.position < first.position), None
    )


_OF_ITSELF: Final = (
    facts.HoldRequested,
    facts.HoldWithdrawn,
    facts.ExchangeReleased,
    facts.AttachmentsReady,
    facts.AttachmentsRemoved,
    facts.AttachmentRemovalFailed,
    facts.ThreadOpened,
    facts.ChildArchived,
)
"""Somebody's own word, or work that is done beside the rules: it is an append of its own, whatever caused it."""


def parted(events: Sequence[Recorded], wanted: Recorded) -> tuple[list[Recorded], list[Recorded]]:
    """Part a stream into what was there, and the append that an event is of: each of it was caused by the one before it."""
    before: list[Recorded] = []
    came: list[Recorded] = []
    for recorded in events:
        if not came or recorded.causation != came[-1].id or isinstance(recorded.event, _OF_ITSELF):
            if came and came[-1].version >= wanted.version:
                break
            before += came
            came = []
        came.append(recorded)
    return before, came


def _outcome(log: Log, state: exchange.Exchange, came: Sequence[Recorded]) -> exchange.Outcome | None:
    """Return what the exchange was told, as it would be told again after a start."""
    first = came[0]
    match first.event:
        case facts.PrimaryEnded(run_id=run_id) | facts.TurnReplied(run_id=run_id):
            return run_ended(log, first.stream, run_id)
        case facts.AnnounceDecided():
            return run_ended(log, first.stream, state.pending)
        case facts.ExchangeReleased() as event:
            return exchange.ReleaseExchange(
                stream=first.stream,
                action=event.action,
                by=event.by,
                text=event.text,
                hold_id=event.hold_id,
                for_good=event.for_good,
            )
        case facts.ExchangeClosed():
            return delivery_ended(log, state.pending, first.position)
        case _:
            return None


def delivery_ended(log: Log, delivery_id: str, position: int) -> DeliveryEnded | None:
    """Return what the owner of a delivery was told of it before an event; None if it was not final."""
    sent = log.stream(ids.delivery_stream(delivery_id)) if delivery_id else ()
    return ended_in(recorded for recorded in sent if recorded.position < position)


def run_ended(log: Log, stream: str, run_id: str) -> RunEnded | None:
    """Return what a flow was told of the end of its run; None if it has not ended, or nobody knows it."""
    outcome = Runs(log).get(run_id)
    if outcome is None or not outcome.ended:
        return None
    session = ids.session_stream(outcome.session_key)
    return ended_again(stream, log.stream(session, after=outcome.first_version - 1, to=outcome.last_version))


def _circumstances(
    log: Log, state: exchange.Exchange, outcome: exchange.Outcome, came: Sequence[Recorded]
) -> exchange.Circumstances:
    events = [recorded.event for recorded in came]
    loop = next((event for event in events if isinstance(event, facts.LoopEnded)), None)
    announced = next((event for event in events if isinstance(event, facts.AnnounceDecided)), None)
    held = next((event for event in events if isinstance(event, facts.ExchangeHeld)), None)
    released = next((event for event in events if isinstance(event, facts.ExchangeReleased)), None)
    return exchange.Circumstances(
        log_id=log.log_id,
        now_ms=time_of_chain(state.budget, events, came[0].time),
        requester_has_agent=loop is None or loop.reason != "no_agent",
        has_route=_has_route(state, announced),
        refused=_refused(log.log_id, state, outcome, events),
        spent=spent_at(log, state.budget, came),
        orders=() if held is None else (_order(held),),
        wall_ms=0 if held is None else held.since_ms,
        held_ms=released.held_ms if released is not None else 0,
    )


def _has_route(state: exchange.Exchange, announced: facts.AnnounceDecided | None) -> bool:
    """Whether there was somewhere to announce to: where a text was, that says so; else the exchange began with a route or not."""
    if announced is None or announced.text is None:
        return state.accepted.route is not None
    return announced.delivery_id is not None


def _order(held: facts.ExchangeHeld) -> HoldOrder:
    return HoldOrder(source=held.source, before=held.before, by=held.by, order=held.order, note=held.note)


def _refused(
    log_id: str,
    state: exchange.Exchange,
    outcome: exchange.Outcome,
    events: Sequence[facts.Event],
) -> dict[str, StepRefused]:
    """Return the steps that a session's actor would not take: what came in does not explain that they were not."""
    refused: dict[str, StepRefused] = {}
    well = (isinstance(outcome, RunEnded) and outcome.status == "ok") or isinstance(
        outcome, exchange.ReleaseExchange
    )
    for at, event in enumerate(events):
        match event:
            case facts.LoopEnded(
                reason="policy_denied" | "turn_failed" | "requester_gone" | "target_gone"
            ) if well:
                run_id = ids.derive(log_id, "run", state.accepted.exchange_id, "turn", state.turn + 1)
                refused[run_id] = StepRefused(
                    stream=ids.exchange_stream(state.accepted.exchange_id),
                    run_id=run_id,
                    code=_code_of(event.reason),
                    error=event.note or "",
                )
            case facts.AnnounceDecided(why="run_failed", run_id=None):
                run_id = ids.derive(log_id, "run", state.accepted.exchange_id, "announce")
                closed = events[at + 1] if at + 1 < len(events) else None
                gone = isinstance(closed, facts.ExchangeClosed) and closed.reason == "target_gone"
                refused[run_id] = StepRefused(
                    stream=ids.exchange_stream(state.accepted.exchange_id),
                    run_id=run_id,
                    code="not_visible" if gone else "busy",
                    error=closed.note or "" if isinstance(closed, facts.ExchangeClosed) else "",
                )
            case _:
                pass
    return refused


def _code_of(reason: facts.LoopEnd) -> RefusalCode:
    """Return what a session's actor said that would not take a turn, by how the loop ended."""
    match reason:
        case "policy_denied":
            return "policy_denied"
        case "turn_failed":
            return "busy"
        case _:
            return "not_visible"


def spent_at(log: Log, budget: facts.Budget, came: Sequence[Recorded]) -> Spent:
    """Return what a causal chain had used before a decision: what the decision says of it, else what the log has.

    The run that the decision asked for may stand before it in the same append, and is none of these.
    """
    runs, position = Runs(log), came[0].position
    asked = {recorded.event.run_id for recorded in came if isinstance(recorded.event, facts.RunAsked)}
    number, tokens, cost = 0, 0, 0
    chain = runs.of_chain(budget.root)
    outcomes = runs.many_without_words(known.run_id for known in chain)
    for known in chain:
        outcome = outcomes.get(known.run_id)
        if outcome is None or outcome.accepted >= position or known.run_id in asked:
            continue
        number += 1
        if known.ended and outcome.position < position:
            tokens, cost = tokens + known.tokens, cost + known.cost_micros
    spent = Spent(runs=number, tokens=tokens, cost_micros=cost)
    return spent_when_decided(spent, budget.limits, [recorded.event for recorded in came])
