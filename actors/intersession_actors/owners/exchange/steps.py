"""The steps of an exchange as commands to a session's actor: the message, its run, and the exchange's own events. Pure."""

from functools import partial

from msgspec.structs import replace

from intersession_actors.owners.exchange.commands import OpenExchange
from intersession_actors.owners.exchange.exchange import Exchange
from intersession_actors.owners.flows.steps import Appends, step_of
from intersession_actors.owners.session.commands import Enqueue
from intersession_actors.owners.streams.effects import Through
from intersession_actors.owners.streams.texts import Replies
from intersession_actors.rules.prompt import instructions as prompt_instructions
from intersession_events import facts


def primary_run(accepted: facts.ExchangeAccepted, timeout_ms: int) -> facts.RunQueued:
    """Return the target's run on the message of a send (SEND-3)."""
    return facts.RunQueued(
        run_id=accepted.run_id,
        session_id=accepted.target_session_id,
        step="message",
        answers=accepted.message_id,
        instructions=_instructions("message.1", accepted, of_target=True),
        timeout_ms=timeout_ms,
        caller=accepted.caller,
        idempotency_key=accepted.idempotency_key,
        request_digest=accepted.request_digest,
        request_digests=accepted.request_digests,
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
        answers=turn.message_id,
        instructions=replace(
            _instructions("turn.1", accepted, of_target=of_target), turns=accepted.settings.max_turns
        ),
        timeout_ms=accepted.settings.turn_timeout_ms,
        exchange_id=accepted.exchange_id,
        turn=turn.turn,
    )


def announce_run(state: Exchange, asked: facts.AnnounceRequested, texts: Replies) -> facts.RunQueued:
    """Return the target's run on its announce turn (ANN-1)."""
    accepted = state.accepted
    return facts.RunQueued(
        run_id=asked.run_id,
        session_id=accepted.target_session_id,
        step="announce",
        answers=asked.message_id,
        instructions=replace(
            _instructions("announce.1", accepted, of_target=True),
            asked=facts.Quote(message_id=accepted.message_id)
            if accepted.message is None
            else accepted.message,
            replied=None if state.round_one is None else state.round_one.for_target(texts),
            latest=None if state.latest is None else state.latest.for_target(texts),
        ),
        timeout_ms=accepted.settings.turn_timeout_ms,
        exchange_id=accepted.exchange_id,
    )


def primary_step(command: OpenExchange, appends: Appends) -> tuple[str, Enqueue]:
    """Return the message of a send, for its target (SEND-3, PROV-1, PROV-2)."""
    accepted = command.accepted
    step = step_of(
        primary_run(accepted, command.run_timeout_ms),
        accepted.message or "",
        appends,
        command.budget,
        said_by=accepted.requester,
        channel=accepted.requester_channel,
        causation=_asking(appends),
    )
    return accepted.target, replace(step, opening=command.opening, check_policy=True, at_most=command.at_most)


def turn_step(
    state: Exchange, turn: facts.TurnRequested, latest: str, appends: Appends
) -> tuple[str, Enqueue]:
    """Return a turn of the loop: the other side's latest reply, for the speaker (LOOP-1, LOOP-3)."""
    accepted = state.accepted
    speaks_for_target = turn.speaker == accepted.target
    step = step_of(
        turn_run(state, turn),
        latest,
        appends,
        state.budget,
        said_by=accepted.requester if speaks_for_target else accepted.target,
        channel=accepted.requester_channel if speaks_for_target else accepted.target_channel,
        edited_by=state.edited_by,
        causation=_asking(appends),
    )
    return turn.speaker, replace(step, check_policy=True)


def announce_step(state: Exchange, queued: facts.RunQueued, appends: Appends) -> tuple[str, Enqueue]:
    """Return the announce turn, for the target (ANN-1)."""
    accepted = state.accepted
    return accepted.target, step_of(
        queued,
        prompt_instructions.ANNOUNCE_PROMPT,
        appends,
        state.budget,
        said_by=accepted.requester,
        kind="internal_system",
        causation=_asking(appends),
    )


def announced_text(after: Exchange, event: facts.AnnounceDecided, texts: Replies) -> str:
    """Return the announced text: the target's, or that of the release."""
    edited = None if event.edited_by is None or after.released is None else after.released.text
    return texts.reply(event.run_id or "") if edited is None else edited


def route_of(accepted: facts.ExchangeAccepted) -> facts.Route:
    """Return the route of an announce; without one of its own, a host's `webchat` (ANN-2)."""
    return accepted.route or facts.Route(channel="webchat", to=accepted.target)


def step_asked(after: Exchange, event: facts.Event, texts: Replies) -> Through | None:
    """Return the turn or the announce turn that an event asks for, if any; its cause is the exchange's own event."""
    match facts.run_asked_in(event):
        case facts.TurnRequested() as turn:
            return partial(turn_step, after, turn, "" if after.latest is None else after.latest.read(texts))
        case facts.AnnounceRequested() as announce:
            return partial(announce_step, after, announce_run(after, announce, texts))
        case _:
            return None


def _asking(appends: Appends) -> str:
    """Return the exchange's event that a step is: the cause of its message and its run."""
    return appends[0].drafts[-1].id


def _instructions(
    form: facts.Form, accepted: facts.ExchangeAccepted, *, of_target: bool
) -> facts.Instructions:
    """Return what one end of an exchange is told of both ends."""
    requester = accepted.requester, accepted.requester_channel
    target = accepted.target, accepted.target_channel
    own, other = (target, requester) if of_target else (requester, target)
    return facts.Instructions(
        form=form,
        session=own[0] or "",
        channel=own[1],
        other=other[0],
        other_channel=other[1],
        is_target=of_target,
    )
