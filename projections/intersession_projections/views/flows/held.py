"""Exchanges that are held, as every door shows them (LIVE-1)."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import ExchangeClosed, ExchangeHeld, ExchangeReleased, LoopEnded
from intersession_events.log.recorded import Recorded, parts_in
from intersession_projections.views.flows.rows import ExchangeSummary


class Hold(NamedTuple):
    """A stretch in which an exchange waited for a release, in ms; `until` is None as long as it does."""

    since: int
    until: int | None


def holds_in(events: Iterable[Recorded]) -> tuple[Hold, ...]:
    """Return the stretches in which an exchange was held, of its events in log order."""
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
    """Return how long an exchange was held, in the stretches that are over; `since` counts times, in ms, as its caller does."""
    return sum(since(hold.until) - since(hold.since) for hold in holds if hold.until is not None)


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
