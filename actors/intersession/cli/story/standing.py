"""How a flow stands with its deliveries, and whether anybody works on it: what `runs` and `replay` say of it."""

from intersession.cli.shell.times import clock, moment
from intersession_actors.hindsight.debugger.lists.runs import Stands
from intersession_projections.questions.flow_summary import in_words
from intersession_projections.views.flows.rows import DeliveryNote, DeliverySummary
from intersession_projections.views.run_outcomes.outcome import RunOutcome


def can_be_retried(standing: Stands) -> bool:
    """Whether it is a run that failed, and nobody has tried it again."""
    flow = standing.flow
    return isinstance(flow, RunOutcome) and flow.failed and flow.is_alone and standing.retry is None


def standing_in_words(standing: Stands) -> str:
    """Return where a flow stands, and what became of its texts."""
    flow, at_work = standing.flow, standing.at_work is not False
    # How a flow was closed says already what became of its announce, and an open one who goes on with it.
    closed = None if isinstance(flow, RunOutcome) else flow.close_reason
    of_close = _CLOSED_BY.get(closed or "")
    told = [
        delivery_in_words(row, note, at_work=at_work, goes_on=standing.is_open)
        for row, note in standing.deliveries
        if isinstance(flow, RunOutcome) or row.state not in {"done", of_close}
    ]
    if standing.held is not None:
        told.append(f"the {standing.held.step} that waits: {standing.held.text}")
    if standing.retry is not None:
        told.append(f"tried again by {standing.retry.run_id}: {in_words(standing.retry, at_work=at_work)}")
    if standing.smells:
        told.append(f"smells: {', '.join(dict.fromkeys(smell['code'] for smell in standing.smells))}")
    going = at_work or standing.frozen
    how = in_words(flow, at_work=going, waits=_waits(standing, going=going))
    meant = [
        f"{_place(row, note)}{_late(row, note) if row.state == 'done' else _why(note)}"
        for row, note in standing.deliveries
        if row.state == of_close
    ]
    if meant:  # how it was closed stands last
        how = f"{how} to {' and '.join(meant)}"
    return "; ".join([how, *(["FROZEN in this fork"] if standing.frozen else []), *told])


def _waits(standing: Stands, *, going: bool) -> str | None:
    """Return what it waits for, and since when; None for what is over or frozen."""
    if standing.not_over is None or standing.frozen:
        return None
    waits, brief, cut_off = standing.not_over
    at = "" if waits.since_ms is None else moment(waits.since_ms)
    if not going and cut_off is not None:
        return f"{cut_off}, begun at {at}" if at else cut_off
    return f"{brief} since {at}" if at else brief


_CLOSED_BY = {
    "announced": "done",
    "announce_failed": "failed",
    "announce_denied": "denied",
    "delivery_unknown": "unknown",
}
"""In which state the text of an announce is, by how its flow was closed."""


def _why(note: DeliveryNote | None) -> str:
    return f": {note.error}" if note is not None and note.error else ""


def _late(row: DeliverySummary, note: DeliveryNote | None) -> str:
    """Say of a text that was not taken at once at which attempt it was."""
    return f" at attempt {row.attempt}" if note is not None and row.attempt > 1 else ""


def _place(row: DeliverySummary, note: DeliveryNote | None) -> str:
    return row.channel if note is None else note.route.text


def delivery_in_words(  # noqa: C901 - one case a state
    row: DeliverySummary, note: DeliveryNote | None, *, at_work: bool, goes_on: bool = False
) -> str:
    """Return what became of a text, in a few words. `goes_on`: the flow's own line already says who continues it."""
    place, why = _place(row, note), _why(note)
    if goes_on and not at_work and row.state in {"retrying", "decided"}:
        return f"not delivered to {place} yet{why}"
    match row.state:
        case "done":
            return f"delivered to {place}{_late(row, note)}"
        case "failed":
            return f"NOT delivered to {place}{why}"
        case "denied":
            return f"NOT delivered to {place}, the send policy forbids it{why}"
        case "withheld":
            return f"would be delivered to {place}: the channels of a fork are sealed"
        case "unknown":
            return f"may not have been delivered to {place}{why}"
        case "retrying":
            at = "" if row.retry_at_ms is None else f", tried again at {clock(row.retry_at_ms)}"
            return f"not delivered to {place} yet{at if at_work else ', the next start tries again'}{why}"
        case "started" if at_work:
            return f"being delivered to {place}"
        case "started":
            return f"cut off while it was delivered to {place}"
        case "decided" if at_work:
            return f"waits to be delivered to {place}, perhaps until its channel is registered"
        case "decided":
            return f"not delivered to {place} yet, the next start does it"
