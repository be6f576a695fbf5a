"""Which texts of an exchange are held before they go on, and the events of holds and releases (LIVE-1). Pure."""

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from intersession_actors.owners.exchange.commands import HoldExchange, ReleaseExchange
from intersession_actors.owners.exchange.exchange import Exchange, Quoted
from intersession_actors.owners.streams.commands import Refused
from intersession_actors.rules.policy.holding import HoldOrder
from intersession_actors.rules.prompt.silence import is_announce_skip, spoken, visible_text
from intersession_events import facts
from intersession_events.basics import ids

_SETTING: Final = "session.agentToAgent.hold"
_OF_RUN: Final = "run"


def order_before(state: Exchange, step: facts.HeldText, orders: Iterable[HoldOrder]) -> HoldOrder | None:
    """Return the order by which a text is held; None if it goes on.

    `orders` are those that are not the exchange's own. Each stops an exchange once, save those that want every text.
    """
    if state.unheld:
        return None
    return next((order for order in (*_own(state), *orders) if stops(order, step, state.served)), None)


def stops(order: HoldOrder, step: facts.HeldText, served: Collection[str]) -> bool:
    """Whether an order stops an exchange before a step; `served` are those that have stopped it already."""
    if order.before == "every-turn":
        return True
    return order.before in {"next", step} and order.order not in served


def may_hold(state: Exchange) -> bool:
    """Whether any of an exchange's own settings asks for a hold."""
    return state.asked is not None or state.accepted.settings.hold != "off"


def _own(state: Exchange) -> Iterable[HoldOrder]:
    asked, setting = state.asked, state.accepted.settings.hold
    if asked is not None:
        yield HoldOrder(source="run", before=asked.before, by=asked.by, order=_OF_RUN)
    if setting != "off":
        yield HoldOrder(source="setting", before=setting, by=_SETTING, order=_SETTING)


def held_by(
    order: HoldOrder,
    state: Exchange,
    *,
    log_id: str,
    since_ms: int,
    step: facts.HeldText,
    run_id: str,
    speaker: str,
    to: str | None = None,
    following: facts.ExchangeEvent | None = None,
) -> facts.ExchangeHeld:
    """Return the event that a run's text is held by an order; `following` is what it would go on with."""
    ended = following if isinstance(following, facts.LoopEnded) else None
    return facts.ExchangeHeld(
        hold_id=ids.derive(log_id, "hold", state.accepted.exchange_id, step, state.turn),
        step=step,
        run_id=run_id,
        speaker=speaker,
        since_ms=since_ms,
        before=order.before,
        source=order.source,
        by=order.by,
        order=order.order,
        to=to,
        turn=state.turn,
        next_turn=following.turn if isinstance(following, facts.TurnRequested) else None,
        next_end=None if ended is None else ended.reason,
        next_limit=None if ended is None else ended.limit,
        next_note=None if ended is None else ended.note,
        next_used=None if ended is None else ended.used,
        note=order.note,
    )


def evolve_held(state: Exchange, event: facts.ExchangeHeld) -> Exchange:
    """Return an exchange that was stopped."""
    once = event.before != "every-turn"
    return msgspec.structs.replace(
        state,
        phase="held",
        pending="",
        held=event,
        withdrawn=False,
        asked=None if once and event.source == "run" else state.asked,
        served=state.served | {event.order} if once and event.source != "run" else state.served,
    )


def evolve_released(state: Exchange, event: facts.ExchangeReleased) -> Exchange:
    """Return an exchange that was released: with the original text, or its replacement."""
    held = state.held
    state = msgspec.structs.replace(
        state,
        phase="released",
        released=event,
        held_ms=state.held_ms + event.held_ms,
        unheld=state.unheld or event.for_good,
        asked=None if event.for_good else state.asked,
    )
    if held is None or held.step == "announce":
        return state
    if event.action == "drop":
        return msgspec.structs.replace(state, latest=state.previous)
    if event.action == "edit":
        anew = Quoted(held.run_id or "", event.text)
        first = anew if held.turn == 0 else state.round_one
        return msgspec.structs.replace(state, latest=anew, round_one=first)
    return state


def decide_hold(state: Exchange, command: HoldExchange) -> list[facts.ExchangeEvent] | Refused:
    """Return the event that orders a hold; none if it is known, or has stopped the exchange already."""
    before, held = command.before, state.held
    if state.accepted.inferred:
        return _no("it was imported, and goes on no more; hold one that is not over")
    if state.phase in {"delivery", "closed"}:
        return _no("nothing of its exchange is still to go on, hold one that is not over")
    if before == "reply" and state.is_announcing:
        return _no("its loop is over and no reply is to come, hold it before the announce")
    if held is not None and state.phase == "held" and before in {"next", held.before}:
        return []
    if state.asked is not None and state.asked.before == before:
        return []
    return [facts.HoldRequested(before=before, by=command.by)]


def decide_release(
    state: Exchange, command: ReleaseExchange, held_ms: int
) -> list[facts.ExchangeEvent] | Refused:
    """Return the event of a release; none if it is released already."""
    held, last = state.held, state.released
    named = command.hold_id
    is_over = state.phase in {"delivery", "closed"}
    if held is not None and state.phase == "held" and named in {None, held.hold_id}:
        return _released(held, command, held_ms)
    waits = state.asked is not None and state.phase != "held" and not is_over
    if waits and named is None and command.action == "go_on":
        return [facts.HoldWithdrawn(by=command.by)]
    if state.withdrawn and named is None and command.action == "go_on":
        return []
    if last is not None and named in {None, last.hold_id}:
        if (last.action, last.text) == (command.action, command.text):
            return []
        return _no(f"it was released by {last.by} already ({last.action}), which can't be changed")
    if named is not None:
        return _no(
            "it is not held by this holdId (any more), `intersession runs --held` shows what is", "holdId"
        )
    if waits:
        return _no("it has not stopped yet, so there is no text; release it without one, or wait")
    return _no("it is not held, `intersession runs --held` shows what is")


def _released(
    held: facts.ExchangeHeld, command: ReleaseExchange, held_ms: int
) -> list[facts.ExchangeEvent] | Refused:
    text = command.text
    if command.action == "edit":
        said = spoken(text) if held.step == "reply" else visible_text(text)
        if said is None or (held.step == "announce" and is_announce_skip(said)):
            return _no("it says nothing that could go on; drop the text instead, or end the exchange", "text")
    return [
        facts.ExchangeReleased(
            hold_id=held.hold_id,
            action=command.action,
            by=command.by,
            held_ms=held_ms,
            text=text,
            for_good=command.for_good,
        )
    ]


def _no(error: str, field: str = "runId") -> Refused:
    return Refused(code="invalid_request", error=f"{field}: {error}")
