"""How a flow stands with its deliveries, and whether anybody works on it: what `runs` and `replay` say of it."""

from typing import NamedTuple

from intersession.cli.shell import clock
from intersession_actors.debugger import SmellAnswer, View, smells_of
from intersession_actors.service import Reader
from intersession_events.facts import ExchangeHeld
from intersession_events.plain_json import JsonObject, present
from intersession_projections.flow_summary import flow_value, in_words
from intersession_projections.flows import DeliveryNote, DeliverySummary, ExchangeSummary, held_in
from intersession_projections.frozen import Frozen, frozen_in
from intersession_projections.places import Flow, Then
from intersession_projections.run_outcomes import RunOutcome
from intersession_projections.wording import route_text
from intersession_projections.work import deliveries_of


class Standing(NamedTuple):
    """A flow, the deliveries of its texts, and whether a process is at work on the log.

    `retry` is the run that tries a failed one again, `held` where an exchange has stopped. `smells` is what is seldom meant in it, None where that was not asked for.
    `frozen` says that it was open when this fork was made, and stays so.
    """

    flow: Flow
    deliveries: tuple[tuple[DeliverySummary, DeliveryNote | None], ...]
    at_work: bool
    retry: RunOutcome | None = None
    smells: tuple[SmellAnswer, ...] | None = None
    held: ExchangeHeld | None = None
    frozen: bool = False

    @classmethod
    def of(
        cls,
        reader: Reader,
        flow: Flow,
        *,
        at_work: bool,
        at: int | None = None,
        frozen: Frozen | None = None,
    ) -> "Standing":
        """Read how a flow stands, or how its texts stood at a position, as `flow` is given as it stood there.

        `frozen` is what does not go on, where that has been read for many.
        """
        stays = (frozen_in(reader.log, at) if frozen is None else frozen).holds(flow)
        if at is not None:
            then = Then(reader.log, at)
            stood = (then.delivery(row.delivery_id) for row in deliveries_of(reader.flows, flow))
            texts = tuple((row, reader.flows.note_of(row)) for row in stood if row is not None)
            return cls(flow, texts, at_work, frozen=stays)
        retry = reader.runs.retry_of(flow.run_id) if isinstance(flow, RunOutcome) and flow.failed else None
        found = tuple((row, reader.flows.note_of(row)) for row in deliveries_of(reader.flows, flow))
        held = None
        if isinstance(flow, ExchangeSummary) and flow.held is not None:
            held = held_in(reader.log, flow)
        return cls(flow, found, at_work, retry, held=held, frozen=stays)

    @property
    def is_open(self) -> bool:
        """Whether it is not over yet."""
        return not self.flow.ended if isinstance(self.flow, RunOutcome) else self.flow.is_open

    @property
    def can_be_retried(self) -> bool:
        """Whether it is a run that failed, and nobody has tried it again."""
        flow = self.flow
        return isinstance(flow, RunOutcome) and flow.failed and flow.is_alone and self.retry is None

    def value(self) -> JsonObject:
        """Return it as `--json` prints it."""
        value = flow_value(self.flow, at_work=self.at_work)
        if self.deliveries:
            value["deliveries"] = [delivery_value(row, note) for row, note in self.deliveries]
        if self.retry is not None:
            value["retriedBy"] = self.retry.run_id
        if self.held is not None:
            value["held"] = _held_value(self.held)
        if self.frozen:
            value["frozen"] = True
        if self.smells is not None:
            value["smells"] = list(self.smells)
        return value

    def in_words(self) -> str:
        """Return where it stands, and what became of its texts."""
        whole = isinstance(self.flow, RunOutcome)  # how a flow was closed says already that a text arrived
        told = [
            delivery_in_words(row, note, at_work=self.at_work)
            for row, note in self.deliveries
            if whole or row.state != "done"
        ]
        if self.held is not None:
            told.append(f"the {self.held.step} that waits: {self.held.text}")
        if self.retry is not None:
            told.append(f"tried again by {self.retry.run_id}: {in_words(self.retry, at_work=self.at_work)}")
        if self.smells:
            told.append(f"smells: {', '.join(dict.fromkeys(smell['code'] for smell in self.smells))}")
        how = in_words(self.flow, at_work=self.at_work or self.frozen)
        return "; ".join([how, *(["FROZEN in this fork"] if self.frozen else []), *told])

    def with_smells(self, reader: Reader, at: int | None = None) -> "Standing":
        """Return it with what is seldom meant in it, as it stood at a position."""
        return self._replace(smells=tuple(smells_of(View(reader), self.flow, at)))


def _held_value(held: ExchangeHeld) -> JsonObject:
    return present(
        {
            "holdId": held.hold_id,
            "step": held.step,
            "text": held.text,
            "speaker": held.speaker,
            "to": held.to,
            "turn": held.turn,
            "before": held.before,
            "source": held.source,
            "by": held.by,
            "note": held.note,
            "since": held.since_ms,
        }
    )


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


def delivery_in_words(  # noqa: C901 - one case a state
    row: DeliverySummary, note: DeliveryNote | None, *, at_work: bool
) -> str:
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
