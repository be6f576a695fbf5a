"""What the record of an exchange's decision says of its command and of what was known, and how both are read again. Pure."""

import msgspec

from intersession_actors.exchange.commands import ExchangeCommand, HoldExchange, ReleaseExchange
from intersession_actors.exchange.exchange import Exchange
from intersession_actors.exchange.rules import Circumstances
from intersession_actors.policy import HoldOrder, age_s, time_at_age
from intersession_actors.streams import (
    Record,
    Words,
    digest_of,
    present,
    refused_in,
    refused_of,
    spent_in,
    spent_of,
)
from intersession_events import facts
from intersession_events.plain_json import JsonMapping, JsonObject


def inputs_of(command: ExchangeCommand) -> JsonObject:
    """Return what a record says of a command beside its name: nothing, where events say it."""
    match command:
        case HoldExchange():
            return {"before": command.before, "by": command.by}
        case ReleaseExchange():
            return present(
                {
                    "action": command.action,
                    "by": command.by,
                    "forGood": command.for_good,
                    "text": None if command.text is None else digest_of(command.text),
                }
            )
        case _:
            return {}


def knew_of(state: Exchange, now: Circumstances) -> JsonObject:
    """Return what a record says of circumstances: what is not as it nearly always is."""
    return present(
        {
            "age": age_s(_budget(state, now.held_ms), now.now_ms) if now.now_ms else 0,
            "gone": now.gone,
            "hasRoute": now.has_route,
            "heldMs": now.held_ms,
            "noAgent": not now.requester_has_agent,
            "orders": [_order(order) for order in now.orders],
            "refused": refused_of(now.refused),
            "spent": spent_of(now.spent),
            "wallMs": now.wall_ms,
        }
    )


def command_in(record: Record, stream: str, words: Words) -> HoldExchange | ReleaseExchange | None:
    """Return the command of a record, where the record says all of it; None where events do."""
    given = record.inputs
    if record.asked == HoldExchange.__name__:
        return HoldExchange(stream=stream, before=given["before"], by=given["by"])
    if record.asked == ReleaseExchange.__name__:
        return ReleaseExchange(
            stream=stream,
            action=given["action"],
            by=given["by"],
            text=words(given["text"]) if "text" in given else None,
            for_good=given.get("forGood", False),
        )
    return None


def circumstances_in(
    record: Record, state: Exchange, *, log_id: str, stream: str, words: Words
) -> Circumstances:
    """Return the circumstances that a record tells of."""
    knew = record.knew
    held_ms: int = knew.get("heldMs", 0)
    return Circumstances(
        log_id=log_id,
        now_ms=time_at_age(_budget(state, held_ms), knew.get("age", 0)),
        requester_has_agent=not knew.get("noAgent", False),
        has_route=knew.get("hasRoute", False),
        refused=refused_in(knew, stream, words),
        spent=spent_in(knew),
        orders=tuple(_order_in(order, words) for order in knew.get("orders", ())),
        wall_ms=knew.get("wallMs", 0),
        held_ms=held_ms,
        gone=tuple(knew.get("gone", ())),
    )


def _budget(state: Exchange, held_ms: int) -> facts.Budget:
    """Return the chain's budget as it is once what is held now has been let go on."""
    budget = state.budget
    return msgspec.structs.replace(budget, held_ms=budget.held_ms + held_ms) if held_ms else budget


def _order(order: HoldOrder) -> JsonObject:
    return present(
        {
            "before": order.before,
            "by": order.by,
            "note": None if order.note is None else digest_of(order.note),
            "order": order.order,
            "source": order.source,
        }
    )


def _order_in(order: JsonMapping, words: Words) -> HoldOrder:
    note = order.get("note")
    return HoldOrder(
        source=order["source"],
        before=order["before"],
        by=order.get("by", ""),
        order=order.get("order", ""),
        note=None if note is None else words(note),
    )
