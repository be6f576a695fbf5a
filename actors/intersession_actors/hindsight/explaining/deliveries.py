"""Explains why a text reached nobody: refused by its channel, in doubt, forbidden, or still waiting."""

from collections.abc import Iterator

from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.explaining.explanation import Explanation, Input
from intersession_actors.hindsight.explaining.judged import explain_judged
from intersession_actors.hindsight.explaining.rules.failures import UNDELIVERED, Undelivered
from intersession_actors.hindsight.explaining.settings import InForce
from intersession_events import facts
from intersession_events.log.recorded import Recorded


def explain_ending(
    reader: Reader, in_force: InForce, recorded: Recorded, event: facts.DeliveryFact
) -> Explanation | None:
    """Explain why an attempt to deliver a text was its last, or how it goes on."""
    decided = reader.log.stream(recorded.stream, to=1)
    first = decided[0].event if decided else None
    became = _told(event)
    if not isinstance(first, facts.DeliveryDecided) or became is None:
        return None
    code, said = became
    place = first.route.text
    inputs = _inputs(event, first, place, decided[0].position)
    whole = UNDELIVERED[code].explains(
        recorded, "delivery", code, f"{place} did not get it, {said}", inputs, named=first.delivery_id
    )
    if event.state == "denied":
        return explain_judged(reader, in_force, whole, recorded, "policy_denied")
    return whole


def _told(event: facts.DeliveryFact) -> tuple[Undelivered, str] | None:
    """Return what became of the text; None where it arrived, or is on its way."""
    attempt = f"attempt {event.attempt}" if isinstance(event, facts.DeliveryAttempt) else ""
    match event.state:
        case "failed":
            return "failed", f"{attempt} was the last one ({event.trouble})"
        case "retrying" if attempt:
            return "retrying", f"{attempt} failed ({event.trouble})"
        case "unknown" if event.trouble is None:
            return "unknown", f"or it did: {attempt} was cut off between call and receipt"
        case "unknown":
            return "unknown", f"or it did: in {attempt} the channel was in doubt ({event.trouble})"
        case "denied":
            return "denied", f"the send policy forbade it ({event.trouble})"
        case "withheld":
            return "withheld", "it would be delivered"
        case _:
            return None


def _inputs(
    event: facts.DeliveryFact, first: facts.DeliveryDecided, place: str, position: int
) -> Iterator[Input]:
    yield Input(name="route", value=place, set_by="session", position=position)
    yield Input(name="purpose", value=first.purpose, set_by="log", position=position)
    if isinstance(event, facts.DeliveryDenied | facts.DeliveryWithheld):
        yield Input(name="rule", value=event.rule, set_by="log")
    if isinstance(event, facts.DeliveryAttempt):
        yield Input(name="attempt", value=event.attempt, set_by="log")
        if event.trouble is not None:
            yield Input(name="error", value=event.trouble, set_by="channel")
    if isinstance(event, facts.DeliveryFailed) and event.retry_at_ms is not None:
        yield Input(name="retryAt", value=event.retry_at_ms, set_by="log", unit="time")
