"""Explains why a text reached nobody: refused by its channel, in doubt, forbidden, or still waiting."""

from collections.abc import Iterator

from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.explaining.explanation import Explanation, Input
from intersession_actors.hindsight.explaining.judged import explain_judged
from intersession_actors.hindsight.explaining.rules.failures import UNDELIVERED, Undelivered
from intersession_actors.hindsight.explaining.settings import InForce
from intersession_events import facts
from intersession_events.log.recorded import Recorded

Ending = facts.DeliveryFailed | facts.DeliveryUnknown | facts.DeliveryDenied | facts.DeliveryWithheld


def explain_ending(
    reader: Reader, in_force: InForce, recorded: Recorded, event: Ending
) -> Explanation | None:
    """Explain why an attempt to deliver a text was its last, or how it goes on."""
    decided = reader.log.stream(recorded.stream, to=1)
    first = decided[0].event if decided else None
    if not isinstance(first, facts.DeliveryDecided):
        return None
    code, said = _told(event)
    place = first.route.text
    inputs = _inputs(event, first, place, decided[0].position)
    whole = UNDELIVERED[code].explains(
        recorded, "delivery", code, f"{place} did not get it, {said}", inputs, named=first.delivery_id
    )
    if isinstance(event, facts.DeliveryDenied):
        return explain_judged(reader, in_force, whole, recorded, "policy_denied")
    return whole


def _told(event: Ending) -> tuple[Undelivered, str]:
    match event:
        case facts.DeliveryFailed(retry_at_ms=None):
            return "failed", f"attempt {event.attempt} was the last one ({event.error})"
        case facts.DeliveryFailed():
            return "retrying", f"attempt {event.attempt} failed ({event.error})"
        case facts.DeliveryUnknown(error=None):
            return "unknown", f"or it did: attempt {event.attempt} was cut off between call and receipt"
        case facts.DeliveryUnknown():
            return (
                "unknown",
                f"or it did: in attempt {event.attempt} the channel was in doubt ({event.error})",
            )
        case facts.DeliveryDenied():
            return "denied", f"the send policy forbade it ({event.rule})"
        case facts.DeliveryWithheld():
            return "withheld", "it would be delivered"


def _inputs(event: Ending, first: facts.DeliveryDecided, place: str, position: int) -> Iterator[Input]:
    yield Input(name="route", value=place, set_by="session", position=position)
    yield Input(name="purpose", value=first.purpose, set_by="log", position=position)
    match event:
        case facts.DeliveryFailed():
            yield Input(name="attempt", value=event.attempt, set_by="log")
            yield Input(name="error", value=event.error, set_by="channel")
            if event.retry_at_ms is not None:
                yield Input(name="retryAt", value=event.retry_at_ms, set_by="log", unit="time")
        case facts.DeliveryUnknown():
            yield Input(name="attempt", value=event.attempt, set_by="log")
            if event.error is not None:
                yield Input(name="error", value=event.error, set_by="channel")
        case facts.DeliveryDenied() | facts.DeliveryWithheld():
            yield Input(name="rule", value=event.rule, set_by="log")
