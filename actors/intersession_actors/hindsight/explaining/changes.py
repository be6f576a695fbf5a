"""What would have changed a verdict: the rules of an exchange, asked again with one thing changed after the other."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from intersession_actors.hindsight.explaining import decisions
from intersession_actors.hindsight.explaining.explanation import Instead
from intersession_actors.owners.exchange.commands import ExchangeCommand, ReleaseExchange
from intersession_actors.owners.exchange.exchange import Exchange
from intersession_actors.owners.exchange.rules import Circumstances, speaker_of
from intersession_actors.owners.streams.commands import DeliveryEnded, RunEnded
from intersession_actors.rules.policy.chain import check_run
from intersession_events import facts
from intersession_events.facts import Budget, topic_of

TURNS: Final = "session.agentToAgent.maxPingPongTurns"
ANNOUNCE: Final = "session.agentToAgent.announce"
ONE_WAY: Final = "session.agentToAgent.oneWay"
GOES_ON: Final = "turn_requested"
"""The verdict of a loop that goes on."""

MOST_TURNS: Final = 5
"""The highest limit of turns that a configuration can say (LOOP-2)."""

Decision = decisions.Decision[Exchange, ExchangeCommand, Circumstances]


D = TypeVar("D", bound=decisions.Decision[Any, Any, Any])  # of an exchange, or of a spawn


def instead_of(decision: Decision, event: facts.ExchangeEvent) -> tuple[Instead, ...]:
    """Return which single changes would have led to something else than an event of a decision, and to what.

    Where none of them would have let a loop go on, two together that would have are named, too.
    """
    found = others(decision, event, _changes(decision))
    if isinstance(event, facts.LoopEnded) and all(one.verdict != GOES_ON for one in found):
        return (*found, *islice(_pairs(decision, event), 1))
    return found


def others(
    decision: D,
    event: facts.Event,
    changes: Iterable[tuple[Instead, D]],
    *,
    announced: str | None = "announced",
) -> tuple[Instead, ...]:
    """Return which changes of a decision would have led to something else than an event of it, and to what."""
    said = verdict(decision.decided(), event, announced=announced)
    return tuple(
        replace(change, verdict=other)
        for change, made in changes
        if (other := verdict(made.decided(), event, announced=announced)) != said
    )


def _pairs(decision: Decision, event: facts.LoopEnded) -> Iterator[Instead]:
    for first, made in _changes(decision):
        for second, both in _changes(made):
            if verdict(both.decided(), event) == GOES_ON:
                yield replace(second, change=f"{first.change}, and {second.change}", verdict=GOES_ON)


def verdict(events: Sequence[facts.Event], of: facts.Event, *, announced: str | None = "announced") -> str:
    """Return what events say where another one stood: the code of one of its kind, else the name of the last.

    A text that is announced is `announced`, or with None its own code.
    """
    for event in events:
        match event, of:
            case facts.LoopEnded(reason=reason), facts.LoopEnded():
                return reason
            case facts.FlowClosed(reason=closed), facts.FlowClosed():
                return closed
            case facts.AnnounceDecided(why=why), facts.AnnounceDecided():
                return why if event.silent else announced or why
            case _:
                pass
    return topic_of(events[-1]).rpartition(".")[0] if events else "nothing"


def _changes(decision: Decision) -> Iterator[tuple[Instead, Decision]]:
    match decision.outcome:
        case RunEnded() as outcome:
            said = "no text" if outcome.text is None else repr(outcome.text.strip()[:40])
            change = f"another answer than {said}" if outcome.status == "ok" else ANSWERS
            yield Instead(change=change), decision._replace(outcome=answered(outcome))
        case ReleaseExchange() as released if released.action != "go_on":
            plain = replace(released, action="go_on", text=None)
            yield Instead(change="it is released with what was held"), decision._replace(outcome=plain)
        case DeliveryEnded() as delivered:
            yield Instead(change=TAKES), decision._replace(outcome=taken(delivered))
        case _:
            pass
    yield from _other_settings(decision)
    yield from _other_circumstances(decision)


ANSWERS: Final = "the run answers with a text"
TAKES: Final = "the channel takes the text"


def answered(outcome: RunEnded) -> RunEnded:
    """Return the end of a run that has answered, with some text."""
    return replace(outcome, status="ok", text="Something else.", error=None, gone=False)


def taken(outcome: DeliveryEnded) -> DeliveryEnded:
    """Return the end of a delivery that has arrived."""
    return replace(outcome, outcome="done", note=None)


def unlimited(
    decision: decisions.Decision[Any, Any, Any],  # of an exchange, or of a spawn
) -> tuple[Instead, Budget] | None:
    """Return the change of the limit that a chain has come to, and its budget without that; None where it has come to none."""
    budget: Budget = decision.state.budget
    tripped = check_run(budget, decision.now.spent, decision.now.now_ms)
    if tripped is None:
        return None
    more = tripped.value + 1
    change = f"{tripped.setting} is at least {more}, or 0 for none"
    off = replace(budget, limits=replace(budget.limits, **{_LIMITS[tripped.limit]: 0}))
    return Instead(change=change, setting=tripped.setting, value=more), off


def _other_settings(decision: Decision) -> Iterator[tuple[Instead, Decision]]:
    state, accepted = decision.state, decision.state.accepted
    settings = accepted.settings
    if state.turn >= settings.max_turns and settings.max_turns < MOST_TURNS:
        more = state.turn + 1
        change = f"{TURNS} is {more}: turn {more} is asked of {speaker_of(accepted, more)}"
        other = replace(accepted, settings=replace(settings, max_turns=more))
        yield Instead(change=change, setting=TURNS, value=more), _accepted(decision, other)
    if not accepted.loop and accepted.requester is not None:
        change = f"{ONE_WAY} is without this kind of session"
        other = replace(accepted, loop=True, loop_reason=None)
        yield Instead(change=change, setting=ONE_WAY), _accepted(decision, other)
    if settings.announce == "routed":
        other = replace(accepted, settings=replace(settings, announce="always"))
        always = Instead(change=f'{ANNOUNCE} is "always"', setting=ANNOUNCE, value="always")
        yield always, _accepted(decision, other)
    if (found := unlimited(decision)) is not None:
        instead, budget = found
        other = replace(accepted, settings=replace(settings, limits=budget.limits), budget=budget)
        yield instead, _accepted(decision, other)


_LIMITS: Final = {
    "hop_limit": "hops",
    "revisit_limit": "revisits",
    "run_limit": "runs",
    "token_limit": "tokens",
    "cost_limit": "cost_micros",
    "wall_limit": "wall_seconds",
}


def _other_circumstances(decision: Decision) -> Iterator[tuple[Instead, Decision]]:
    now, accepted = decision.now, decision.state.accepted
    if not now.requester_has_agent:
        there = decision._replace(now=replace(now, requester_has_agent=True))
        yield Instead(change=f"an agent is registered for {accepted.requester}"), there
    for refused in now.refused.values():
        denied = refused.code == "policy_denied"
        change = "the send policy allows it" if denied else "its session takes the turn"
        yield Instead(change=change), decision._replace(now=replace(now, refused={}))
    if accepted.route is None:
        somewhere = _accepted(decision, replace(accepted, route=facts.Route(channel="any", to="anybody")))
        change = f"{accepted.target} has a route when the request is accepted: a person has spoken to it"
        yield Instead(change=change), somewhere._replace(now=replace(now, has_route=True))


def _accepted(decision: Decision, accepted: facts.ExchangeAccepted) -> Decision:
    return decision._replace(state=replace(decision.state, accepted=accepted))
