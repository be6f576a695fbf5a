"""The rules of an exchange: primary run, reply-back loop, announce. The coordinator calls them: state and outcome in, events out.

No threads, no clock, no store: what is needed of them comes in as arguments, so that a recorded exchange, decided
again, gives the same events (`replay`).
"""

from functools import reduce
from typing import Final, Literal

import msgspec

from intersession_actors.owners.exchange.commands import (
    ExchangeCommand,
    HoldExchange,
    HoldRuled,
    OpenExchange,
    ReleaseExchange,
    StopAsking,
)
from intersession_actors.owners.exchange.exchange import Exchange, Quoted
from intersession_actors.owners.exchange.holds import (
    decide_hold,
    decide_release,
    evolve_held,
    evolve_released,
    held_by,
    order_before,
)
from intersession_actors.owners.flows import led
from intersession_actors.owners.streams.commands import DeliveryEnded, Refused, Resume, RunEnded, StepRefused
from intersession_actors.owners.streams.strays import foreign
from intersession_actors.rules.policy.chain import check_run
from intersession_actors.rules.policy.holding import HoldOrder
from intersession_actors.rules.prompt.silence import is_announce_skip, is_reply_skip, spoken, visible_text
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.basics.ids import announce_delivery
from intersession_events.log.recorded import Recorded

Gone = Literal["requester_gone", "target_gone"]
"""Who of the two is not there any more: it was reset or deleted since the exchange began."""

_NOBODY_HEARS: Final = "the session that it would have been said to was reset or deleted"


class Circumstances(led.Circumstances, frozen=True, kw_only=True):
    """The facts about the world that a decision needs, as they are now.

    `orders` are the holds beside the exchange's own settings, `wall_ms` is the time that a hold is recorded with,
    `held_ms` how long one has lasted. `gone` is who of the two is not there any more, as far as the coordinator has heard.
    """

    requester_has_agent: bool = True
    orders: tuple[HoldOrder, ...] = ()
    wall_ms: int = 0
    held_ms: int = 0
    gone: tuple[Gone, ...] = ()


def evolve(  # noqa: C901, PLR0912 - one case an event
    state: Exchange | None, event: facts.ExchangeEvent
) -> Exchange:
    """Apply one recorded event of the exchange's stream."""
    if isinstance(event, facts.ExchangeAccepted):
        return Exchange(accepted=event, pending=event.run_id)
    if state is None:
        raise ValueError(f"an exchange can't begin with {type(event).__name__}")
    replace = msgspec.structs.replace
    match event:
        case facts.TurnRequested():
            return replace(
                state, phase="turn", turn=event.turn, pending=event.run_id, latest=_heard(state, event)
            )
        case facts.TurnEnded(turn=0):
            first = _quoted(state, event)
            return replace(state, pending="", round_one=first, latest=first)
        case facts.TurnEnded():
            latest = _quoted(state, event) or state.latest
            return replace(state, pending="", latest=latest, previous=state.latest)
        case facts.LoopEnded():
            return replace(state, pending="")
        case facts.AnnounceRequested():
            return replace(state, phase="announce", pending=event.run_id)
        case facts.AnnounceDecided():
            return replace(state, phase="delivery", pending=event.delivery_id or "")
        case facts.HoldRequested():
            return replace(state, asked=event, withdrawn=False, unheld=False)
        case facts.HoldWithdrawn():
            return replace(state, asked=None, withdrawn=True)
        case facts.ExchangeHeld():
            return evolve_held(state, event)
        case facts.ExchangeReleased():
            return evolve_released(state, event)
        case facts.ExchangeClosed():
            return replace(state, phase="closed", pending="")


def _quoted(state: Exchange, ended: facts.TurnEnded) -> Quoted | None:
    """Return the text with which a turn has ended; None where it has ended without one."""
    if ended.said != "text":
        return None
    # An import has no run whose messages the target's transcript could name.
    is_there = ended.in_transcript and ended.speaker == state.accepted.target and not state.accepted.inferred
    return Quoted(ended.run_id, ended.text, facts.Quote(run_id=ended.run_id) if is_there else None)


def _heard(state: Exchange, asked: facts.TurnRequested) -> Quoted | None:
    """Return the latest text; where the target is asked for a turn, it is the message that it hears."""
    latest, accepted = state.latest, state.accepted
    if latest is None or asked.speaker != accepted.target or accepted.inferred:
        return latest
    return msgspec.structs.replace(latest, heard=facts.Quote(message_id=asked.message_id))


