"""Decision records of exchanges: how commands and circumstances are written, and read again. Pure."""

from typing import Final

from msgspec.structs import asdict, replace

from intersession_actors.owners.exchange.commands import ExchangeCommand, HoldExchange, ReleaseExchange
from intersession_actors.owners.exchange.effects import effects
from intersession_actors.owners.exchange.exchange import Exchange
from intersession_actors.owners.exchange.rules import Circumstances, decide, fold
from intersession_actors.owners.flows import led
from intersession_actors.owners.flows.rules import RecordRead, Rules
from intersession_actors.owners.streams.records import Wording, Words, present
from intersession_actors.rules.policy.holding import HoldOrder
from intersession_events import facts
from intersession_events.basics.plain_json import JsonMapping, JsonObject


def inputs_of(command: ExchangeCommand) -> JsonObject:
    """Return a command's fields in a record, beside its name: none that events tell."""
    match command:
        case HoldExchange():
            return {"before": command.before, "by": command.by}
        case ReleaseExchange():
            return present(
                {
                    "action": command.action,
                    "by": command.by,
                    "forGood": command.for_good,
                    "text": None if command.text is None else Wording(command.text),
                }
            )
        case _:
            return {}


def knew_of(state: Exchange, now: Circumstances) -> JsonObject:
    """Return the circumstances in a record: only values that differ from the usual ones."""
    knew = led.knew_of(_budget(state, now.held_ms), now)
    if now.gone:
        knew["gone"] = now.gone
    if now.held_ms:
        knew["heldMs"] = now.held_ms
    if not now.requester_has_agent:
        knew["noAgent"] = True
    if now.orders:
        knew["orders"] = [_order(order) for order in now.orders]
    if now.wall_ms:
        knew["wallMs"] = now.wall_ms
    return knew


def command_in(read: RecordRead) -> HoldExchange | ReleaseExchange | None:
    """Return the command of a record that is complete by itself; None if events tell it."""
    inputs = read.record.inputs
    match read.record.asked:
        case "HoldExchange":
            return HoldExchange(stream=read.stream, before=inputs["before"], by=inputs["by"])
        case "ReleaseExchange":
            return ReleaseExchange(
                stream=read.stream,
                action=inputs["action"],
                by=inputs["by"],
                text=read.words(inputs["text"]) if "text" in inputs else None,
                for_good=inputs.get("forGood", False),
            )
        case _:
            return None


def circumstances_in(read: RecordRead, state: Exchange) -> Circumstances:
    """Return the circumstances from a record."""
    knew = read.record.knew
    held_ms: int = knew.get("heldMs", 0)
    return Circumstances(
        **asdict(led.circumstances_in(read, _budget(state, held_ms))),
        requester_has_agent=not knew.get("noAgent", False),
        orders=tuple(_order_in(order, read.words) for order in knew.get("orders", ())),
        wall_ms=knew.get("wallMs", 0),
        held_ms=held_ms,
        gone=tuple(knew.get("gone", ())),
    )


def _budget(state: Exchange, held_ms: int) -> facts.Budget:
    """Return the chain's budget after the present hold was released."""
    budget = state.budget
    return replace(budget, held_ms=budget.held_ms + held_ms) if held_ms else budget


def _order(order: HoldOrder) -> JsonObject:
    return present(
        {
            "before": order.before,
            "by": order.by,
            "note": None if order.note is None else Wording(order.note),
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


RULES: Final = Rules[Exchange, ExchangeCommand, Circumstances](
    commands=ExchangeCommand,
    events=facts.ExchangeEvent,
    begins=facts.ExchangeAccepted,
    fold=fold,
    decide=decide,
    effects=effects,
    inputs_of=inputs_of,
    knew_of=knew_of,
    command_in=command_in,
    circumstances_in=circumstances_in,
)
