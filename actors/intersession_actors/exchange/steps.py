"""The steps of an exchange as commands to a session's actor: the message, its run, and the exchange's own events. Pure."""

import msgspec
from msgspec.structs import replace

from intersession_actors import prompt
from intersession_actors.exchange.commands import OpenExchange
from intersession_actors.exchange.exchange import Exchange
from intersession_actors.session import Enqueue, message_for
from intersession_events import facts
from intersession_events.log import StreamAppend

Appends = tuple[StreamAppend, ...]


def primary_run(accepted: facts.ExchangeAccepted, timeout_ms: int) -> facts.RunQueued:
    """Return the target's run on the message of a send (SEND-3)."""
    return facts.RunQueued(
        run_id=accepted.run_id,
        session_id=accepted.target_session_id,
        step="message",
        message_id=accepted.message_id,
        system_context=prompt.primary_context(_parties(accepted)),
        timeout_ms=timeout_ms,
        caller=accepted.caller,
        idempotency_key=accepted.idempotency_key,
        request_digest=accepted.request_digest,
        exchange_id=accepted.exchange_id,
        turn=0,
    )


def turn_run(state: Exchange, turn: facts.TurnRequested) -> facts.RunQueued:
    """Return the speaker's run on a turn of the loop (LOOP-3)."""
    accepted = state.accepted
    # A requester that had no session when it sent has none that a turn could go to.
    of_target = turn.speaker == accepted.target
    return facts.RunQueued(
        run_id=turn.run_id,
        session_id=accepted.target_session_id if of_target else accepted.requester_session_id or "",
        step="reply",
        message_id=turn.message_id,
        system_context=prompt.turn_context(
            _parties(accepted), speaker=turn.speaker, turn=turn.turn, turns=accepted.settings.max_turns
        ),
        timeout_ms=accepted.settings.turn_timeout_ms,
        exchange_id=accepted.exchange_id,
        turn=turn.turn,
    )


def announce_run(state: Exchange, asked: facts.AnnounceRequested) -> facts.RunQueued:
    """Return the target's run on its announce turn (ANN-1)."""
    accepted = state.accepted
    return facts.RunQueued(
        run_id=asked.run_id,
        session_id=accepted.target_session_id,
        step="announce",
        message_id=asked.message_id,
        system_context=prompt.announce_context(
            _parties(accepted),
            run_id=asked.run_id,
            request=accepted.message,
            round_one=state.round_one,
            latest=state.latest,
        ),
        timeout_ms=accepted.settings.turn_timeout_ms,
        exchange_id=accepted.exchange_id,
    )


def primary_step(command: OpenExchange, appends: Appends, now_ms: int) -> tuple[str, Enqueue]:
    """Return the message of a send, for its target (SEND-3, PROV-1, PROV-2)."""
    accepted, budget = command.accepted, command.budget
    queued = primary_run(accepted, command.run_timeout_ms)
    provenance = facts.Provenance(
        kind="inter_session",
        source_session_key=accepted.requester,
        source_channel=accepted.requester_channel,
        source_tool="sessions_send",
        exchange_id=accepted.exchange_id,
        turn=0,
        hops=budget.hops,
    )
    step = _step(budget, queued, message_for(queued, accepted.message, provenance, now_ms), appends)
    return accepted.target, replace(step, opening=command.opening, check_policy=True, at_most=command.at_most)


def turn_step(
    state: Exchange, turn: facts.TurnRequested, appends: Appends, now_ms: int
) -> tuple[str, Enqueue]:
    """Return a turn of the loop: the other one's latest reply, for the speaker (LOOP-1, LOOP-3)."""
    accepted, budget = state.accepted, state.budget
    speaks_for_target = turn.speaker == accepted.target
    other = accepted.requester if speaks_for_target else accepted.target
    queued = turn_run(state, turn)
    provenance = facts.Provenance(
        kind="inter_session",
        source_session_key=other,
        source_channel=accepted.requester_channel if speaks_for_target else accepted.target_channel,
        source_tool="sessions_send",
        exchange_id=accepted.exchange_id,
        turn=turn.turn,
        hops=budget.hops,
        edited_by=state.edited_by,
    )
    step = _step(budget, queued, message_for(queued, state.latest or "", provenance, now_ms), appends)
    return turn.speaker, replace(step, check_policy=True)


def announce_step(
    state: Exchange, asked: facts.AnnounceRequested, appends: Appends, now_ms: int
) -> tuple[str, Enqueue]:
    """Return the announce turn, for the target (ANN-1)."""
    accepted, budget = state.accepted, state.budget
    queued = announce_run(state, asked)
    provenance = facts.Provenance(
        kind="internal_system",
        source_session_key=accepted.requester,
        source_tool="sessions_send",
        exchange_id=accepted.exchange_id,
        hops=budget.hops,
    )
    message = message_for(queued, prompt.ANNOUNCE_PROMPT, provenance, now_ms)
    return accepted.target, _step(budget, queued, message, appends)


def _parties(accepted: facts.ExchangeAccepted) -> prompt.Parties:
    return msgspec.convert(accepted, prompt.Parties, from_attributes=True)


def _step(budget: facts.Budget, queued: facts.RunQueued, message: facts.Message, appends: Appends) -> Enqueue:
    own = appends[0]
    return Enqueue(
        budget=budget,
        message=message,
        queue=queued,
        session_id=queued.session_id,
        flow=own.stream,
        carried=appends,
        # The exchange's event that this step is: the cause of its message and its run.
        causation=own.drafts[-1].id,
    )