def fold(state: Exchange | None, recorded: Recorded) -> Exchange:
    """Apply one event as it was recorded."""
    if not isinstance(recorded.event, facts.ExchangeEvent):
        raise foreign(recorded)
    first, *then = [part for part in facts.parts_of(recorded.event) if isinstance(part, facts.ExchangeEvent)]
    return reduce(evolve, then, evolve(state, first))


def decide_open(accepted: facts.ExchangeAccepted, budget: facts.Budget) -> facts.ExchangeAccepted:
    """Return the beginning of an exchange, with its causal chain's budget. The target's run has the message."""
    return msgspec.structs.replace(accepted, budget=budget, message=None)


def decide(  # noqa: C901 - one case a command
    state: Exchange, outcome: ExchangeCommand, now: Circumstances
) -> list[facts.ExchangeEvent] | Refused:
    """Return the events of the pending run's or delivery's outcome, or of a caller's command; none for an outdated one.

    `Resume` goes on from a release that nothing followed yet.
    """
    match outcome:
        case HoldExchange():
            return decide_hold(state, outcome)
        case Resume():
            return go_on(state, now)
        case RunEnded():
            if outcome.run_id != state.pending:
                return []
            match state.phase:
                case "primary" | "turn":
                    return _turn_ended(state, outcome, now)
                case "announce":
                    return _announce_ended(state, outcome, now)
                case "held" | "released" | "delivery" | "closed":
                    return []
        case DeliveryEnded():
            return _delivery_ended(state, outcome)
        case ReleaseExchange():
            return _released(state, outcome, now)
        case OpenExchange() | HoldRuled() | StopAsking():
            return []


def _turn_ended(state: Exchange, outcome: RunEnded, now: Circumstances) -> list[facts.ExchangeEvent]:
    is_first, is_ok = state.turn == 0, outcome.status == "ok"
    said = spoken(outcome.text) if is_first else visible_text(outcome.text) if is_ok else None
    ended = facts.TurnEnded(
        turn=state.turn,
        speaker=speaker_of(state.accepted, state.turn),
        run_id=outcome.run_id,
        status=outcome.status,
        said="nothing" if said is None else "skip" if not is_first and is_reply_skip(said) else "text",
        in_transcript=outcome.in_transcript,
    )
    after = evolve(state, ended)
    if is_ok and ended.said == "text":
        return [ended, *_unless_held(after, now)]
    return [ended, *(_over(outcome) if is_first else _stopped(after, outcome, now))]


def _over(outcome: RunEnded) -> list[facts.ExchangeEvent]:
    """Return the end of an exchange whose first run said nothing that could go on."""
    if outcome.status == "ok":
        return [facts.ExchangeClosed(reason="no_reply")]
    reason: facts.CloseReason = "aborted" if outcome.status == "aborted" else "run_failed"
    return [facts.ExchangeClosed(reason=reason, note=outcome.error)]


def _stopped(state: Exchange, outcome: RunEnded, now: Circumstances) -> list[facts.ExchangeEvent]:
    """Return the end of a loop by a turn that said nothing that could go on."""
    if outcome.gone:
        return _end_loop(state, now, _gone(state.accepted, state.turn), note=outcome.error)
    match outcome.status:
        case "timeout":
            return _end_loop(state, now, "turn_timeout", note=outcome.error)
        case "aborted":
            return _end_loop(state, now, "aborted")
        case "ok":
            return _end_loop(state, now, "no_text" if visible_text(outcome.text) is None else "reply_skip")
        case _:
            return _end_loop(state, now, "turn_failed", note=outcome.error)


def _unless_held(state: Exchange, now: Circumstances) -> list[facts.ExchangeEvent]:
    """Return what follows a reply, or that it is held: one that is to go on to the other session (LIVE-1)."""
    following = _next(state, now)
    first = following[0]
    accepted = state.accepted
    # The first reply goes to the waiting caller, loop or not.
    goes_on = isinstance(first, facts.TurnRequested) or (state.turn == 0 and accepted.requester is not None)
    if _gone(accepted, state.turn + 1) in now.gone:
        goes_on = False  # nobody is asked about words that would go on to nobody: that ends the loop
    order = order_before(state, "reply", now.orders) if goes_on else None
    if order is None:
        return following
    speaker = speaker_of(accepted, state.turn)
    return [
        held_by(
            order,
            state,
            log_id=now.log_id,
            since_ms=now.wall_ms,
            step="reply",
            run_id="" if state.latest is None else state.latest.run_id,
            speaker=speaker,
            to=accepted.requester if speaker == accepted.target else accepted.target,
            following=first,
        )
    ]


