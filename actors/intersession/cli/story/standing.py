"""How a flow stands with its deliveries, and whether anybody works on it: what `runs` and `replay` say of it."""

from typing import NamedTuple

from intersession.cli.shell import clock
from intersession.cli.story.summary import Flow, flow_value, in_words
from intersession_events.plain_json import JsonObject, present
from intersession_projections.flows import DeliveryNote, DeliverySummary, Flows
from intersession_projections.run_outcomes import RunOutcome
from intersession_projections.timeline import route_text
from intersession_projections.work import deliveries_of


class Standing(NamedTuple):
    """A flow, the deliveries of its texts, and whether a process is at work on the log."""

    flow: Flow
    deliveries: tuple[tuple[DeliverySummary, DeliveryNote | None], ...]
    at_work: bool

    @classmethod
    def of(cls, flows: Flows, flow: Flow, *, at_work: bool) -> "Standing":
        """Read how a flow stands."""
        found = deliveries_of(flows, flow)
        return cls(flow, tuple((row, flows.note_of(row)) for row in found), at_work)

    def value(self) -> JsonObject:
        """Return it as `--json` prints it."""
        value = flow_value(self.flow, at_work=self.at_work)
        if self.deliveries:
            value["deliveries"] = [delivery_value(row, note) for row, note in self.deliveries]
        return value

    def in_words(self) -> str:
        """Return where it stands, and what became of its texts."""
        whole = isinstance(self.flow, RunOutcome)  # how a flow was closed says already that a text arrived
        told = [
            delivery_in_words(row, note, at_work=self.at_work)
            for row, note in self.deliveries
            if whole or row.state != "done"
        ]
        return "; ".join([in_words(self.flow, at_work=self.at_work), *told])


def delivery_value(row: DeliverySummary, note: DeliveryNote | None) -> JsonObject:
    """Return a delivery as `--json` prints it; what is not known is left out."""
    return present(
        {
            "id": row.delivery_id,
            "purpose": row.purpose,
            "channel": row.channel,
            "to": None if note is None else note.route.to,
            "sessionKey": row.session_key,
            "runId": row.run_id,
            "state": row.state,
            "attempt": row.attempt or None,
            "retryAt": row.retry_at_ms,
            "error": None if note is None else note.error,
        }
    )


def delivery_in_words(row: DeliverySummary, note: DeliveryNote | None, *, at_work: bool) -> str:
    """Return what became of a text, in a few words."""
    place = row.channel if note is None else route_text(note.route)
    why = f": {note.error}" if note is not None and note.error else ""
    match row.state:
        case "done":
            return f"delivered to {place}"
        case "failed":
            return f"NOT delivered to {place}{why}"
        case "denied":
            return f"not delivered to {place}, the send policy forbids it{why}"
        case "unknown":
            return f"may not have been delivered to {place}"
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
