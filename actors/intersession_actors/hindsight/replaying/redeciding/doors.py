"""A call that a door let in, as it would pass it on today: from its judgement records and the settings in force. Pure."""

from typing import TypeVar

from msgspec.structs import replace

from intersession_actors.hindsight.replaying.redeciding.judging_again import refused_at_door
from intersession_actors.hindsight.replaying.redeciding.sources import Sources
from intersession_actors.owners.streams.commands import Refused
from intersession_actors.owners.streams.judgements import judged_by_door
from intersession_actors.owners.streams.records import Record
from intersession_actors.rules.policy.access import SeeSession, Sight, effective_visibility
from intersession_actors.rules.policy.chain import begun, one_hop_on
from intersession_actors.rules.policy.sending import Speak, Speech, judge_send, why_no_loop
from intersession_events.basics.ids import session_stream
from intersession_events.basics.keys.key import SessionKey
from intersession_events.facts import ExchangeAccepted, RunQueued, SpawnAccepted
from intersession_events.log.recorded import Recorded

A = TypeVar("A", ExchangeAccepted, SpawnAccepted)


def sent_today(
    sources: Sources, first: Recorded, accepted: ExchangeAccepted, record: Record
) -> ExchangeAccepted | Refused:
    """Return the event that would accept a send today, or its refusal."""
    now = _let_in(sources, first, accepted, record, accepted.target)
    if isinstance(now, Refused):
        return now
    visibility, rule = None if accepted.requester is None else accepted.visibility, accepted.send_rule
    for judgement in judged_by_door(record, accepted, sources.listed):
        match judgement.asked, judgement.known:
            case SeeSession(), Sight() as sight:
                visibility = None if sight.requester is None else effective_visibility(sight)
            case Speak() as asked, Speech() as known:
                rule = judge_send(asked, known).rule
            case _:
                pass
    run = sources.queued(accepted.requester_run_id)
    is_own = run is not None and run.stream == session_stream(accepted.requester or "")
    run_id = accepted.requester_run_id if accepted.requester is None or is_own else None
    now = replace(now, visibility=visibility, send_rule=rule, requester_run_id=run_id)
    config = None if sources.settings is None else sources.settings.recorded_at(first.position)
    if config is None:
        return now
    main_key = config.session.main_key
    own = accepted.requester and SessionKey.recorded(accepted.requester, main_key=main_key)
    target = SessionKey.recorded(accepted.target, main_key=main_key)
    reason = why_no_loop(config.session.agent_to_agent.one_way, own or None, target)
    return replace(now, settings=config.session.exchange, loop=reason is None, loop_reason=reason)


def spawned_today(
    sources: Sources, first: Recorded, accepted: SpawnAccepted, record: Record
) -> SpawnAccepted | Refused:
    """Return the event that would accept a spawn today, or its refusal."""
    return _let_in(sources, first, accepted, record, accepted.child)


def _let_in(sources: Sources, first: Recorded, accepted: A, record: Record, target: str) -> A | Refused:
    """Return a call with the budget of its causal chain (LOOP-5), if the caller's is known."""
    refused = refused_at_door(record, accepted, sources.listed)
    if refused is not None:
        return refused
    budget, requester = accepted.budget, accepted.requester
    config = None if sources.settings is None else sources.settings.recorded_at(first.position)
    if config is None or budget is None or requester is None:
        return accepted
    limits = config.session.limits
    before = begun(accepted.run_id, (requester,), limits, budget.started_ms)
    if budget.root != accepted.run_id:
        run = sources.queued(accepted.requester_run_id)
        queued = None if run is None or run.stream != session_stream(requester) else run.event
        if not isinstance(queued, RunQueued) or queued.budget is None:
            return accepted
        before = queued.budget
    return replace(accepted, budget=one_hop_on(before, target, limits))
