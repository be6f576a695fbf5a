"""Held exchanges, as every door shows them (LIVE-1)."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import ExchangeClosed, ExchangeHeld, ExchangeReleased, LoopEnded
from intersession_events.log.recorded import Recorded, parts_in
from intersession_projections.views.flows.rows import ExchangeSummary


class Hold(NamedTuple):
    """A period in which an exchange waited for a release, in ms; `until` is None while it lasts."""

    since: int
    until: int | None


def holds_in(events: Iterable[Recorded]) -> tuple[Hold, ...]:
    """Return the periods in which an exchange was held, from its events in log order."""
    found: list[Hold] = []
    for recorded in parts_in(events):
        match recorded.event:
            case ExchangeHeld():
                found.append(Hold(recorded.time, None))
            # An abort, or a session that is gone, ends an exchange that is held as well.
            case ExchangeReleased() | LoopEnded() | ExchangeClosed() if found and found[-1].until is None:
                found[-1] = Hold(found[-1].since, recorded.time)
            case _:
                pass
    return tuple(found)


def held_ms(holds: Iterable[Hold], since: Callable[[int], int] = int) -> int:
    """Return how long an exchange was held, in periods that are over; `since` is a time in ms of the caller's clock."""
    return sum(since(hold.until) - since(hold.since) for hold in holds if hold.until is not None)


def held_value(exchange: ExchangeSummary) -> JsonObject:
    """Return where an exchange was stopped, by whom, and since when (ms); without the held text."""
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
