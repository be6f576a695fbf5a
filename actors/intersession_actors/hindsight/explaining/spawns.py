"""Explains ends of spawns: of the announce, and of all of it. The rules of the spawn are asked again."""

from collections.abc import Iterator

from msgspec.structs import replace

from intersession_actors.hindsight.explaining.around import Around
from intersession_actors.hindsight.explaining.changes import (
    ANSWERS,
    TAKES,
    answered,
    others,
    taken,
    unlimited,
)
from intersession_actors.hindsight.explaining.decisions import Decision
from intersession_actors.hindsight.explaining.explanation import About, Explanation, Input, Instead
from intersession_actors.hindsight.explaining.rules.ends import CLOSES, SILENCES
from intersession_actors.owners.spawn.commands import SpawnCommand
from intersession_actors.owners.spawn.rules import Circumstances, Spawn
from intersession_actors.owners.streams.commands import DeliveryEnded, RunEnded
from intersession_actors.rules.prompt.silence import ANNOUNCE_SKIP as SKIP
from intersession_events import facts
from intersession_events.log.recorded import Recorded
from intersession_projections.views.run_outcomes.replies import told_in

Ending = facts.AnnounceDecided | facts.SpawnClosed


SpawnDecision = Decision[Spawn, SpawnCommand, Circumstances]


def explain_ending(
    around: Around, recorded: Recorded, event: Ending, decision: SpawnDecision | None
) -> Explanation:
    """Explain an end in a spawn's stream, by the decision that it is of."""
    code: str
    match event:
        case facts.AnnounceDecided():
            rule, code = SILENCES[event.why], event.why
            said = "Nothing was announced" if event.silent else "There was a text to announce"
        case facts.SpawnClosed():
            rule, code = CLOSES[event.reason], event.reason
            parts = ", ".join(part for part in (event.code, event.limit, event.note) if part)
            said = f"The spawn was closed ({parts})" if parts else "The spawn was closed"
    about: About = "announce" if isinstance(event, facts.AnnounceDecided) else "spawn"
    holds = None if decision is None else decision.holds
    inputs, instead = _inputs(around, recorded, decision), tuple[Instead, ...]()
    if decision is not None and holds:
        instead = others(decision, event, _changes(decision), announced=None)
    return rule.explains(recorded, about, code, said, inputs, instead=instead, as_decided=holds)


def _changes(decision: SpawnDecision) -> Iterator[tuple[Instead, SpawnDecision]]:
    outcome, now, accepted = decision.outcome, decision.now, decision.state.accepted
    match outcome:
        case RunEnded(status="ok"):
            words = replace(outcome, text="Something else.")
            yield Instead(change="another answer"), decision._replace(outcome=words)
            skip = replace(outcome, text=SKIP)
            yield Instead(change=f"the agent answers {SKIP}"), decision._replace(outcome=skip)
        case RunEnded():
            yield Instead(change=ANSWERS), decision._replace(outcome=answered(outcome))
        case DeliveryEnded():
            yield Instead(change=TAKES), decision._replace(outcome=taken(outcome))
        case _:
            pass
    if now.refused:
        there = decision._replace(now=replace(now, refused={}))
        yield Instead(change="the session that was asked is there, and takes the run"), there
    if not now.has_route:
        change = f"{accepted.requester or 'the caller'} has a route when the spawn is accepted: a person has spoken to it"
        yield Instead(change=change), decision._replace(now=replace(now, has_route=True))
    if (found := unlimited(decision)) is not None:
        instead, budget = found
        off = replace(accepted, budget=budget)
        yield instead, decision._replace(state=replace(decision.state, accepted=off))


def _inputs(around: Around, recorded: Recorded, decision: SpawnDecision | None) -> Iterator[Input]:
    before = [one for one in around.stream(recorded.stream) if one.version <= recorded.version]
    for earlier in told_in(around.log, before):
        match earlier.event:
            case facts.SpawnAccepted() as accepted:
                at = earlier.position
                route = None if accepted.route is None else accepted.route.text
                yield Input(name="requester", value=accepted.requester, set_by="call", position=at)
                yield Input(name="route", value=route, set_by="session", position=at)
                yield Input(name="cleanup", value=accepted.cleanup, set_by="call", position=at)
            case facts.ChildEnded() as ended:
                yield Input(name="status", value=ended.status, set_by="agent", position=earlier.position)
                yield Input(name="result", value=ended.text, set_by="agent", position=earlier.position)
                if ended.error is not None:
                    yield Input(name="error", value=ended.error, set_by="agent", position=earlier.position)
            case _:
                pass
    if decision is not None and isinstance(decision.outcome, DeliveryEnded):
        yield Input(name="delivery", value=decision.outcome.outcome, set_by="channel")