def _released(
    state: Exchange, command: ReleaseExchange, now: Circumstances
) -> list[facts.ExchangeEvent] | Refused:
    events = decide_release(state, command, now.held_ms)
    if isinstance(events, Refused) or not events:
        return events
    after = evolve(state, events[0])
    return [*events, *go_on(after, now)] if after.phase == "released" else events


def go_on(state: Exchange, now: Circumstances) -> list[facts.ExchangeEvent]:
    """Return the events of a release (LIVE-1); none while the next turn's agent is missing.

    What is dropped is as if it had not been said: no text ends the loop (LOOP-2), no reply has none (SEND-5), no announce
    is silence (ANN-1).
    """
    held, released = state.held, state.released
    if held is None or released is None:
        return []
    if held.step == "announce":
        return _announce_released(state, held, released, now)
    match released.action:
        case "end":
            ended = facts.LoopEnded(reason="ended", turns=state.turn, note=released.by)
            return [ended, facts.ExchangeClosed(reason="ended", note=released.by)]
        case "drop" if held.turn == 0:
            return [facts.ExchangeClosed(reason="dropped", note=released.by)]
        case "drop":
            return _end_loop(state, now, "dropped", note=released.by)
        case "go_on" | "edit":
            waits = held.next_turn is not None and not now.requester_has_agent
            return [] if waits else _next(state, now)


def _announce_released(
    state: Exchange, held: facts.ExchangeHeld, released: facts.ExchangeReleased, now: Circumstances
) -> list[facts.ExchangeEvent]:
    match released.action:
        case "drop" | "end":
            reason: facts.CloseReason = "silent" if released.action == "drop" else "ended"
            return [
                facts.AnnounceDecided(silent=True, why="dropped", run_id=held.run_id),
                facts.ExchangeClosed(reason=reason, note=released.by),
            ]
        case "go_on" | "edit":
            by = None if released.text is None else released.by
            return _announced(state, facts.AnnounceDecided(run_id=held.run_id, edited_by=by), now)


def _next(state: Exchange, now: Circumstances) -> list[facts.ExchangeEvent]:
    """Return the next turn, or why there is none (LOOP-2, LOOP-4, LOOP-5)."""
    accepted = state.accepted
    settings = accepted.settings
    if not accepted.loop or accepted.requester is None:
        reason: facts.LoopEnd = accepted.loop_reason or "no_requester"
        return _end_loop(state, now, reason)
    if state.turn >= settings.max_turns:
        return _end_loop(state, now, "turn_limit", limit="session.agentToAgent.maxPingPongTurns")
    if not now.requester_has_agent:
        return _end_loop(state, now, "no_agent", note=accepted.requester)
    tripped = check_run(state.budget, now.spent, now.now_ms)
    if tripped is not None:
        note = f"{tripped.value} of {tripped.allowed}"
        return _end_loop(state, now, tripped.limit, limit=tripped.setting, note=note, used=tripped.value)
    turn = state.turn + 1
    listener = _gone(accepted, turn + 1)
    if listener in now.gone:
        return _end_loop(state, now, listener, note=_NOBODY_HEARS)
    run_id = ids.derive(now.log_id, "run", accepted.exchange_id, "turn", turn)
    refusal = now.refused.get(run_id)
    if refusal is not None:
        reason = _why_refused(accepted, turn, refusal)
        return _end_loop(state, now, reason, note=refusal.error)
    return [
        facts.TurnRequested(
            turn=turn,
            speaker=speaker_of(accepted, turn),
            run_id=run_id,
            message_id=ids.derive(now.log_id, "message", run_id),
        )
    ]


