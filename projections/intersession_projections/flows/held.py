"""Exchanges that are held, as every door shows them (LIVE-1)."""

from intersession_events.facts import ExchangeHeld
from intersession_events.log import Log
from intersession_events.plain_json import JsonObject, present
from intersession_projections.flows.rows import ExchangeSummary


def held_value(exchange: ExchangeSummary) -> JsonObject:
    """Return where an exchange has stopped, by whose word, and since when (ms); without the text, which is somebody's words."""
    return present(
        {
            "runId": exchange.run_id,
            "exchangeId": exchange.exchange_id,
            "holdId": exchange.hold_id,
            "step": exchange.held,
            "requester": exchange.requester,
            "target": exchange.target,
            "by": exchange.held_by,
            "since": exchange.held_since_ms,
        }
    )


def held_in(log: Log, exchange: ExchangeSummary) -> ExchangeHeld | None:
    """Return the event by which an exchange is held now; None if it is not. Its text is what waits."""
    for recorded in reversed(log.stream(exchange.stream)):
        if isinstance(recorded.event, ExchangeHeld) and recorded.event.hold_id == exchange.hold_id:
            return recorded.event
    return None
