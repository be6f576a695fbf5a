"""What would have changed a verdict: the rules of an exchange, asked again with one thing changed after the other."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from msgspec.structs import replace

from intersession_actors.hindsight.explaining import decisions
from intersession_actors.hindsight.explaining.explanation import Instead
from intersession_actors.owners.exchange.commands import ExchangeCommand, ReleaseExchange
from intersession_actors.owners.exchange.exchange import Exchange
from intersession_actors.owners.exchange.rules import Circumstances, speaker_of
from intersession_actors.owners.streams.commands import DeliveryEnded, RunEnded
from intersession_actors.rules.policy.chain import check_run
from intersession_events import facts
from intersession_events.basics.plain_json import JsonValue
from intersession_events.facts import topic_of

TURNS: Final = "session.agentToAgent.maxPingPongTurns"
ANNOUNCE: Final = "session.agentToAgent.announce"
ONE_WAY: Final = "session.agentToAgent.oneWay"
GOES_ON: Final = "turn_requested"
"""The verdict of a loop that goes on."""

MOST_TURNS: Final = 5
"""The highest limit of turns that a configuration can say (LOOP-2)."""

_WORDS: Final = "Something else."


Decision = decisions.Decision[Exchange, ExchangeCommand, Circumstances]


class _Change(NamedTuple):
    change: str
    decision: Decision
    setting: str | None = None
    value: JsonValue = None


def instead_of(decision: Decision, event: facts.ExchangeEvent) -> tuple[Instead, ...]:
    """Return which single changes would have led to something else than an event of a decision, and to what.

    Where none of them would have let a loop go on, two together that would have are named, too.
    """
    said = verdict(decision.decided(), event)
    found: list[Instead] = []
    for made in _changes(decision):
        other = verdict(made.decision.decided(), event)
        if other != said:
            found.append(Instead(change=made.change, verdict=other, setting=made.setting, value=made.value))
    if isinstance(event, facts.LoopEnded) and all(one.verdict != GOES_ON for one in found):
        found += islice(_pairs(decision, event), 1)
    return tuple(found)


def _pairs(decision: Decision, event: facts.LoopEnded) -> Iterator[Instead]:
    for first in _changes(decision):
        for second in _changes(first.decision):
            if verdict(second.decision.decided(), event) == GOES_ON:
                change = f"{first.change}, and {second.change}"
                yield Instead(change=change, verdict=GOES_ON, setting=second.setting, value=second.value)


def verdict(events: Sequence[facts.Event], of: facts.Event, *, announced: str | None = "announced") -> str:
    """Return what events say where another one stood: the code of one of its kind, else the name of the last.

    A text that is announced is `announced`, or with None its own code.
    """
    for event in events:
        match event, of:
            case facts.LoopEnded(reason=reason), facts.LoopEnded():
                return reason
            case facts.ExchangeClosed(reason=closed), facts.ExchangeClosed():
                return closed
            case facts.SpawnClosed(reason=over), facts.SpawnClosed():
                return over
            case facts.AnnounceDecided(why=why), facts.AnnounceDecided():
                return why if event.silent else announced or why
            case _:
                pass
    return topic_of(events[-1]).rpartition(".")[0] if events else "nothing"


def _changes(decision: Decision) -> Iterator[_Change]:
    match decision.outcome:
        case RunEnded() as outcome:
            yield from _other_answers(decision, outcome)
        case ReleaseExchange() as released if released.action != "go_on":
            plain = replace(released, action="go_on", text=None)
            yield _Change("it is released with what was held", decision._replace(outcome=plain))
        case DeliveryEnded() as delivered:
            taken = replace(delivered, outcome="done", note=None)
            yield _Change("the channel takes the text", decision._replace(outcome=taken))
        case _:
            pass
    yield from _other_settings(decision)
    yield from _other_circumstances(decision)


def _other_answers(decision: Decision, outcome: RunEnded) -> Iterator[_Change]:
    answered = replace(outcome, status="ok", text=_WORDS, error=None, gone=False)
    if outcome.status == "ok":
        what = "no text" if outcome.text is None else repr(outcome.text.strip()[:40])
        yield _Change(f"another answer than {what}", decision._replace(outcome=answered))
    else:
        yield _Change("the run answers with a text", decision._replace(outcome=answered))


def _other_settings(decision: Decision) -> Iterator[_Change]:
    state, accepted = decision.state, decision.state.accepted
    settings = accepted.settings
    if state.turn >= settings.max_turns and settings.max_turns < MOST_TURNS:
        more = state.turn + 1
        speaker = speaker_of(accepted, more)
        yield _Change(
            f"{TURNS} is {more}: turn {more} is asked of {speaker}",
            _accepted(decision, replace(accepted, settings=replace(settings, max_turns=more))),
            TURNS,
            more,
        )
    if not accepted.loop and accepted.requester is not None:
        yield _Change(
            f"{ONE_WAY} is without this kind of session",
            _accepted(decision, replace(accepted, loop=True, loop_reason=None)),
            ONE_WAY,
        )
    if settings.announce == "routed":
        yield _Change(
            f'{ANNOUNCE} is "always"',
            _accepted(decision, replace(accepted, settings=replace(settings, announce="always"))),
            ANNOUNCE,
            "always",
        )
    tripped = check_run(state.budget, decision.now.spent, decision.now.now_ms)
    if tripped is not None:
        limits = replace(state.budget.limits, **{LIMITS[tripped.limit]: 0})
        off = replace(
            accepted, settings=replace(settings, limits=limits), budget=replace(state.budget, limits=limits)
        )
        more = tripped.value + 1
        yield _Change(
            f"{tripped.setting} is at least {more}, or 0 for none",
            _accepted(decision, off),
            tripped.setting,
            more,
        )


LIMITS: Final = {
    "hop_limit": "hops",
    "revisit_limit": "revisits",
    "run_limit": "runs",
    "token_limit": "tokens",
    "cost_limit": "cost_micros",
    "wall_limit": "wall_seconds",
}


def _other_circumstances(decision: Decision) -> Iterator[_Change]:
    now, accepted = decision.now, decision.state.accepted
    if not now.requester_has_agent:
        yield _Change(
            f"an agent is registered for {accepted.requester}",
            decision._replace(now=replace(now, requester_has_agent=True)),
        )
    for refused in now.refused.values():
        what = (
            "the send policy allows it" if refused.code == "policy_denied" else "its session takes the turn"
        )
        yield _Change(what, decision._replace(now=replace(now, refused={})))
    if accepted.route is None:
        somewhere = _accepted(decision, replace(accepted, route=facts.Route(channel="any", to="anybody")))
        yield _Change(
            f"{accepted.target} has a route when the request is accepted: a person has spoken to it",
            somewhere._replace(now=replace(now, has_route=True)),
        )


def _accepted(decision: Decision, accepted: facts.ExchangeAccepted) -> Decision:
    return decision._replace(state=replace(decision.state, accepted=accepted))