def _end_loop(
    state: Exchange,
    now: Circumstances,
    reason: facts.LoopEnd,
    *,
    limit: str | None = None,
    note: str | None = None,
    used: int | None = None,
) -> list[facts.ExchangeEvent]:
    """End the loop, and ask for the announce (ANN-1), unless there is nowhere for it and that saves the turn.

    It is a run of the chain like any other: where a guard trips there is none, and nothing is announced (LOOP-5).
    """
    ended = facts.LoopEnded(reason=reason, turns=state.turn, limit=limit, note=note, used=used)
    accepted = state.accepted
    if accepted.settings.announce == "routed" and accepted.route is None:
        return [
            ended,
            facts.AnnounceDecided(silent=True, why="not_routed"),
            facts.ExchangeClosed(reason="no_route"),
        ]
    tripped = check_run(state.budget, now.spent, now.now_ms)
    if tripped is not None:
        return [
            ended,
            facts.AnnounceDecided(silent=True, why="limit", limit=tripped.setting),
            facts.ExchangeClosed(
                reason="announce_failed", note=tripped.words, limit=tripped.setting, used=tripped.value
            ),
        ]
    asked = led.announce_requested(now.log_id, accepted.exchange_id, accepted.target)
    refusal = now.refused.get(asked.run_id)
    if refusal is not None:
        return [ended, *_no_announce(gone=refusal.code == "not_visible", note=refusal.error)]
    return [ended, asked]


def _no_announce(
    *, gone: bool, note: str | None, outcome: RunEnded | None = None
) -> list[facts.ExchangeEvent]:
    """Return the end of an exchange whose target could not be asked, or failed to say, what to announce."""
    decided = facts.AnnounceDecided(
        silent=True, why="run_failed", run_id=outcome.run_id if outcome is not None else None
    )
    return [decided, facts.ExchangeClosed(reason="target_gone" if gone else "announce_failed", note=note)]


def _why_refused(accepted: facts.ExchangeAccepted, turn: int, refusal: StepRefused) -> facts.LoopEnd:
    if refusal.code == "policy_denied":
        return "policy_denied"
    if refusal.code != "not_visible":
        return "turn_failed"
    return _gone(accepted, turn)


def _gone(accepted: facts.ExchangeAccepted, turn: int) -> Gone:
    """Say which of the two is gone: the one whose turn it was to be."""
    return "requester_gone" if speaker_of(accepted, turn) == accepted.requester else "target_gone"


def _announce_ended(state: Exchange, outcome: RunEnded, now: Circumstances) -> list[facts.ExchangeEvent]:
    if outcome.status != "ok":
        return _no_announce(gone=outcome.gone, note=outcome.error, outcome=outcome)
    text = visible_text(outcome.text)
    if text is None or is_announce_skip(text):
        why: Literal["no_text", "announce_skip"] = "no_text" if text is None else "announce_skip"
        return [
            facts.AnnounceDecided(silent=True, why=why, run_id=outcome.run_id),
            facts.ExchangeClosed(reason="silent"),
        ]
    order = order_before(state, "announce", now.orders)
    if order is not None:
        target = state.accepted.target
        return [
            held_by(
                order,
                state,
                log_id=now.log_id,
                since_ms=now.wall_ms,
                step="announce",
                run_id=outcome.run_id,
                speaker=target,
            )
        ]
    return _announced(state, facts.AnnounceDecided(run_id=outcome.run_id), now)


def _announced(
    state: Exchange, decided: facts.AnnounceDecided, now: Circumstances
) -> list[facts.ExchangeEvent]:
    """Return a text that is announced: it goes into the outbox, or nowhere (ANN-2)."""
    if not now.has_route:
        return [decided, facts.ExchangeClosed(reason="no_route")]
    delivery_id = announce_delivery(now.log_id, state.accepted.exchange_id)
    return [msgspec.structs.replace(decided, delivery_id=delivery_id)]


def _delivery_ended(state: Exchange, outcome: DeliveryEnded) -> list[facts.ExchangeEvent]:
    if state.phase != "delivery" or outcome.delivery_id != state.pending:
        return []
    reason: facts.CloseReason = led.ENDS[outcome.outcome]
    if reason == "announced" and state.accepted.route is None:
        reason = "no_route"  # it was given to the host that listens to `webchat` (ANN-2)
    return [facts.ExchangeClosed(reason=reason, note=outcome.note)]


def speaker_of(accepted: facts.ExchangeAccepted, turn: int) -> str:
    """Return the speaker of a turn: the requester in odd turns, the target in even ones (LOOP-1)."""
    if turn % 2 == 1 and accepted.requester is not None:
        return accepted.requester
    return accepted.target
