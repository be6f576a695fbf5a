"""Explains ends of exchanges: of the loop, of the announce, of all of it. The rules of the exchange are asked again."""

from collections.abc import Iterator

from intersession_actors.hindsight.explaining.around import Around
from intersession_actors.hindsight.explaining.changes import ANNOUNCE, TURNS, Decision, instead_of
from intersession_actors.hindsight.explaining.explanation import About, Explanation, Input, Instead, Rule
from intersession_actors.hindsight.explaining.rules.ends import CLOSES, LOOP_ENDS, SILENCES
from intersession_actors.hindsight.explaining.settings import InForce
from intersession_actors.owners.exchange.commands import ReleaseExchange
from intersession_actors.owners.streams.commands import DeliveryEnded, RunEnded
from intersession_actors.rules.policy.chain import check_run
from intersession_events import facts
from intersession_events.facts.reasons import counted, plain_note, told_more
from intersession_events.log.recorded import Recorded

Ending = facts.LoopEnded | facts.AnnounceDecided | facts.ExchangeClosed


def explain_ending(
    around: Around, in_force: InForce, recorded: Recorded, event: Ending, decision: Decision | None
) -> Explanation:
    """Explain an end in an exchange's stream, by the decision that it is of."""
    about, code, rule, said = _told(event)
    holds = None if decision is None else decision.holds
    instead: tuple[Instead, ...] = ()
    if decision is not None and holds:
        instead = instead_of(decision, event)
    inputs = () if decision is None else _inputs(around, in_force, decision, event)
    return rule.explains(recorded, about, code, said, inputs, instead=instead, as_decided=holds)


def _told(event: Ending) -> tuple[About, str, Rule, str]:
    match event:
        case facts.LoopEnded():
            said = f"The loop ended after {counted(event.turns, 'turn')}{told_more(event.limit, event.note)}"
            return "loop", event.reason, LOOP_ENDS[event.reason], said
        case facts.AnnounceDecided():
            nothing = f"Nothing was announced{told_more(event.limit, None)}"
            said = nothing if event.silent else "There was a text to announce"
            return "announce", event.why, SILENCES[event.why], said
        case facts.ExchangeClosed():
            said = f"The exchange was closed{told_more(event.limit, event.note)}"
            return "exchange", event.reason, CLOSES[event.reason], said


def _inputs(around: Around, in_force: InForce, decision: Decision, event: Ending) -> Iterator[Input]:
    state, accepted, outcome = decision.state, decision.state.accepted, decision.outcome
    begun = around.stream(decision.came[0].stream)[0].position
    if isinstance(outcome, RunEnded):
        yield Input(name="status", value=outcome.status, set_by="agent", position=decision.told_at)
        yield Input(name="reply", value=outcome.text, set_by="agent", position=decision.told_at)
    elif isinstance(outcome, ReleaseExchange):
        yield Input(name="release", value=outcome.action, set_by="call", position=decision.told_at)
    elif isinstance(outcome, DeliveryEnded):
        yield Input(name="delivery", value=outcome.outcome, set_by="channel", position=decision.told_at)
    if isinstance(event, facts.LoopEnded):
        yield Input(name="turn", value=state.turn, set_by="log")
        yield in_force.taken(TURNS, accepted.settings.max_turns, begun, set_by="exchange")
        yield Input(name="requester", value=accepted.requester, set_by="call", position=begun)
    else:
        route = None if accepted.route is None else accepted.route.text
        yield Input(name="route", value=route, set_by="session", position=begun)
        yield in_force.taken(ANNOUNCE, accepted.settings.announce, begun, set_by="exchange")
    tripped = check_run(state.budget, decision.now.spent, decision.now.now_ms)
    if tripped is not None:
        yield Input(name=f"{tripped.setting}.used", value=tripped.value, set_by="log")
        yield in_force.taken(tripped.setting, tripped.allowed, begun, set_by="exchange")
    for refused in decision.now.refused.values():
        yield Input(name="refused", value=plain_note(refused.error) or refused.code, set_by="session")
